"""Predicted rates against shares in exact fractions, found moment by moment and flow by flow."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.paths.flows import PROBES
from compiler.plan.paths.path import Paths
from compiler.plan.properties import flow_table, with_flows
from compiler.plan.reader import Plan
from runtime.agent.share.solver import UNLIMITED, Flow
from tdl.diagnostics import TdlError
from tests.agent.share import oracle
from tstorm.exit_codes import CommandError
from tstorm.predicting import fluid_rates
from tstorm.predicting.fluid_rates import LINK, PATH, RateStretch
from tstorm.predicting.listed_flow import ListedFlow
from tstorm.text import predicttext

SECOND = 10**9
MBIT = 10**6
END = 20
DECLARED = 9  # lines
RATES = ("1Mb", "7Mb", "10Mb", "unlimited")
EVENTS = (
    *("s--m leave", "s--m join", "m--t leave", "m--t join", "a.0 crash", "a.0 join"),
    *("s->t background 600Kb", "s->t background 700Kb flows=2", "s->t background 0"),
    *("s--t set rate=3Mb", "s--t set latency=9ms", "m--t set rate=2Mb", "b--t set loss=100%"),
)


def plan_of(text: str) -> Plan:
    return compile_source(text).plan


def predicted(plan: Plan, flows: list[ListedFlow]) -> list[Any]:
    ways = fluid_rates.paths_of(plan, flows)
    return [list(some) for some in fluid_rates.predict(plan, flows, ways).stretches]


@st.composite
def experiments(draw: st.DrawFn) -> Plan:
    """Two ways from s to t, one over m, of which events take links, rates and instances."""
    rates = st.sampled_from(RATES)
    milliseconds = st.integers(0, 30)
    lines = [f"routing {draw(st.sampled_from(['delay', 'ecmp']))}"]
    lines += ["service a replicas=2", "service b replicas=2", "bridges s m t"]
    for ends in ("a--s", "s--m", "m--t", "b--t"):
        lines.append(f"link {ends} latency={draw(milliseconds)}ms rate={draw(rates)}")
    lines.append(
        f"link s--t latency={draw(milliseconds)}ms rate={draw(st.sampled_from(RATES[:3]))}"
    )
    times = sorted(draw(st.lists(st.integers(1, END - 1), max_size=6)))
    lines += [f"at {at}s {draw(st.sampled_from(EVENTS))}" for at in times]
    while True:  # without the statements that are not legal after those before them
        try:
            return plan_of("\n".join([*lines, f"at {END}s quit", ""]))
        except TdlError as error:
            guilty = {one.span.line for one in error.diagnostics}
            assert guilty
            assert min(guilty) > DECLARED, error
            lines = [one for number, one in enumerate(lines, 1) if number not in guilty]


@st.composite
def flow_lists(draw: st.DrawFn) -> list[ListedFlow]:
    found = []
    for line in range(draw(st.integers(1, 5))):
        src, dst = draw(st.permutations(range(4)))[:2]
        start, end = sorted(
            draw(st.lists(st.integers(0, END), min_size=2, max_size=2, unique=True))
        )
        demand = draw(st.sampled_from([UNLIMITED, 300_000, 5 * MBIT]))
        weight = draw(st.integers(1, 3))
        times = start * SECOND, end * SECOND
        found.append(ListedFlow(line, src, dst, *times, demand, weight, None))
    return found


def exact(plan: Plan, flows: list[ListedFlow], at_ns: int) -> dict[int, Fraction | None]:
    """What each flow that is there gets at a moment: w flows of one connection for one of w."""
    state = plan.state_at(at_ns)
    paths = Paths(state, PROBES)
    asked: list[Flow] = []
    owner: list[int] = []
    counts: Counter[int] = Counter()
    found: dict[int, Fraction | None] = {}
    for number, one in enumerate(flows):
        if not one.start_ns <= at_ns < one.end_ns:
            continue
        there, back = paths.path(one.src, one.dst), paths.path(one.dst, one.src)
        found[number] = Fraction(0)
        greedy = one.demand_bps == UNLIMITED
        if there.totals is None or (greedy and back.totals is None):
            continue
        if there.totals.loss_ppb == 10**9:
            continue
        rtt = there.totals.delay_ns + (back.totals or there.totals).delay_ns
        demand: Any = UNLIMITED if greedy else Fraction(one.demand_bps, one.weight)
        asked += [Flow(there.links, rtt, demand)] * one.weight
        owner += [number] * one.weight
        counts.update(dict.fromkeys(there.links, one.weight))
    capacities = {
        link: with_flows(flow_table(state.links[link]), count).rate_bps
        for link, count in counts.items()
    }
    for number, rate in zip(owner, oracle.shares(asked, capacities).rates, strict=True):
        before = found[number]
        found[number] = None if rate is None or before is None else before + rate
    return found


@settings(max_examples=50)
@given(experiments(), flow_lists())
def test_every_moment_is_as_fractions_have_it(plan: Plan, flows: list[ListedFlow]) -> None:
    found = predicted(plan, flows)
    for at in range(END):
        wanted = exact(plan, flows, at * SECOND)
        for number, stretches in enumerate(found):
            mine = [s for s in stretches if s.from_ns <= at * SECOND < s.to_ns]
            assert len(mine) == (number in wanted)
            for one in mine:
                rate = wanted[number]
                if rate is None or one.rate_bps is None:
                    assert rate is None
                    assert one.rate_bps is None
                else:
                    assert Fraction(-1, 1000) <= rate - one.rate_bps < 1


@settings(max_examples=15)
@given(experiments(), flow_lists())
def test_stretches_cover_a_flow_and_the_order_of_the_list_is_nothing(
    plan: Plan, flows: list[ListedFlow]
) -> None:
    found = predicted(plan, flows)
    for one, stretches in zip(flows, found, strict=True):
        assert [stretches[0].from_ns, stretches[-1].to_ns] == [one.start_ns, one.end_ns]
        for before, after in pairwise(stretches):
            assert before.to_ns == after.from_ns
            assert before[2:] != after[2:]
    rates = [[one[:3] for one in some] for some in found]
    assert [[one[:3] for one in some] for some in predicted(plan, flows[::-1])] == rates[::-1]


def listed(plan: Plan, *pairs: tuple[str, str, int], end_s: int = 10) -> list[ListedFlow]:
    node = {one.name: number for number, one in enumerate(plan.topology.nodes)}
    return [
        ListedFlow(line, node[a], node[b], 0, end_s * SECOND, UNLIMITED, weight, None)
        for line, (a, b, weight) in enumerate(pairs, 2)
    ]


def rates(plan: Plan, *pairs: tuple[str, str, int]) -> list[list[tuple[int, int | None, str]]]:
    found = predicted(plan, listed(plan, *pairs))
    return [
        [(one.to_ns // SECOND, one.rate_bps, one.at or one.limit) for one in some] for some in found
    ]


def test_a_background_that_gives_way_leaves_more_to_more_flows() -> None:
    plan = plan_of(
        "service a\nservice b\nlink a--b latency=5ms rate=12Mb\n"
        "at 2s a->b background 9Mb flows=3\nat 10s quit\n"
    )
    one = [(2, 12 * MBIT, "a.0->b.0"), (10, 3 * MBIT, "a.0->b.0")]
    assert rates(plan, ("a.0", "b.0", 1)) == [one]
    three = [(2, 12 * MBIT, "a.0->b.0"), (10, 6 * MBIT, "a.0->b.0")]
    assert rates(plan, ("a.0", "b.0", 3)) == [three]


def test_paths_of_a_bottleneck_share_what_is_available_there() -> None:
    """The example of docs/tdl.md (Shared bottlenecks)."""
    plan = plan_of(
        "service paris\nservice lima\nservice oslo\nbottleneck access capacity=50Mb\n"
        "path paris--lima abw-flows=1:4Mb;4:12Mb rtt=210ms bottleneck-up=access\n"
        "path oslo--paris abw=8Mb rtt=28ms bottleneck-down=access\n"
        "path lima--oslo abw=3Mb rtt=230ms\nat 10s quit\n"
    )
    lima, oslo = rates(plan, ("paris.0", "lima.0", 2), ("paris.0", "oslo.0", 1))
    assert lima[0][2] == oslo[0][2] == "access"
    whole = (lima[0][1] or 0) + (oslo[0][1] or 0)
    assert whole == pytest.approx((2 * 28 / 3 + 8) / 3 * MBIT, abs=3)
    assert (oslo[0][1] or 0) / (lima[0][1] or 1) == pytest.approx(210 / 28 / 2, rel=1e-5)


def test_a_trace_counts_by_the_mean_of_each_second(tmp_path: Any) -> None:
    from compiler.sources import SourceFolder

    (tmp_path / "t.csv").write_text("time,rate\n0,1Mb\n0.5,3Mb\n1,8Mb\n2,8Mb\n")
    text = "service a\nservice b\nlink a--b latency=1ms trace-up=t.csv queue=100KB\nat 3s quit\n"
    plan = compile_source(text, sources=SourceFolder(tmp_path)).plan
    flows = [ListedFlow(2, 0, 1, 0, 3 * SECOND, UNLIMITED, 1, None)]
    ways = fluid_rates.paths_of(plan, flows)
    found = fluid_rates.predict(plan, flows, ways)
    assert [one.rate_bps for one in found.stretches[0][:2]] == [2 * MBIT, 8 * MBIT]
    assert "a.0->b.0 follow a trace" in predicttext.notes(plan, found)[0]


def test_no_way_back_stops_those_who_wait_for_answers() -> None:
    plan = plan_of(
        "service a\nservice b\nlink a--b latency=5ms rate=4Mb\nat 3s b->a leave\nat 10s quit\n"
    )
    flows = listed(plan, ("a.0", "b.0", 1))
    flows.append(flows[0]._replace(line=3, demand_bps=MBIT))
    greedy, steady = predicted(plan, flows)
    assert greedy == [
        RateStretch(0, 3 * SECOND, 3 * MBIT, LINK, "a.0->b.0"),
        RateStretch(3 * SECOND, 10 * SECOND, 0, PATH, ""),
    ]
    assert [one.rate_bps for one in steady] == [MBIT]


def test_too_many_changes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluid_rates, "MOST_PARTS", 1)
    plan = plan_of("service a\nservice b\nlink a--b\nat 3s a--b leave\nat 10s quit\n")
    with pytest.raises(CommandError, match="ask about fewer flows"):
        predicted(plan, listed(plan, ("a.0", "b.0", 1)))
