"""Whether two samples come from one distribution: the test of Mann and Whitney, two-sided.

Input: two samples. Output: the probability that ranks are split as unevenly as here, or more, if
nothing differs but chance.
Algorithm: ties share the mean of their ranks. With few values the distribution of the rank sum over
all ways to divide the values is counted exactly, ties included (the shift algorithm of Streitberg
and Röhmel, "Exact distributions for permutation and rank tests", Statistical Software Newsletter
12, 1986); with many it is normal, with variance corrected for ties, and continuity.
Source: H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is
stochastically larger than the other", Annals of Mathematical Statistics 18, 1947.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

EXACT = 40  # values of both together, up to which ways are counted


def probability(first: Sequence[float], second: Sequence[float]) -> float:
    """1.0 where one of them has no value."""
    if not first or not second:
        return 1.0
    doubled = doubled_ranks([*first, *second])
    if len(doubled) <= EXACT:
        return _exact(doubled, len(first))
    return _normal(doubled, len(first))


def least(first: int, second: int) -> float:
    """The smallest probability that samples of so many values can have."""
    return probability(range(first), range(first, first + second))


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, which is whole also where ties share a mean."""
    counts = Counter(values)
    before = 0
    ranks: dict[float, int] = {}
    for value in sorted(counts):
        ranks[value] = 2 * before + counts[value] + 1
        before += counts[value]
    return [ranks[value] for value in values]


def _exact(doubled: Sequence[int], count: int) -> float:
    """Of all choices of `count` ranks, the part whose sum is as far from the middle."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(count))]
    for rank in doubled:
        for chosen in range(count, 0, -1):
            into = ways[chosen]
            for total, number in ways[chosen - 1].items():
                into[total + rank] = into.get(total + rank, 0) + number
    twice_middle = sum(doubled) * count  # times len(doubled)
    size = len(doubled)
    distance = abs(sum(doubled[:count]) * size - twice_middle)
    far = sum(
        number
        for total, number in ways[count].items()
        if abs(total * size - twice_middle) >= distance
    )
    return far / math.comb(size, count)


def _normal(doubled: Sequence[int], count: int) -> float:
    size = len(doubled)
    middle = count * (size + 1) / 2
    ties = sum(number**3 - number for number in Counter(doubled).values())
    variance = count * (size - count) / 12 * (size + 1 - ties / (size * (size - 1)))
    if variance <= 0:
        return 1.0
    distance = max(abs(sum(doubled[:count]) / 2 - middle) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))


# Many tests at once: probabilities as they count when so many were looked at.
#
# Input: the probabilities of tests. Output: adjusted ones in the same order; if those below 5 %
# are called differences, none is false in 95 of 100 comparisons. Source: S. Holm, "A simple
# sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.


def adjusted(probabilities: Sequence[float]) -> list[float]:
    order = sorted(range(len(probabilities)), key=lambda number: (probabilities[number], number))
    found = [0.0] * len(probabilities)
    largest = 0.0
    for place, number in enumerate(order):
        scaled = (len(order) - place) * probabilities[number]
        largest = max(largest, min(scaled, 1.0))
        found[number] = largest
    return found


# Whether pairs differ: the signed-rank test of Wilcoxon, two-sided.
#
# Input: the difference of each pair. Output: the probability that signs are as uneven over the
# ranks as here, or more, if nothing differs but chance. Algorithm: pairs without a difference are
# left out, ties share the mean of their ranks. With few pairs the distribution of the sum of the
# ranks above zero over all signs is counted exactly, ties included; with many it is normal, with
# variance corrected for ties, and continuity. Of differences that are all alike but for their
# sign it is the sign test, of shares the exact test of McNemar. Source: F. Wilcoxon, "Individual
# comparisons by ranking methods", Biometrics Bulletin 1, 1945.

EXACT_PAIRS = 50  # pairs, up to which ways are counted


def probability_of_pairs(differences: Sequence[float]) -> float:
    """1.0 where no pair differs."""
    apart = [one for one in differences if one != 0]
    if not apart:
        return 1.0
    doubled = doubled_ranks([abs(one) for one in apart])
    above = sum(rank for rank, one in zip(doubled, apart, strict=True) if one > 0)
    if len(apart) <= EXACT_PAIRS:
        return _exact_signs(doubled, above)
    return _normal_signs(doubled, above)


def least_of_pairs(count: int) -> float:
    """The smallest probability that so many pairs can have."""
    return min(math.ldexp(1.0, 1 - count), 1.0)


def _exact_signs(doubled: Sequence[int], above: int) -> float:
    """Of all choices of signs, the part whose sum above zero is as far from the middle."""
    whole = sum(doubled)
    ways = [1, *([0] * whole)]
    for rank in doubled:
        for total in range(whole, rank - 1, -1):
            ways[total] += ways[total - rank]
    distance = abs(2 * above - whole)
    far = sum(number for total, number in enumerate(ways) if abs(2 * total - whole) >= distance)
    return float(far / 2 ** len(doubled))


def _normal_signs(doubled: Sequence[int], above: int) -> float:
    """The ranks' squares have the correction for ties in them."""
    variance = sum(rank * rank for rank in doubled) / 16
    distance = max(abs(above / 2 - sum(doubled) / 4) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))
