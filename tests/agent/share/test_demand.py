"""What a flow wants, inferred from counters: steady, held, bursty, stopped, grainy."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agent.share.demand import SAMPLES, Meter, PathCounters

MS = 1_000_000
PERIOD_NS = 25 * MS
MBIT = 1_000_000
RTT_NS = 40 * MS


class Feed:
    """Feeds a meter tick by tick."""

    def __init__(self, limit_bps: int = 10 * MBIT, rtt_ns: int = RTT_NS) -> None:
        self.meter = Meter(0, 0, 0, PERIOD_NS)
        self.limit_bps = limit_bps
        self.rtt_ns = rtt_ns
        self.now_ns = self.sent = self.drops = 0

    def tick(self, sent: float, *, drops: int = 0, backlog: int = 0) -> Meter:
        self.now_ns += PERIOD_NS
        self.sent += round(sent)
        self.drops += drops
        counters = PathCounters(self.sent, self.drops, backlog)
        self.meter.update(self.now_ns, counters, self.limit_bps, self.rtt_ns)
        return self.meter

    def rate(self, rate_bps: float, ticks: int, **more: int) -> Meter:
        for _ in range(ticks):
            self.tick(rate_bps * PERIOD_NS / 8e9, **more)
        return self.meter

    def each(self, sent: Iterable[float]) -> Meter:
        for number in sent:
            self.tick(number)
        return self.meter


def test_a_steady_flow_below_its_limit_wants_what_it_sends() -> None:
    feed = Feed()
    demands = {feed.rate(5 * MBIT, 1).demand_bps for _ in range(400)}
    assert not feed.meter.greedy
    assert feed.meter.demand_bps == pytest.approx(5 * MBIT, rel=0.05)
    assert feed.meter.demand_bps >= 5 * MBIT
    assert len(demands) <= 2  # it is told once


def test_packets_are_too_coarse_to_change_a_demand() -> None:
    """480 kb/s in packets of 1,500 bytes: one a tick; at 700 kb/s sometimes two."""
    feed, owed, demands = Feed(), 0.0, set()
    for _ in range(400):
        owed += 0.7 * MBIT * PERIOD_NS / 8e9
        whole = owed // 1500 * 1500
        owed -= whole
        demands.add(feed.tick(whole).demand_bps)
    assert not feed.meter.greedy
    assert feed.meter.demand_bps == pytest.approx(0.7 * MBIT, rel=0.25)
    assert len(demands) <= 6


def test_a_flow_that_overflows_its_queue_is_greedy_at_once() -> None:
    assert Feed().rate(10 * MBIT, 1, drops=5, backlog=30_000).greedy


def test_a_deep_queue_is_enough() -> None:
    feed = Feed()
    assert not feed.rate(5 * MBIT, 1, backlog=100_000).greedy  # it may have come just now
    assert feed.rate(10 * MBIT, 1, backlog=100_000).greedy


def test_a_shallow_queue_is_enough_if_it_never_empties_and_all_is_used() -> None:
    feed = Feed()
    feed.rate(10 * MBIT, 3, backlog=3000)
    assert feed.meter.greedy
    modest = Feed()
    modest.rate(6 * MBIT, 40, backlog=3000)  # a packet of its own, seen at every tick by chance
    assert not modest.meter.greedy


def test_full_use_without_any_queue_is_greedy_and_a_little_less_is_not() -> None:
    assert Feed().rate(9.8 * MBIT, 10).greedy
    assert not Feed().rate(9.3 * MBIT, 10).greedy


def test_greed_ends_when_the_limit_is_not_used_any_more() -> None:
    feed = Feed()
    feed.rate(10 * MBIT, 40, backlog=50_000)
    assert feed.meter.greedy
    feed.rate(8 * MBIT, 8)
    assert not feed.meter.greedy
    assert feed.meter.demand_bps == pytest.approx(8 * MBIT, rel=0.05)


def test_a_greedy_flow_stays_so_when_its_limit_changes() -> None:
    """What counts is what was allowed at that time."""
    feed = Feed(limit_bps=50 * MBIT)
    feed.rate(50 * MBIT, 20, backlog=200_000)
    for limit in (25 * MBIT, 5 * MBIT, 12 * MBIT):
        feed.limit_bps = limit
        for _ in range(12):
            assert feed.rate(limit, 1, backlog=20_000).greedy


def test_a_sawtooth_with_losses_is_greedy_throughout() -> None:
    """TCP with a short queue: 70 to 100 % of its limit, a loss whenever it is there."""
    feed = Feed()
    for cycle in range(10):
        for part in (0.7, 0.8, 0.9, 1.0):
            meter = feed.rate(part * 10 * MBIT, 1, drops=int(part == 1.0))
            assert meter.greedy or cycle == 0


def test_losses_on_the_way_are_no_greed() -> None:
    """They are not among the queue's drops: the flow is held by them, not by its limit."""
    feed = Feed()
    for part in (0.5, 0.3, 0.4, 0.5, 0.35, 0.45) * 20:
        feed.rate(part * 10 * MBIT, 1)
        assert not feed.meter.greedy
    assert feed.meter.demand_bps == pytest.approx(4.2 * MBIT, rel=0.3)


