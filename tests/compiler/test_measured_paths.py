"""Measured paths: their queues are the paper's, and what `set` makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import path_queues
from compiler.path_queues import PathProblem, derive, least_queue, spare_ns
from compiler.pipeline import compile_source
from compiler.plan.properties import LinkState, at_flows, beside_flows, flow_rates
from tdl.ast import PathTerms

MB, MS = 10**6, 10**6


def terms(
    up_kbps: int, down_kbps: int, rtt_ms: int, wmax: int | None = 128_000, capacity: int = 100 * MB
) -> PathTerms:
    up, down = ((1, 1000 * up_kbps),), ((1, 1000 * down_kbps),)
    return PathTerms(up, down, capacity, wmax, rtt_ms * MS, None, None)


# Of the paper's Table 2: available up and down (kb/s), one-way delay (ms), queue (KB); the first
# two are cut at 957 KB there.
TABLE_2 = [
    (2251, 2202, 64, 2043),
    (4061, 2838, 29, 1213),
    (6436, 2579, 12, 844),
    (25892, 17207, 4, 197),
    (8000, 8000, 45, 237),
    (12000, 12000, 30, 158),
    (10000, 3000, 30, 265),
]


@pytest.mark.parametrize(("up", "down", "delay_ms", "queue_kb"), TABLE_2)
def test_queues_are_those_of_the_paper(up: int, down: int, delay_ms: int, queue_kb: int) -> None:
    [row] = derive(terms(up, down, 2 * delay_ms)).rows
    assert row.queue_bytes[0] == row.queue_bytes[1]
    assert abs(row.queue_bytes[0] - 1000 * queue_kb) <= 1000


def test_the_round_trip_of_full_queues_is_that_of_the_paper() -> None:
    """Section 2.2.1: 50 ms, 43 Mb/s and 64 KB make 74 ms; at a tenth of the capacity 288 to 294."""
    for capacity, expected_ms in ((43 * MB, 74), (4_300_000, 290)):
        path = terms(1000, 1000, 50, capacity=capacity)._replace(queue_up=64_000, queue_down=64_000)
        delay_ns, _ = path_queues.spare_time(path, derive(path))
        assert abs(50 + delay_ns / MS - expected_ms) < 3


def test_where_capacities_become_possible() -> None:
    """Figure 1: 10 Mb/s both ways over 20 ms, windows of 65 KB: from 12.5 Mb/s on; the upper bound
    grows with the capacity, the lower one does not."""
    assert spare_ns(1, 65_000, 10 * MB, 20 * MS) == 32 * MS
    with pytest.raises(PathProblem) as found:
        derive(terms(10_000, 10_000, 20, 65_000, 12_400_000))
    assert found.value.hint.startswith("at least capacity=12.5Mb")
    sums = [
        sum(derive(terms(10_000, 10_000, 20, 65_000, capacity)).rows[0].queue_bytes)
        for capacity in (12_500_000, 25 * MB, 50 * MB)
    ]
    assert sums == [50_000, 100_000, 200_000]
    assert least_queue(1, 65_000, 10 * MB, 20 * MS) == 25_000


def test_windows_that_are_not_stated() -> None:
    """The paper's, where that is enough; else one that leaves queues as much time as the path."""
    assert derive(terms(6436, 2579, 24, None)).wmax_bytes == 128_000
    wide = derive(terms(100_000, 100_000, 50, None))
    assert wide.wmax_bytes == 1 << 21
    assert spare_ns(1, wide.wmax_bytes, 100 * MB, 50 * MS) >= 50 * MS


@given(
    st.lists(st.integers(100, 90_000), min_size=2, max_size=2),
    st.integers(1, 300),
    st.sampled_from([None, 64_000, 128_000, 1 << 20]),
    st.integers(1, 20),
)
def test_both_bounds_hold(rates: list[int], rtt_ms: int, wmax: int | None, flows: int) -> None:
    """Of every path that is possible, with any number of flows that its table names."""
    up = ((1, rates[0] * 1000), (1 + flows, min(rates[0] * 1500, 100 * MB)))
    path = terms(rates[0], rates[1], rtt_ms, wmax)._replace(abw_up=up)
    try:
        derived = derive(path)
    except PathProblem as problem:
        assert problem.hint
        return
    for row in derived.rows:
        spare = spare_ns(row.flows, derived.wmax_bytes, max(row.abw_bps), path.rtt_ns)
        assert sum(row.queue_bytes) * 8 * 10**9 <= spare * path.capacity_bps
        for abw, queue in zip(row.abw_bps, row.queue_bytes, strict=True):
            assert queue >= least_queue(row.flows, derived.wmax_bytes, abw, path.rtt_ns)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=5), st.integers(1, 60))
def test_tables_are_read_on_straight_lines(rates: list[int], flows: int) -> None:
    table = tuple((1 + 10 * k, rate) for k, rate in enumerate(rates))
    before = max(row for row in table if row[0] <= flows)
    after = min((row for row in table if row[0] >= flows), default=before)
    part = (flows - before[0]) / 10
    assert abs(at_flows(table, flows) - (before[1] + part * (after[1] - before[1]))) <= 0.5


# --- in experiments ----------------------------------------------------------------------------

