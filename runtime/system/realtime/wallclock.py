"""What the wall clock showed at a moment of CLOCK_MONOTONIC."""

from __future__ import annotations

import time
from collections.abc import Callable

READINGS = 5  # of both clocks; the pair that was read in the least time counts

Clock = Callable[[], int]


def unix_ns(
    monotonic_ns: int, monotonic: Clock = time.monotonic_ns, wall: Clock = time.time_ns
) -> int:
    """The moment as ns since 1970 (UTC), as the wall clock is set now."""
    found = min(_reading(monotonic, wall) for _ in range(READINGS))
    return monotonic_ns + found[1]


def _reading(monotonic: Clock, wall: Clock) -> tuple[int, int]:
    """How long it took, and the wall clock less the other one in the middle of that time."""
    before = monotonic()
    shown = wall()
    after = monotonic()
    return after - before, shown - (before + after) // 2
