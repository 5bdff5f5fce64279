"""How far apart two samples are, with a 95 % confidence interval.

Input: two samples. Output: the difference of their quantiles (second minus first), and the interval
of it by the percentile bootstrap: both samples are drawn again with replacement, RESAMPLES times,
and the middle 95 % of the differences is the interval.
Algorithm: a quantile of a resample depends only on which positions of the sorted sample were
drawn. So the positions are drawn once for each size, by a generator whose seed is fixed: the same
input gives the same bytes. Of more than DRAWN values the position of the quantile is drawn from its
normal limit (mean qn, variance q(1-q)n).
Source: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.

Of shares (so many of so many) the interval is Newcombe's, which holds for few values and for shares
of 0 and 1: R. G. Newcombe, "Interval estimation for the difference between independent
proportions", Statistics in Medicine 17, 1998, method 10. Of paired ones it is his, too: "Improved
confidence intervals for the difference between binomial proportions based on paired data", in the
same volume, method 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random
from statistics import NormalDist

from runtime.nearest_rank import MEDIAN, nearest_rank

RESAMPLES = 4000
DRAWN = 200
SEED = 1993
_TAIL = 0.025
_Z = NormalDist().inv_cdf(1 - _TAIL)

Interval = tuple[float, float]


def median(values: Sequence[float]) -> float:
    """Of values of runs, at least one. That of an even number is the mean of two."""
    ordered = sorted(values)
    low, high = _positions(len(ordered), None)
    return (ordered[low] + ordered[high]) / 2


def _positions(count: int, percent: int | None) -> tuple[int, int]:
    """Between which the quantile lies: of a median those of the middle, which may be two. Of a
    `percent` it is a nearest rank, as of all that is measured in one run."""
    if percent is None:
        return (count - 1) // 2, count // 2
    position = nearest_rank(range(count), percent)
    return position, position


def of_difference(
    first: Sequence[float], second: Sequence[float], percent: int | None = None
) -> Interval:
    """Of the second sample's quantile minus the first one's, both with values: of medians, or of
    nearest ranks of this percentage."""
    one, other = sorted(first), sorted(second)
    if one[0] == one[-1] and other[0] == other[-1]:
        return other[0] - one[0], other[0] - one[0]
    drawn = zip(_drawn(len(one), percent, 0), _drawn(len(other), percent, 1), strict=True)
    found = sorted((other[c] + other[d]) / 2 - (one[a] + one[b]) / 2 for (a, b), (c, d) in drawn)
    skipped = math.floor(_TAIL * RESAMPLES)
    return found[skipped], found[-1 - skipped]


def of_median(values: Sequence[float]) -> Interval:
    """Of one sample's median, with values: those of differences, as pairs have them."""
    ordered = sorted(values)
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    found = sorted((ordered[a] + ordered[b]) / 2 for a, b in _drawn(len(ordered), None, 0))
    skipped = math.floor(_TAIL * RESAMPLES)
    return found[skipped], found[-1 - skipped]


@lru_cache(maxsize=256)
def _drawn(count: int, percent: int | None, side: int) -> tuple[tuple[int, int], ...]:
    """For each resample of so many values, the positions between which its quantile lies."""
    part = (MEDIAN if percent is None else percent) / 100
    draw = Random(f"{SEED} {count} {part} {side}")
    if count > DRAWN:
        return tuple(_limit(draw, count, part) for _ in range(RESAMPLES))
    low, high = _positions(count, percent)
    found = []
    for _ in range(RESAMPLES):
        positions = sorted(int(draw.random() * count) for _ in range(count))
        found.append((positions[low], positions[high]))
    return tuple(found)


def _limit(draw: Random, count: int, part: float) -> tuple[int, int]:
    deviation = math.sqrt(part * (1 - part) * count)
    normal = NormalDist().inv_cdf(max(draw.random(), 2**-53))
    position = min(max(math.floor(count * part + deviation * normal), 0), count - 1)
    return position, position


def of_shares(first: tuple[int, int], second: tuple[int, int]) -> Interval:
    """Of the second share minus the first: how many, of how many (at least one)."""
    one, other = first[0] / first[1], second[0] / second[1]
    low_1, high_1 = _wilson(*first)
    low_2, high_2 = _wilson(*second)
    difference = other - one
    return (
        difference - math.hypot(other - low_2, high_1 - one),
        difference + math.hypot(high_2 - other, one - low_1),
    )


def of_paired_shares(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """Of the second share minus the first, of things of which both are known (at least one)."""
    whole = len(pairs)
    counts = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    one, other = counts[0] / whole, counts[1] / whole
    low_1, high_1 = _wilson(counts[0], whole)
    low_2, high_2 = _wilson(counts[1], whole)
    together = _correlation(pairs)

    def reach(left: float, right: float) -> float:
        return math.sqrt(max(left**2 - 2 * together * left * right + right**2, 0.0))

    difference = other - one
    return (
        difference - reach(other - low_2, high_1 - one),
        difference + reach(high_2 - other, one - low_1),
    )


def _correlation(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Newcombe's phi, corrected for continuity; 0 where one side is always the same."""
    whole = len(pairs)
    ones, others = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    product = ones * (whole - ones) * others * (whole - others)
    if product == 0:
        return 0.0
    alike = sum(one and other for one, other in pairs)
    neither = sum(not one and not other for one, other in pairs)
    excess: float = alike * neither - (ones - alike) * (others - alike)
    if excess > 0:
        excess = max(excess - whole / 2, 0.0)
    return excess / math.sqrt(product)


def _wilson(count: int, whole: int) -> Interval:
    """E. B. Wilson's score interval (1927)."""
    share, square = count / whole, _Z * _Z
    middle = (share + square / (2 * whole)) / (1 + square / whole)
    reach = share * (1 - share) / whole + square / (4 * whole * whole)
    half = _Z / (1 + square / whole) * math.sqrt(reach)
    return max(middle - half, 0.0), min(middle + half, 1.0)
