"""Whether pairs differ: the signed-rank test of Wilcoxon, two-sided.

Input: the difference of each pair. Output: the probability that signs are as uneven over the ranks
as here, or more, if nothing differs but chance.
Algorithm: pairs without a difference are left out, ties share the mean of their ranks. With few
pairs the distribution of the sum of the ranks above zero over all signs is counted exactly, ties
included; with many it is normal, with variance corrected for ties, and continuity. Of differences
that are all alike but for their sign it is the sign test, of shares the exact test of McNemar.
Source: F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tstorm.comparing.ranks import doubled_ranks

EXACT = 50  # pairs, up to which ways are counted


def probability(differences: Sequence[float]) -> float:
    """1.0 where no pair differs."""
    apart = [one for one in differences if one != 0]
    if not apart:
        return 1.0
    doubled = doubled_ranks([abs(one) for one in apart])
    above = sum(rank for rank, one in zip(doubled, apart, strict=True) if one > 0)
    if len(apart) <= EXACT:
        return _exact(doubled, above)
    return _normal(doubled, above)


def least(count: int) -> float:
    """The smallest probability that so many pairs can have."""
    return min(math.ldexp(1.0, 1 - count), 1.0)


def _exact(doubled: Sequence[int], above: int) -> float:
    """Of all choices of signs, the part whose sum above zero is as far from the middle."""
    whole = sum(doubled)
    ways = [1, *([0] * whole)]
    for rank in doubled:
        for total in range(whole, rank - 1, -1):
            ways[total] += ways[total - rank]
    distance = abs(2 * above - whole)
    far = sum(number for total, number in enumerate(ways) if abs(2 * total - whole) >= distance)
    return float(far / 2 ** len(doubled))


def _normal(doubled: Sequence[int], above: int) -> float:
    """The ranks' squares have the correction for ties in them."""
    variance = sum(rank * rank for rank in doubled) / 16
    distance = max(abs(above / 2 - sum(doubled) / 4) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))
