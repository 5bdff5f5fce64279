"""Thousands of events on scale-free networks: every path of sampled sources is networkx's.

The comparison itself (bench.routing.check) is tested here too: an oracle that finds nothing wrong
with wrong figures would be worse than none.
"""

from __future__ import annotations

import dataclasses

import pytest

from bench.errors import BenchError
from bench.routing import check as routing_check
from bench.routing.check import Found, Oracle, check
from compiler.pipeline import compile_source
from compiler.plan.paths.collapse import RouteRow
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan, decode
from compiler.plan.writer import encode
from tests.plan.networks import MS, PLAIN, build, contents, timeline
from tests.plan.topologies import scale_free


def test_a_thousand_elements_through_a_thousand_events() -> None:
    plan = compile_source(scale_free(1000)).plan
    found = check(plan, sources=3, every=50)
    assert found.differences == []
    assert found.epochs == 1 + 1000 // 50 + 1  # the start, every 50th event, the end
    assert found.pairs == found.epochs * 3 * 666
    assert found.paths > 1000


@pytest.mark.parametrize("step_us", [2375, 9500])
def test_with_many_paths_of_equal_length(step_us: int) -> None:
    """Latencies of few different values: the order by hops and by names decides."""
    plan = compile_source(scale_free(200, events=400, step_us=step_us)).plan
    found = check(plan, sources=8, every=50)
    assert found.differences == []
    assert found.tied > found.sources


def small() -> Plan:
    return compile_source(scale_free(60, events=60)).plan


def test_a_wrong_figure_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = routing_check._figures

    def wrong(row: RouteRow) -> list[Found]:
        delay, hops, jitter, loss, rate = (figures := right(row))[7]
        figures[7] = (delay, hops, jitter, loss + 1, rate)
        return figures

    monkeypatch.setattr(routing_check, "_figures", wrong)
    found = check(small(), sources=2, every=50)
    assert len(found.differences) == found.sources
    assert "instead of" in found.differences[0]


def test_another_state_is_found() -> None:
    """The events of the plan against snapshots in which one of them is missing."""
    whole, dropped = small(), compile_source(scale_free(60, events=60)).plan
    position = next(i for i, event in enumerate(whole.events) if "delay_ns" in event.args)
    event = whole.events[position]
    changed = dataclasses.replace(event, args={"delay_ns": int(event.args["delay_ns"]) + 1})
    events = (*whole.events[:position], changed, *whole.events[position + 1 :])
    dropped.__dict__["events"] = events
    found = check(dropped, sources=2, every=1)
    assert any("states of links differ" in text for text in found.differences)


def test_events_that_the_comparison_does_not_know_are_refused() -> None:
    topology = build(
        [("a", 1), ("b", 1)], ["s"], [("a", "s", PLAIN, PLAIN), ("b", "s", PLAIN, PLAIN)]
    )
    plan = decode(encode(contents(topology, timeline(topology, (MS, "crash", "a.0")))))
    with pytest.raises(BenchError, match="crash"):
        check(plan, sources=1, every=1)


def test_the_oracle_orders_by_delay_hops_and_names() -> None:
    """From a: two hops of 1 ms by B or by x, both as long as c's one hop of 2 ms."""
    two = PLAIN._replace(delay_ns=2 * MS)
    wired = [("a", "s", PLAIN, PLAIN), ("z", "t", PLAIN, PLAIN)]
    around = [("s", "B", PLAIN, PLAIN), ("B", "t", PLAIN, PLAIN)]
    around += [("s", "x", PLAIN, PLAIN), ("x", "t", PLAIN, PLAIN)]
    direct = [("s", "t", two, two)]

    def route(*links: tuple[str, str, LinkState, LinkState]) -> list[str]:
        topology = build([("a", 1), ("z", 1)], ["s", "t", "B", "x"], links)
        states = {link.name: link.state for link in topology.links}
        return Oracle(topology, states).tree("a.0").links("z.0")

    assert route(*wired, *around) == ["a.0->s", "s->B", "B->t", "t->z.0"]
    assert route(*wired, *around, *direct) == ["a.0->s", "s->t", "t->z.0"]
    assert route(*wired) == []


def test_the_oracle_composes_exactly() -> None:
    lossy = LinkState(True, 5_000_000, MS, 3, 10_000_000, 1, "normal")
    wide = LinkState(True, 0, 2 * MS, 4, 500_000_000, 1, "normal")
    topology = build(
        [("a", 1), ("z", 1)], ["s"], [("a", "s", lossy, PLAIN), ("s", "z", wide, PLAIN)]
    )
    oracle = Oracle(topology, {link.name: link.state for link in topology.links})
    tree = oracle.tree("a.0")
    assert oracle.figures(tree, "z.0") == (3 * MS, 2, 5, 505_000_000, 5_000_000)
    assert oracle.figures(tree, "a.0") == (0, 0, 0, 0, 0)
