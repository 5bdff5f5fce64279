"""Many tests at once: probabilities as they count when so many were looked at.

Input: the probabilities of tests. Output: adjusted ones in the same order; if those below 5 % are
called differences, none is false in 95 of 100 comparisons.
Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6, 1979.
"""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(probabilities: Sequence[float]) -> list[float]:
    order = sorted(range(len(probabilities)), key=lambda number: (probabilities[number], number))
    found = [0.0] * len(probabilities)
    largest = 0.0
    for place, number in enumerate(order):
        scaled = (len(order) - place) * probabilities[number]
        largest = max(largest, min(scaled, 1.0))
        found[number] = largest
    return found
