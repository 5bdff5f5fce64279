"""What links have that share a queue, against the formulas in fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.parts import necks
from compiler.plan.properties import (
    FlowRate,
    LinkState,
    flow_rates,
    flow_rates_text,
    least_queue,
    least_rate,
    most_queue,
    most_rate,
)
from compiler.plan.state import Fold

CAPACITY = 100_000_000
_BITS_NS = 8 * 10**9

rows = st.builds(
    FlowRate, st.integers(2, 60), st.integers(10**5, CAPACITY), st.integers(3000, 5_000_000)
)


@st.composite
def links(draw: st.DrawFn, stated: bool = False) -> LinkState:
    table = sorted(draw(st.lists(rows, max_size=3, unique_by=lambda row: row.flows)))
    state = LinkState(
        True,
        draw(st.integers(10**5, CAPACITY)),
        0,
        0,
        0,
        draw(st.integers(3000, 5_000_000)),
        "normal",
    )
    return state._replace(
        capacity_bps=CAPACITY,
        neck="west",
        rtt_ns=0 if stated else draw(st.integers(1, 400_000_000)),
        flow_rates=flow_rates_text(table),
    )


shares = st.lists(st.tuples(links(), st.integers(0, 30)), min_size=1, max_size=6)


def at(state: LinkState, flows: int) -> tuple[int, int]:
    """Its table at so many flows, searched; rounded half up."""
    table = [FlowRate(1, state.rate_bps, state.queue_bytes), *flow_rates(state.flow_rates)]
    low = max(row for row in table if row.flows <= flows)
    high = min((row for row in table if row.flows >= flows), default=low)
    part = Fraction(flows - low.flows, max(high.flows - low.flows, 1))
    values = (a + part * (b - a) for a, b in zip(low[1:], high[1:], strict=True))
    rate, queue = ((value + Fraction(1, 2)).__floor__() for value in values)
    return rate, queue


@given(shares)
def test_what_is_available_is_that_of_the_formulas(found: list[tuple[LinkState, int]]) -> None:
    flows = sum(count for _, count in found)
    used = [(state, count) for state, count in found if count] or [(state, 1) for state, _ in found]
    all_ = sum(count for _, count in used)
    tables = [at(state, max(flows, 1)) for state, _ in used]
    rate = Fraction(sum(n * a for (_, n), (a, _) in zip(used, tables, strict=True)), all_)
    # A flow tolerates a round trip of W / its part of A: each path's queue tells it, half a way.
    speed = sum(
        Fraction(n) / (state.rtt_ns + Fraction(2 * q * _BITS_NS, CAPACITY))
        for (state, n), (_, q) in zip(used, tables, strict=True)
    )
    longest = max(state.rtt_ns for state, _ in used)
    queue = (all_ / speed - longest) * CAPACITY / (2 * _BITS_NS)
    queue = max(queue, Fraction(3000), rate * longest / _BITS_NS)
    told = necks.available(found)
    assert told.flows == max(flows, 1)
    assert abs(told.rate_bps - rate) <= Fraction(1, 2)
    # A byte less of one path's round trip is as many more or less as there are flows.
    assert abs(told.queue_bytes - queue) <= 3 + all_ + queue / 10**6


@given(links(), st.integers(1, 80), st.lists(links(), max_size=3))
def test_one_path_in_use_is_that_path(own: LinkState, flows: int, others: list[LinkState]) -> None:
    rate, queue = at(own, flows)
    told = necks.available([(own, flows), *((state, 0) for state in others)])
    assert told.rate_bps == rate
    assert told.queue_bytes == max(queue, rate * own.rtt_ns // _BITS_NS)


@given(shares)
def test_bounds_hold_whatever_flows_there_are(found: list[tuple[LinkState, int]]) -> None:
    told = necks.available(found)
    states = [state for state, _ in found]
    for state in states:
        known = necks.bounds(state, states)
        assert least_rate(known) <= told.rate_bps <= most_rate(known)
        assert least_queue(known) - 3 <= told.queue_bytes <= most_queue(known) + 3


@given(links(stated=True), st.integers(1, 50), st.integers(0, 50))
def test_a_stated_queue_is_that_of_all(state: LinkState, flows: int, others: int) -> None:
    state = state._replace(flow_rates="")
    other = state._replace(rate_bps=CAPACITY)
    assert necks.available([(state, flows), (other, others)]).queue_bytes == state.queue_bytes
    known = necks.bounds(state, [state, other])
    assert least_queue(known) == most_queue(known) == state.queue_bytes


def test_no_event_gives_a_link_another_bottleneck() -> None:
    text = "service a\nservice b\npath a--b abw=1Mb rtt=9ms\nat 0s a join\nat 1s quit\n"
    found = compile_source(text)
    event = replace(found.events[0], kind="set", target="a.0->b.0", args={"neck": "west"})
    with pytest.raises(PlanError, match="another bottleneck"):
        Fold(found.topology).apply(event)
