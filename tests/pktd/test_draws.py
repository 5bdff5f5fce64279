"""The draws of pktd as docs/pktd.md defines them ("Draws", "Delay and jitter"), written a second
time: whoever reads that page alone gets the same packets lost and the same delays."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import pytest

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_JITTER, _SECOND = 0x6A6974746572, 0x7365636F6E64
_SIZE, _STEP, _WHOLE = 4096, 1 << 20, 1 << 32
_LONGEST = 26  # cells until what rose in one has fallen below everything
SECOND_NS = 10**9


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def bits(key: int, n: int) -> int:
    return _mix(_mix(key + _GOLDEN & _MASK) + (n + 1) * _GOLDEN & _MASK)


@cache
def _table(dist: str) -> tuple[float, ...]:
    """The inverse distribution function at 4,097 points, the outermost half an interval inside."""
    if dist == "uniform":
        return tuple(2 * i / _SIZE - 1 for i in range(_SIZE + 1))
    at = [max(0.5, min(_SIZE - 0.5, i)) / _SIZE for i in range(_SIZE + 1)]
    if dist == "normal":
        return tuple(NormalDist().inv_cdf(p) for p in at)
    raw = [(1 - p) ** (-1 / 3) for p in at]
    mean = sum((a + b) / 2 for a, b in pairwise(raw)) / _SIZE
    square = sum((a * a + a * b + b * b) / 3 for a, b in pairwise(raw)) / _SIZE
    deviation = math.sqrt(square - mean * mean)
    return tuple((x - mean) / deviation for x in raw)


def _quantile(dist: str, p: int) -> float:
    table = _table(dist)
    slot, part = min(p >> 20, _SIZE - 1), p - (min(p >> 20, _SIZE - 1) << 20)
    return table[slot] + (table[slot + 1] - table[slot]) * part / _STEP


def _risen(dist: str, v: int, fall: float) -> float:
    """The x with F(x) = v F(x + fall); v in 2^-32."""

    def apart(p: int) -> float:
        return _quantile(dist, p) - _quantile(dist, p * v >> 32)

    p = bisect_left(range(1, _WHOLE), fall, key=apart) + 1
    return _quantile(dist, p * v >> 32)


def _process(dist: str, key: int, time: float) -> float:
    """`time` and what it is at that time, in jitters."""
    cell, fall = int(time // 2), time % 2 / 2
    drawn = [bits(key, cell - back & _MASK) >> 32 for back in range(_LONGEST)]
    found = [_risen(dist, v, 1) - fall - back for back, v in enumerate(drawn[1:])]
    return max(_risen(dist, drawn[0], fall), *found)


def deviation(seed: int, time: float, dist: str) -> float:
    if dist != "paretonormal":
        return _process(dist, seed ^ _JITTER, time)
    tail = _process("pareto", seed ^ _SECOND, time)
    return (_process("normal", seed ^ _JITTER, time) + 3 * tail) / math.sqrt(10)


@pytest.mark.parametrize(
    ("dist", "want"),
    [
        ("normal", [1528992652, 1178993225, -471006393, 109591484]),
        ("uniform", [884513854, 534514427, -473822593, -193788528]),
        ("pareto", [890274047, 540274620, -464269638, -445117950]),
        ("paretonormal", [527352333, 371821403, -610412597, -94047546]),
    ],
)
def test_the_page_gives_what_pktd_draws(dist: str, want: list[int]) -> None:
    """The wanted ones are pktd's (tcal_c/pktd/core/tests/test_draws.c); its tables have steps of
    2^-20, and paretonormal adds three of them."""
    times = [0, 0.7, 3.999999999, 86400.123456789]
    found = [deviation(99, time, dist) * SECOND_NS for time in times]
    assert found == pytest.approx(want, abs=4 * SECOND_NS / _STEP)


@pytest.mark.parametrize("dist", ["normal", "pareto"])
def test_jitter_is_the_standard_deviation_of_the_tables(dist: str) -> None:
    squares = sum((a * a + a * b + b * b) / 3 for a, b in pairwise(_table(dist))) / _SIZE
    assert math.sqrt(squares) == pytest.approx(1, abs=0.02)
