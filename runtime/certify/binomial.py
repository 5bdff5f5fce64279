"""How sure a figure is: exact binomial tails, and how many samples it takes to say anything.

A run has many pairs, epochs and figures. So that chance alone hardly ever raises an alarm, however
many tests there are, each has an equal part of FALSE_ALARM (Bonferroni).
"""

from __future__ import annotations

import math
from statistics import NormalDist

FALSE_ALARM = 0.01  # of a run as planned: that any of its tests fails by chance


def each(tests: int) -> float:
    """The chance that one of so many tests may fail by chance."""
    return FALSE_ALARM / max(tests, 1)


def at_least(count: int, whole: int, chance: float) -> float:
    """P(X >= count) of a binomial distribution; exact but for rounding."""
    if count <= 0:
        return 1.0
    if chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    if count > whole * chance:
        return _tail(count, whole, chance)
    return max(0.0, 1.0 - _tail(whole - count + 1, whole, 1 - chance))


def at_most(count: int, whole: int, chance: float) -> float:
    """P(X <= count)."""
    return at_least(whole - count, whole, 1 - chance)


def _tail(count: int, whole: int, chance: float) -> float:
    """The sum from `count` above the mean on: terms fall, so it ends soon."""
    log_term = (
        math.lgamma(whole + 1)
        - math.lgamma(count + 1)
        - math.lgamma(whole - count + 1)
        + count * math.log(chance)
        + (whole - count) * math.log1p(-chance)
    )
    term, total = math.exp(log_term), 0.0
    for number in range(count, whole + 1):
        total += term
        if term <= total * 1e-16:
            break
        term *= (whole - number) / (number + 1) * chance / (1 - chance)
    return min(total, 1.0)


def needed(alarm: float) -> int:
    """Samples without which not even half of them can be told from chance."""
    return math.ceil(math.log(alarm, 0.5))


def deviations(alarm: float) -> float:
    """Standard errors that a mean exceeds with this chance."""
    return NormalDist().inv_cdf(1 - alarm)
