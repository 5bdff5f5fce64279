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
