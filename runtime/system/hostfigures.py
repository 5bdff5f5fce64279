"""What a machine says of its own load: processors, what its host takes from it, limits of control
groups, swapping, and how far its wall clock is from the one that nobody sets.

Only read, never needed: what a kernel does not tell is left out. Times are ns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runtime.system import control_groups

ROOT = Path("/")
TRIES = 3
_STEAL, _FIELDS = 7, 8  # of /proc/stat: user nice system idle iowait irq softirq steal
_IDLE = (3, 4)


@dataclass(frozen=True, slots=True)
class HostReading:
    """Counters since boot. Ticks are of all processors together."""

    at_ns: int
    ticks: int
    busy: int
    stolen: int
    throttled_ns: int
    swapped_bytes: int
    ahead_ns: int  # the wall clock minus CLOCK_MONOTONIC


def read(root: Path = ROOT) -> HostReading:
    ticks = _ticks(root)
    total = sum(ticks)
    return HostReading(
        at_ns=time.monotonic_ns(),
        ticks=total,
        busy=total - sum(ticks[one] for one in _IDLE),
        stolen=ticks[_STEAL],
        throttled_ns=sum(_throttled(root)),
        swapped_bytes=_swapped(root),
        ahead_ns=ahead_ns(),
    )


def ahead_ns() -> int:
    """The difference of two clocks cannot be read at one instant: the closest of some readings."""
    best = (1 << 63, 0)
    for _ in range(TRIES):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        best = min(best, (after - before, wall - (before + after) // 2))
    return best[1]


def _ticks(root: Path) -> list[int]:
    try:
        words = (root / "proc/stat").read_text(encoding="ascii").partition("\n")[0].split()
    except (OSError, ValueError):
        words = []
    found = [int(word) for word in words[1 : 1 + _FIELDS] if word.isdecimal()]
    return found if len(found) == _FIELDS else [0] * _FIELDS


def _throttled(root: Path) -> Iterator[int]:
    """Of every group that limits us: the kernel counts each by itself."""
    for group in dict.fromkeys(control_groups.own("cpu", root)):
        newer = control_groups.counter(group / "cpu.stat", "throttled_usec")
        older = control_groups.counter(group / "cpu.stat", "throttled_time")
        yield (newer or 0) * 1000 or (older or 0)


def _swapped(root: Path) -> int:
    file = root / "proc/vmstat"
    pages = sum(control_groups.counter(file, key) or 0 for key in ("pswpin", "pswpout"))
    return pages * os.sysconf("SC_PAGE_SIZE")
