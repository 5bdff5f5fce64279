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


# --- measured delays ------------------------------------------------------------------------------


def _two_modes() -> list[float]:
    """As in tcal_c/pktd/core/tests/test_measured.c."""
    early = [-650_000 + 10 * i for i in range(2720)]
    gap = [-650_000 + 100_000 * (i - 2719) for i in range(2720, 2740)]
    return [x / _STEP for x in (*early, *gap, *(1_350_000 + 5 * i for i in range(2740, _SIZE + 1)))]


def _behind(points: list[float]) -> list[float]:
    """Each part at least as wide, so that density by share below never grows."""
    least = math.inf
    found = [0.0]
    for i, (low, high) in enumerate(pairwise(points)):
        middle = (i + 0.5) / _SIZE
        if high > low:
            least = min(least, 1 / (_SIZE * (high - low)) / middle)
        found.append(found[-1] + (1 / (_SIZE * least * middle) if least < math.inf else 0.0))
    return found


def _measured(points: list[float], seed: int, time: float) -> float:
    behind = _behind(points)
    cell = 1
    while 16 * cell < behind[-1]:
        cell *= 2

    def quantile(p: float) -> float:
        slot = min(int(p * _SIZE), _SIZE - 1)
        return behind[slot] + (behind[slot + 1] - behind[slot]) * (p * _SIZE - slot)

    def risen(v: float, fall: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            if quantile(middle) - quantile(middle * v) < fall:
                low = middle
            else:
                high = middle
        return quantile(high * v)

    number, fall = int(time // (2 * cell)), time % (2 * cell) / 2
    highest = -math.inf
    for back in range(_LONGEST):
        v = (bits(seed ^ _JITTER, number - back & _MASK) >> 32) / _WHOLE
        there = risen(v, cell) - fall - (back - 1) * cell if back else risen(v, fall)
        highest = max(highest, there)
    slot = max(i for i in range(_SIZE) if behind[i] <= highest)
    part = (highest - behind[slot]) / (behind[slot + 1] - behind[slot])
    return points[slot] + min(part, 1) * (points[slot + 1] - points[slot])


def test_the_page_gives_what_pktd_draws_of_measured_delays() -> None:
    """The wanted ones are pktd's (tcal_c/pktd/core/tests/test_measured.c)."""
    found = [_measured(_two_modes(), 99, time) * SECOND_NS for time in (0, 0.7, 1000, 86400.125)]
    want = [1304750442, 1304727554, -614650726, 1303045272]
    assert found == pytest.approx(want, abs=4 * SECOND_NS / _STEP)
