"""Probes over a link take at most a thousandth of its smallest rate, whatever the network."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from runtime.probing import probe_intervals
from runtime.probing.chosen import between
from runtime.probing.ways import ConnectedPair

LINKS = range(8)
BITS = probe_intervals.PROBE_BITS[4]
NS = 10**9

WAYS = st.lists(st.frozensets(st.sampled_from(LINKS), max_size=5), max_size=30).map(
    lambda found: [ConnectedPair(2 * n, 2 * n + 1, links, 0) for n, links in enumerate(found)]
)
RATES = st.dictionaries(st.sampled_from(LINKS), st.integers(1, 10**11))
BASES = st.integers(10**6, 10**10)


@given(WAYS, RATES, BASES)
def test_no_link_carries_more_than_its_part(
    ways: list[ConnectedPair], least_bps: dict[int, int], base: int
) -> None:
    found = probe_intervals.intervals(ways, least_bps, BITS, base)
    for link, rate_bps in least_bps.items():
        probes_bps = sum(
            Fraction(BITS * NS, interval)
            for way, interval in zip(ways, found, strict=True)
            if interval is not None and link in way.links
        )
        assert probes_bps * probe_intervals.PART <= rate_bps


@given(WAYS, RATES, BASES)
def test_who_is_probed_is_probed_often_enough(
    ways: list[ConnectedPair], least_bps: dict[int, int], base: int
) -> None:
    for way, interval in zip(
        ways, probe_intervals.intervals(ways, least_bps, BITS, base), strict=True
    ):
        if interval is None:
            assert any(link in least_bps for link in way.links)
        else:
            assert base <= interval <= max(base, probe_intervals.SLOWEST_NS)


@given(WAYS, RATES, BASES, st.integers(0, 2**63), st.integers(1, 5))
def test_the_timetable_keeps_the_budget_over_any_whole_number_of_intervals(
    ways: list[ConnectedPair], least_bps: dict[int, int], base: int, seed: int, many: int
) -> None:
    """Counted in the probes themselves: one in each interval, no more and no fewer."""
    found = probe_intervals.intervals(ways, least_bps, BITS, base)
    intervals = [one for one in found if one is not None]
    for pair, interval in enumerate(intervals):
        moments = between(seed, intervals, 0, many * interval)
        own = [at_ns // interval for at_ns, one in moments if one == pair]
        assert own == list(range(many))


def test_first_come_first_served_where_a_link_has_not_enough_for_all() -> None:
    ways = [ConnectedPair(n, n + 1, frozenset({0}), 0) for n in range(8)]
    # A thousandth of 128 kb/s are 1,280 bits in 10 s: five probes of 224.
    found = probe_intervals.intervals(
        ways, {0: 128_000}, BITS, probe_intervals.base_ns(8, NS, virtual=False)
    )
    assert found == [8_750_000_000] * 5 + [None] * 3


def test_a_link_without_a_rate_limits_nothing() -> None:
    assert probe_intervals.intervals([ConnectedPair(0, 1, frozenset({0}), 0)], {}, BITS, 7) == [7]


def test_few_probes_in_all() -> None:
    hour = 3600 * NS
    assert probe_intervals.base_ns(2, 10 * NS, virtual=False) == 100_000_000
    assert probe_intervals.base_ns(200, 80 * NS, virtual=False) == 2 * NS
    assert probe_intervals.base_ns(200, 10 * NS, virtual=False) == 400_000_000
    assert 24 * hour * 200 // probe_intervals.base_ns(200, 24 * hour, virtual=False) <= 1_000_000
    assert probe_intervals.base_ns(2, 10 * NS, virtual=True) == NS
    assert probe_intervals.base_ns(2, 2 * NS, virtual=True) == NS
    assert hour // probe_intervals.base_ns(2, hour, virtual=True) <= 300
    assert (
        hour // probe_intervals.base_ns(2, hour, virtual=True, rounds=probe_intervals.FEW_ROUNDS)
        == 20
    )
    assert 200 * hour // probe_intervals.base_ns(200, hour, virtual=True) <= 3_000
