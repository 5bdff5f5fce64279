"""The timetable follows from the seed alone, and may be asked for in any pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from compiler.plan import numbered_draws
from runtime.probing.chosen import between

INTERVALS = st.lists(st.integers(1, 10**10), max_size=6)
NS = 10**9


@given(st.integers(0, 2**64 - 1), INTERVALS, st.lists(st.integers(0, 10**10), max_size=5))
def test_pieces_are_the_whole(seed: int, intervals: list[int], cuts: list[int]) -> None:
    end = 3 * max(intervals, default=1)
    if sum(end // one for one in intervals) > 10_000:
        return
    marks = [0, *sorted(cut for cut in cuts if cut < end), end]
    pieces = [one for a, b in pairwise(marks) for one in between(seed, intervals, a, b)]
    assert pieces == between(seed, intervals, 0, end)
    assert pieces == sorted(pieces)


def test_seeds_and_pairs_have_moments_of_their_own() -> None:
    found = between(1, [NS, NS], 0, 10 * NS)
    assert found != between(2, [NS, NS], 0, 10 * NS)
    first, second = ([at % NS for at, pair in found if pair == one] for one in (0, 1))
    assert len(set(first) | set(second)) == 20


def test_moments_are_spread_evenly_or_stand_together() -> None:
    moments = [at % NS for at, _ in between(5, [NS], 0, 4000 * NS)]
    for quarter in range(4):
        assert 900 < sum(quarter * NS <= 4 * at < (quarter + 1) * NS for at in moments) < 1100
    assert max(at % NS for at, _ in between(5, [NS], 0, 4000 * NS, spread_ns=1000)) < 1000


def test_draws_are_those_of_the_engine() -> None:
    """Known values of SplitMix64 (tests of pktd have them, too: bits(0, n) starts at mix(step))."""
    assert numbered_draws.mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # its first output from 0
    assert numbered_draws.bits(0, 0) == numbered_draws.mix(
        0xE220A8397B1DCDAF + 0x9E3779B97F4A7C15 & 2**64 - 1
    )
    assert sorted(numbered_draws.shuffled(range(50), 3)) == list(range(50))
