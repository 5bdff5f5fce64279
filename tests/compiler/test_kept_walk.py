"""Changes of links that are added to a plan one by one (compiler/kept_walk.py, growing.py of
compiler.plan) give what compiling the whole text gives, to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from compiler import extension
from compiler.kept_walk import KeptWalk, NotKeptError
from compiler.link_changes import WORDS, ChangeError, read
from compiler.pipeline import Compilation, compile_source
from compiler.plan.format import PlanError
from compiler.plan.growing import CannotGrowError, GrowingPlan
from compiler.plan.parts.action_texts import name_of
from compiler.plan.reader import decode
from compiler.sources import RecordedFiles
from tdl import ast
from tdl.diagnostics import TdlError
from tdl.parser import parse_partial

S = 1_000_000_000
TEXT = """\
service c replicas=3 img=x
service s img=x
bridge b
link c--s latency=5ms up=10Mb symmetric
link c--b latency=1ms up=20Mb symmetric
link s--b latency=2ms
at 1s c.0--s set latency=9ms
from 2s to 4s c.1--s leave
at 40s c.1 crash
at 50s c.2--b leave
at 60s s disconnect
from 70s to 80s c.0--b set loss=1%
at 90s c pause 1
"""
FOUND = compile_source(TEXT + "at 100s quit\n")
OPEN = compile_source(TEXT)
EXPECTING = compile_source(TEXT + "expect rtt c s < 100ms\n")

values = some.fixed_dictionaries(
    {},
    optional={
        "rate_bps": some.sampled_from([1_000_000, 5_000_000, 10_000_000]),
        "delay_ns": some.integers(0, 20).map(lambda n: n * 1_000_000),
        "jitter_ns": some.integers(0, 3),
        "loss_ppb": some.sampled_from([0, 10_000_000]),
        "queue_bytes": some.integers(3_000, 90_000),
    },
)
changes = some.builds(
    lambda end, back, what, both: {
        **what,
        "src": "s.0" if back else end,
        "dst": end if back else "s.0",
        **({"both": 1} if both else {}),
    },
    some.sampled_from(["c.0", "c.1", "c.2"]),
    some.booleans(),
    some.one_of(
        values.filter(bool),
        some.just({"reset": 1}),
        some.builds(lambda up: {"up": up}, some.integers(0, 1)),
    ),
    some.booleans(),
)


class Growth:
    """The same both ways."""

    def __init__(self, found: Compilation) -> None:
        self.plan = found.plan
        self.kept = KeptWalk(self.plan, found.model, 5 * S)
        self.growing = GrowingPlan(self.plan)
        self.number = 1

    def change(self, what: dict[str, Any], at_ns: int) -> bool:
        """False: it is refused, also by the compiler."""
        read_changes = read(json.dumps(what))
        links = self.kept.links(read_changes)
        text = self.kept.text(read_changes, links, at_ns)
        try:
            events = self.kept.events(read_changes, links, self.number)
        except NotKeptError:
            with pytest.raises(TdlError):
                extension.extend(self.plan, self.number, text, at_ns)
            return False
        rows = [(one.kind, one.target, dict(one.args), one.line) for one in events]
        self.growing.add(at_ns, name_of(self.number), text.encode(), rows)
        self.plan = decode(self.growing.files()())
        self.number += 1
        return True


@settings(max_examples=25, deadline=None)
@given(some.lists(changes, min_size=1, max_size=6), some.sampled_from(["quits", "open"]))
def test_the_plan_is_that_of_the_whole_text(asked: list[dict[str, Any]], how: str) -> None:
    growth = Growth(FOUND if how == "quits" else OPEN)
    for second, what in enumerate(asked, 6):
        if not growth.change(what, second * S):
            break
        plan = growth.plan
        plan.verify(deep=True)
        again = compile_source(plan.source, seed=plan.seed, sources=RecordedFiles(plan))
        assert again.files == {name: plan.raw(name) for name in again.files}


def test_the_action_has_the_text_that_a_compilation_gives_it() -> None:
    growth = Growth(FOUND)
    assert growth.change({"src": "c.0", "dst": "s.0", "delay_ns": 7_000_000, "both": 1}, 6 * S)
    lines = "c.0->s.0 set latency=7ms\ns.0->c.0 set latency=7ms\n"
    whole = extension.extend(FOUND.plan, 1, lines, 6 * S)
    assert whole.files == {name: growth.plan.raw(name) for name in whole.files}


def test_what_is_said_of_links_is_what_the_parser_makes_of_the_words() -> None:
    said = {
        "rate_bps": 5_000_000,
        "delay_ns": 8,
        "jitter_ns": 1,
        "loss_ppb": 5,
        "queue_bytes": 9_000,
    }
    words = " ".join(f"{WORDS[name][0]}={WORDS[name][1](value)}" for name, value in said.items())
    text = f"service a\nservice b\nlink a--b\nat 1s a->b set {words}\n"
    found = parse_partial(text).file.statements[-1]
    assert isinstance(found, ast.Dynamic)
    assert isinstance(found.action, ast.Set)
    parsed = {one.prop.text: (one.op, one.value, one.word) for one in found.action.assignments}
    assert parsed == {WORDS[name][0]: (ast.Op.ASSIGN, value, None) for name, value in said.items()}


@pytest.mark.parametrize(
    "what",
    [
        {"src": "c.0", "dst": "c.1", "delay_ns": 1},  # over several links
        {"src": "c.0", "dst": "s.0", "delay_ns": 1, "at_ns": 30 * S},
    ],
)
def test_what_the_walk_does_not_know_is_left_to_the_compiler(what: dict[str, Any]) -> None:
    with pytest.raises(NotKeptError):
        KeptWalk(FOUND.plan, FOUND.model, 5 * S).links(read(json.dumps(what)))


@pytest.mark.parametrize(
    ("later", "kept"),
    [("c.0--s set loss=1%", False), ("c.1--s set loss=1%", True), ("partition c;s", False),
     ("c--s leave 1", False), ("c crash 1", True)],
)  # fmt: skip
def test_only_links_that_nothing_later_is_about_are_changed_so(later: str, kept: bool) -> None:
    found = compile_source(f"{TEXT}at 95s {later}\nat 100s quit\n")
    walk = KeptWalk(found.plan, found.model, 5 * S)
    try:
        walk.links(read('{"src": "c.0", "dst": "s.0", "loss_ppb": 5}'))
    except NotKeptError:
        assert not kept
    else:
        assert kept


def test_a_wrong_name_is_told_as_ever() -> None:
    with pytest.raises((ChangeError, NotKeptError)):
        KeptWalk(FOUND.plan, FOUND.model, 5 * S).links(read('{"src": "q", "dst": "s.0", "up": 1}'))


def test_what_does_not_fit_is_no_addition() -> None:
    row = ("set", "c.0->s.0", {"delay_ns": 3}, 1)
    growing = GrowingPlan(FOUND.plan)
    with pytest.raises(CannotGrowError, match="something else"):
        growing.add(40 * S, "do@1", b"", [row])
    growing.add(30 * S, "do@1", b"", [row])
    with pytest.raises(CannotGrowError, match="something else"):
        growing.add(20 * S, "do@2", b"", [row])
    for bad in (
        ("crash", "c.0", {}, 1),
        ("set", "c.0->s.0", {"up": 1}, 1),
        ("set", "q", {"delay_ns": 1}, 1),
    ):
        with pytest.raises(PlanError):
            GrowingPlan(FOUND.plan).add(30 * S, "do@1", b"", [bad])
    with pytest.raises(CannotGrowError, match="expectations"):
        GrowingPlan(EXPECTING.plan).add(30 * S, "do@1", b"", [row])
    ecmp = compile_source("routing ecmp\n" + TEXT).plan
    with pytest.raises(CannotGrowError, match="groups"):
        GrowingPlan(ecmp)