FILE = """\
service a
service b
path a--b abw-up=6436Kb abw-down=2579Kb rtt=25ns{more}
{events}
at 20s quit
"""


def state(text: str, at_s: int, link: int = 0) -> LinkState:
    return compile_source(text).plan.state_at(at_s * 10**9).links[link]


def file(events: str = "", more: str = "") -> str:
    return FILE.format(events=events, more=more)


def test_a_path_is_a_link_with_a_capacity() -> None:
    up, down = (state(file(more=" jitter=5ns loss=1%"), 0, link) for link in (0, 1))
    assert (up.rate_bps, down.rate_bps) == (6_436_000, 2_579_000)
    assert (up.delay_ns, down.delay_ns) == (13, 12)  # the odd nanosecond goes up
    assert {s.capacity_bps for s in (up, down)} == {100 * MB}
    assert {s.wmax_bytes for s in (up, down)} == {128_000}
    assert {(s.jitter_ns, s.loss_ppb) for s in (up, down)} == {(5, 10**7)}
    assert up.queue_bytes == down.queue_bytes == 994_406
    assert compile_source(file()).plan.topology.routing == "direct"
    assert compile_source(file() + "routing delay\n").plan.topology.routing == "delay"


def test_queues_follow_what_is_set_and_go_back() -> None:
    text = file(
        "at 1s a--b set abw-up=1Mb\n"
        "from 2s to 4s b--a set abw-up=4Mb\n"  # named the other way round: of b to a
        "from 3s to 6s a--b set capacity=50Mb queue-up=9KB loss=2%\n"
        "at 7s a--b set rtt=40ms abw=50%\n"
        "at 8s a--b set latency+=5ms\n"
        "at 9s a--b set abw-flows=1:2Mb;3:4Mb\n"
    )
    at = {s: (state(text, s), state(text, s, 1)) for s in range(10)}
    assert [at[s][0].rate_bps for s in range(10)] == [6_436_000] + 6 * [MB] + [MB // 2] * 2 + [
        2 * MB
    ]
    assert [at[s][1].rate_bps for s in (1, 2, 3, 4)] == [2_579_000, 4 * MB, 4 * MB, 2_579_000]
    assert at[1][0].queue_bytes > at[0][0].queue_bytes
    assert (at[3][0].queue_bytes, at[3][0].capacity_bps, at[3][0].loss_ppb) == (
        9000,
        50 * MB,
        2 * 10**7,
    )
    assert at[3][1].queue_bytes > at[2][1].queue_bytes / 2  # what the other one leaves
    assert at[6] == at[1]
    assert at[7][1].rate_bps == 2_579_000 // 2
    assert {s.delay_ns for s in at[7]} == {20 * MS}
    assert {s.delay_ns for s in at[8]} == {25 * MS}
    [row] = flow_rates(at[9][0].flow_rates)
    assert (row.flows, row.rate_bps) == (3, 4 * MB)


def test_background_takes_of_what_is_available() -> None:
    text = file("at 1s a--b background 1Mb\nat 2s a--b set abw-flows=1:3Mb;4:9Mb\n")
    one, several = state(text, 1), state(text, 2)
    assert (one.rate_bps, one.capacity_bps) == (5_436_000, 100 * MB)
    assert one.queue_bytes == state(text, 0).queue_bytes
    assert (several.rate_bps, flow_rates(several.flow_rates)[0].rate_bps) == (2 * MB, 8 * MB)


def test_a_background_of_flows_gives_way() -> None:
    text = (
        "service a\nbridge s\nlink a--s rate=10Mb\nlink s--a2 latency=1\nservice a2\n"
        "from 1s to 4s a--s background 8Mb flows=3\nat 2s a--s set rate=20Mb\n"
        "at 6s a--s background 2Mb\nat 20s quit\n"
    )
    one, faster, gone, whole = (state(text, s) for s in (1, 2, 5, 6))
    assert (one.rate_bps, one.capacity_bps) == (2_500_000, 10_000_000)
    table = {row.flows: row.rate_bps for row in flow_rates(one.flow_rates)}
    assert (table[2], table[3], table[16]) == (4_000_000, 5_000_000, 10**8 * 16 // 19 // 10)
    assert {row.queue_bytes for row in flow_rates(one.flow_rates)} == {one.queue_bytes}
    assert faster.rate_bps == 12_000_000  # what 8 of 20 leave is more than a quarter
    assert (gone.rate_bps, gone.flow_rates, gone.capacity_bps) == (20_000_000, "", 0)
    assert (whole.rate_bps, whole.flow_rates) == (18_000_000, "")


@given(st.integers(1, 10_000), st.integers(100, 10**6), st.integers(1, 999))
def test_rows_of_a_background_are_near_the_hyperbola(flows: int, kbps: int, taken: int) -> None:
    own = LinkState(True, 1000 * kbps, 0, 0, 0, 9000, "normal")
    found = beside_flows(own, kbps * taken, flows)
    table = [(1, found.rate_bps), *((r.flows, r.rate_bps) for r in flow_rates(found.flow_rates))]
    for count in (1, 2, 5, 18, 30, 70, 250, 900):
        wanted = max(own.rate_bps - kbps * taken, own.rate_bps * count / (count + flows))
        assert abs(at_flows(tuple(table), count) - wanted) <= 0.03 * wanted + 1
