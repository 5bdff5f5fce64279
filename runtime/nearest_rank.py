"""Percentiles of what a run has measured: nearest ranks, which are values that were measured.

Of n values in order, the p-th percentile is the one at ceil(n p / 100), counted from 1; the median
of an even number is the lower of the two in the middle. Source: docs/run.md, "Medians".
"""

from __future__ import annotations

from collections.abc import Sequence

MEDIAN, P99 = 50, 99


def nearest_rank(ordered: Sequence[int], rank: int = MEDIAN, of: int = 100) -> int:
    """Of sorted values, at least one; the first one for the rank 0."""
    return ordered[max(-(-len(ordered) * rank // of), 1) - 1]
