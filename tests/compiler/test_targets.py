"""Candidates read all at once are those that are legal one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.declare.model import Model, build
from compiler.draws import Stream, statement_key
from compiler.expand.targets import (
    CRASH,
    DISCONNECT,
    JOIN,
    LEAVE,
    RECONNECT,
    Targets,
    Verb,
    _Places,
)
from compiler.expand.walk import Walk
from compiler.expand.world import World
from tdl import ast
from tdl.diagnostics import Sink
from tdl.parser import parse

TEXT = """\
service a img=x replicas=4 tags=t
service b img=x replicas=2
service c img=x tags=t
bridges s r tags=t
link a--s latency=1ms up=1Mb tags=u
link b--s latency=1ms up=1Mb
link c--r latency=1ms up=1Mb tags=u
link s--r latency=1ms up=1Mb tags=u;t
at 1s a leave 1
at 2s tags=t leave 1
at 3s tags=u leave 1
at 4s leave 1
at 5s a--s leave 1
at 6s a.1--s leave
at 7s s->r leave
at 8s tags=t;u join 1
at 9s leave 1
at 10s s--a.2 join
at 11s s->a join
at 99s quit
"""


def model() -> Model:
    file, _ = parse(TEXT)
    sink = Sink()
    found = build(file, sink)
    assert not sink.failed
    return found


@pytest.mark.parametrize("verb", [JOIN, LEAVE, CRASH, DISCONNECT, RECONNECT])
@given(seed=st.integers(0, 2**32))
def test_marks_agree_with_legal(verb: Verb, seed: int) -> None:
    found = model()
    world = World(found)
    draws = Stream(statement_key(seed, "targets", 0), "state")
    world.nodes[:] = bytes(draws.below(4) for _ in world.nodes)
    world.left[:] = bytes(draws.below(2) for _ in world.left)
    for step in found.steps:
        if isinstance(step.statement.action, ast.Quit):
            continue
        targets = Targets(world, step.chosen, verb, drawn=True)
        legal = [position for position in range(targets.size) if targets.legal(position)]
        assert targets.all_legal() == legal
        assert targets.count_legal() == len(legal)
        assert targets.any_legal() == bool(legal)


@given(st.lists(st.integers(0, 29), max_size=12))
def test_places_are_read_in_their_order(places: list[int]) -> None:
    values = bytearray(range(100, 130))
    assert _Places(places).read(values) == bytes(100 + place for place in places)


@pytest.mark.parametrize("places", [range(0), range(3, 9), range(2, 20, 3), [4], [4, 6, 8], [8, 6]])
def test_rows_of_places(places: Sequence[int]) -> None:
    values = bytearray(range(30))
    assert list(_Places(places).read(values)) == list(places)


class _Legal:
    """Candidates of which some are legal."""

    word = "legal"

    def __init__(self, positions: list[int]) -> None:
        self.positions = positions

    def name(self, position: int) -> str:
        return str(position)

    def count_legal(self) -> int:
        return len(self.positions)

    def all_legal(self) -> list[int]:
        return self.positions


@given(st.sets(st.integers(0, 999), min_size=1, max_size=20), st.integers(0, 99))
def test_a_listed_sample_is_the_one_that_asks_each(positions: set[int], seed: int) -> None:
    """20 of 1,000 are rarely met, so that most samples come to the list."""
    legal = sorted(positions)
    for count in {1, len(legal)}:
        slow = Stream(statement_key(seed, "x", 0), "who").sample(1000, legal.__contains__, count)
        stream = Stream(statement_key(seed, "x", 0), "who")
        assert stream.sample(1000, legal.__contains__, count, _Legal(legal)) == slow


def test_steps_with_the_same_selector_share_their_targets() -> None:
    found = model()
    walk = Walk(found, Sink())
    first, second = [step for step in found.steps if step.statement.start_ns in (4e9, 9e9)]
    other = next(step for step in found.steps if step.statement.start_ns == 2e9)
    targets = walk.targets(first, LEAVE, drawn=True)
    assert walk.targets(second, LEAVE, drawn=True) is targets
    assert walk.targets(second, LEAVE, drawn=False) is not targets
    assert walk.targets(other, LEAVE, drawn=True) is not targets
    walk.world.growth += 1
    assert walk.targets(second, LEAVE, drawn=True) is not targets


def test_links_of_single_instances_are_found_by_their_number() -> None:
    found = model()
    names = [link.name for link in found.topology.links]
    chosen = {step.statement.start_ns // 10**9: step.chosen for step in found.steps}
    assert [[names[d] for d in link] for link in chosen[6].links] == [["a.1->s", "s->a.1"]]
    assert [[names[d] for d in link] for link in chosen[7].links] == [["s->r"]]
    assert [[names[d] for d in link] for link in chosen[10].links] == [["s->a.2", "a.2->s"]]
    assert [[names[d] for d in link] for link in chosen[11].links] == [
        [f"s->a.{i}"] for i in range(4)
    ]
