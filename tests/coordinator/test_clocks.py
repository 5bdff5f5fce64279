"""The true offset is always within the bound, however unequal the two directions are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.process.agent import LOST_SECONDS
from runtime.coordinator.clock_offsets import (
    WATCH_EXCHANGES,
    ClockError,
    ClockExchange,
    ClockRecord,
    Drift,
    Offset,
    measured,
    watching,
)
from runtime.coordinator.coordinator import MEASURE_SECONDS
from runtime.options import MAX_HOSTS
from runtime.rpc import secure

SECOND = 10**9
DELAYS = st.integers(0, 10 * SECOND)
MOMENTS = st.integers(0, 10**15)
OFFSETS = st.integers(-(10**15), 10**15)


def exchange(t1: int, offset: int, there: int, thinking: int, back: int) -> ClockExchange:
    """An exchange over paths with these delays with a clock that is `offset` ahead."""
    received = t1 + there
    answered = received + thinking
    return ClockExchange(t1, received + offset, answered + offset, answered + back)


@given(MOMENTS, OFFSETS, DELAYS, DELAYS, DELAYS)
def test_the_true_offset_is_within_the_bound(
    t1: int, offset: int, there: int, thinking: int, back: int
) -> None:
    found = exchange(t1, offset, there, thinking, back)
    assert found.round_trip_ns == there + back
    result = found.offset()
    assert abs(result.offset_ns - offset) <= result.bound_ns
    length = there + thinking + back
    assert result.bound_ns == -(-(there + back) // 2) + -(-length // 1000)
    assert t1 <= result.at_ns <= t1 + there + thinking + back


@given(MOMENTS, OFFSETS, st.lists(st.tuples(DELAYS, DELAYS, DELAYS), min_size=1, max_size=12))
def test_of_many_the_shortest_round_trip_counts(
    t1: int, offset: int, delays: list[tuple[int, int, int]]
) -> None:
    exchanges = [exchange(t1, offset, *delay) for delay in delays]
    result = measured(exchanges)
    assert abs(result.offset_ns - offset) <= result.bound_ns
    assert result.bound_ns == min(one.offset().bound_ns for one in exchanges)


@given(
    st.integers(-1_000_000, 1_000_000),
    st.lists(st.tuples(DELAYS, DELAYS, DELAYS), min_size=8, max_size=8),
)
def test_a_clock_that_drifts_within_the_measurement(
    ppb: int, delays: list[tuple[int, int, int]]
) -> None:
    """The offset is right, within the bound, for every moment of the exchange it is taken from."""
    t1, exchanges = 0, []
    for there, thinking, back in delays:
        received, answered = t1 + there, t1 + there + thinking
        shown = received + received * ppb // 10**9, answered + answered * ppb // 10**9
        exchanges.append(ClockExchange(t1, *shown, answered + back))
        t1 = answered + back
    found = measured(exchanges)
    (best,) = [one for one in exchanges if one.offset() == found][:1]
    for moment in (best.t1_ns, found.at_ns, best.t4_ns):
        assert abs(moment * ppb // 10**9 - found.offset_ns) <= found.bound_ns + 1


@pytest.mark.parametrize(
    "times, words",
    [
        ((10, 0, 0, 9), "ran backwards"),
        ((0, 5, 4, 10), "ran backwards"),
        ((0, 0, 12, 10), "longer than the wait"),
    ],
)
def test_times_that_cannot_be_are_refused(times: tuple[int, int, int, int], words: str) -> None:
    with pytest.raises(ClockError, match=words):
        ClockExchange(*times)


@given(MOMENTS, OFFSETS)
def test_there_and_back(moment: int, offset: int) -> None:
    found = Offset(0, offset, 0)
    assert found.here(found.there(moment)) == moment
    assert found.there(moment) - moment == offset


@given(
    st.integers(-400_000, 400_000),
    OFFSETS,
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=2, max_size=30),
)
def test_the_true_drift_is_within_its_bound(
    ppb: int, offset: int, delays: list[tuple[int, int]]
) -> None:
    """Measured once a second, with delays of up to 10 ms in each direction."""
    record = ClockRecord()
    largest = 0
    for second, (there, back) in enumerate(delays):
        now = second * SECOND
        found = exchange(now, offset + ppb * now // SECOND, there, 0, back).offset()
        largest = max(largest, found.bound_ns)
        record.add(found)
    drift = record.drift()
    assert drift is not None
    assert abs(drift.ppb - ppb) <= drift.bound_ppb + 2
    assert record.largest_bound_ns == largest
    assert record.count == len(delays)


def test_a_long_run_makes_the_drift_exact() -> None:
    rnd, record = random.Random(3), ClockRecord()
    for second in range(3601):
        now = second * SECOND
        true = 50_000_000 + 20_000 * second  # 20 ppm
        record.add(exchange(now, true, rnd.randrange(10**6), 0, rnd.randrange(10**6)).offset())
    drift = record.drift()
    assert drift is not None
    assert drift.bound_ppb < 600
    assert abs(drift.ppb - 20_000) <= drift.bound_ppb
    assert record.last is not None and record.first is not None
    assert abs(record.last.offset_ns - 122_000_000) <= record.last.bound_ns
    assert record.away_ns(record.first) > 70_000_000


def test_what_is_away_takes_the_bounds_off() -> None:
    record = ClockRecord()
    start = Offset(0, 1000, 300)
    assert record.away_ns(start) == 0
    record.add(Offset(5, 1700, 300))
    assert record.away_ns(start) == 100
    record.add(Offset(9, 1100, 300))
    assert record.away_ns(start) == 0


def test_a_record_for_the_manifest() -> None:
    record = ClockRecord()
    assert record.as_record() == {
        "first": None,
        "last": None,
        "largest_bound_ns": 0,
        "measurements": 0,
        "drift_ppb": None,
        "drift_bound_ppb": None,
    }
    record.add(Offset(0, 50, 20))
    assert record.drift() is None
    record.add(Offset(2 * SECOND, 150, 10))
    assert record.drift() == Drift(50, 15)
    assert record.as_record() == {
        "first": {"at_ns": 0, "offset_ns": 50, "bound_ns": 20},
        "last": {"at_ns": 2 * SECOND, "offset_ns": 150, "bound_ns": 10},
        "largest_bound_ns": 20,
        "measurements": 2,
        "drift_ppb": 50,
        "drift_bound_ppb": 15,
    }
    record.restart()
    assert record.drift() is None
    assert record.largest_bound_ns == 20


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [(1, (8, 1.0)), (20, (8, 1.0)), (40, (4, 1.0)), (160, (1, 1.0)), (1000, (1, 6.25))],
)
def test_many_hosts_are_watched_at_no_more_cost(hosts: int, expected: tuple[int, float]) -> None:
    exchanges, seconds = watching(hosts, 1.0)
    assert (exchanges, seconds) == expected
    assert hosts * exchanges / seconds <= WATCH_EXCHANGES


def test_no_agent_takes_a_watched_clock_for_silence() -> None:
    """Another coordinator may take the place of one that says nothing for SILENT_SECONDS."""
    longest = watching(MAX_HOSTS, MEASURE_SECONDS)[1]
    assert longest < secure.SILENT_SECONDS < LOST_SECONDS