def test_who_sends_nothing_is_not_greedy_whatever_was_refused() -> None:
    meter = Feed(limit_bps=1).tick(0, drops=1)
    assert not meter.greedy
    assert meter.quiet


def test_a_burst_that_overflows_is_no_greed() -> None:
    feed = Feed()
    for _ in range(20):
        assert not feed.tick(3000, drops=2).greedy
        feed.each([0] * 7)


@pytest.mark.parametrize("rtt_ms", [1, 40])
def test_a_stop_is_noticed_after_two_ticks(rtt_ms: int) -> None:
    feed = Feed(rtt_ns=rtt_ms * MS)
    feed.rate(10 * MBIT, 40, backlog=40_000)
    assert not feed.tick(0).quiet
    meter = feed.tick(0)
    assert meter.quiet
    assert not meter.greedy
    assert meter.demand_bps == 0


def test_a_long_round_trip_is_waited_for() -> None:
    """TCP may pause for most of a round trip after a loss."""
    feed = Feed(rtt_ns=400 * MS)
    feed.rate(10 * MBIT, 60, backlog=40_000)
    feed.each([0] * 10)
    assert not feed.meter.quiet
    feed.each([0] * 4)
    assert feed.meter.quiet


def test_what_waits_is_not_quiet() -> None:
    feed = Feed()
    feed.rate(10 * MBIT, 10, backlog=40_000)
    for _ in range(30):
        assert not feed.tick(0, backlog=40_000).quiet


@pytest.mark.parametrize(("on", "off"), [(1, 3), (1, 7), (2, 8), (1, 15)])
def test_pauses_that_come_back_are_averaged(on: int, off: int) -> None:
    feed = Feed(limit_bps=100 * MBIT)
    for _ in range(20):
        feed.each([60_000] * on + [0] * off)
    mean_bps = 60_000 * on * 8e9 / PERIOD_NS / (on + off)
    for _ in range(5):
        for sent in [60_000] * on + [0] * off:
            meter = feed.tick(sent)
            assert not meter.quiet
            assert meter.demand_bps == pytest.approx(mean_bps, rel=0.6)


def test_a_sudden_rise_is_followed_after_two_ticks() -> None:
    feed = Feed(limit_bps=100 * MBIT)
    feed.rate(10 * MBIT, 40)
    feed.rate(60 * MBIT, 2)
    assert feed.meter.demand_bps == pytest.approx(60 * MBIT, rel=0.05)


def test_a_beginning_within_a_tick_is_not_averaged() -> None:
    """A flow of 20 Mb/s that is first seen after a fifth of a period, twice."""
    feed = Feed(limit_bps=100 * MBIT)
    for _ in range(2):
        feed.rate(4 * MBIT, 1)
        feed.rate(20 * MBIT, 1)
        for _ in range(10):
            assert feed.meter.demand_bps == pytest.approx(20 * MBIT, rel=0.05)
            feed.rate(20 * MBIT, 1)
        feed.each([0] * 20)
        assert feed.meter.quiet


def test_a_fall_is_followed_after_three_ticks() -> None:
    feed = Feed(limit_bps=100 * MBIT)
    feed.rate(60 * MBIT, 40)
    feed.rate(10 * MBIT, 3)
    assert feed.meter.demand_bps == pytest.approx(10 * MBIT, rel=0.1)


def test_super_packets_are_not_taken_for_speed() -> None:
    """64 KB at once, every 262 ms, over a limit of 10 Mb/s: 2 Mb/s, and never greedy for long."""
    feed, owed = Feed(), 0.0
    greedy = 0
    for tick in range(800):
        owed += 2 * MBIT * PERIOD_NS / 8e9
        whole = owed // 65_536 * 65_536
        owed -= whole
        meter = feed.tick(whole)
        greedy += meter.greedy
        if tick > 100:
            assert not meter.quiet
            assert meter.demand_bps < 5 * MBIT
    assert greedy == 0


def test_a_flow_held_in_super_packets_is_greedy() -> None:
    feed, owed = Feed(), 0.0
    for tick in range(200):
        owed += 10 * MBIT * PERIOD_NS / 8e9
        whole = owed // 65_536 * 65_536
        owed -= whole
        assert feed.tick(whole, backlog=131_072).greedy or tick < 4


def test_a_limit_that_is_not_in_force_is_noticed() -> None:
    feed = Feed()
    found = [feed.rate(30 * MBIT, 1).overrun for _ in range(12)]
    assert found == [False, False, False, True] * 3
    assert not any(feed.rate(10 * MBIT, 1).overrun for _ in range(12))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**7), st.integers(0, 3), st.integers(0, 10**6), st.integers(1, 10**10)
        ),
        max_size=60,
    ),
    st.integers(0, 10**13),
)
@settings(max_examples=150, deadline=None)
def test_anything_is_measured(ticks: list[tuple[int, int, int, int]], rtt_ns: int) -> None:
    feed = Feed(rtt_ns=rtt_ns)
    for sent, drops, backlog, limit in ticks:
        feed.limit_bps = limit
        meter = feed.tick(sent, drops=drops, backlog=backlog)
        assert meter.rate_bps >= 0
        assert meter.demand_bps >= 0
        assert not (meter.quiet and (meter.greedy or meter.demand_bps or backlog))
        assert len(meter._samples) <= SAMPLES + 3
