"""Looks after a guest from outside: time that stands still although the guest works.

Virtual time goes on when everything in the guest sleeps, or reads the clock. A program that does
neither, such as a loop that waits for a variable to change, holds it for ever. So does a program
that has much to compute, but that ends: the two are told apart by how long it takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runtime.errors import RunError
from runtime.options import FAIL
from runtime.system import procs
from runtime.virtual.clockpage import ClockPage, State

LOOK_SECONDS = 1.0
CREEP_SECONDS = 0.01  # between two steps while a program is known to spin
CREEP_NS = 10_000_000  # a step: so time goes on no faster than real time
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Processor time of a process of the host and of all that descend from it."""
    ticks = 0
    for pid in (root, *(one.pid for one in procs.descendants(root))):
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


@dataclass(slots=True)
class SpinWatch:
    """`look` now and then, after `pause_s`. Seconds are processor time of the guest."""

    page: ClockPage
    kernel_pid: int
    on_spin: str  # FAIL, or CREEP: let time go on
    limit_s: float
    cpu_s: Callable[[int], float] = cpu_seconds
    _moved_ns: int = -1  # where time was by itself
    _since_s: float | None = None  # None: time has moved since the last look but one
    _spinners: dict[int, str] = field(default_factory=dict)  # their pids in the guest

    @property
    def pause_s(self) -> float:
        return CREEP_SECONDS if self._spinners else LOOK_SECONDS

    def crept(self) -> dict[str, object] | None:
        """How far time went on by order, and beside which programs; None: it did not."""
        crept_ns = self.page.read().crept_ns
        if not crept_ns:
            return None
        return {"ns": crept_ns, "programs": sorted(set(self._spinners.values()))}

    def look(self) -> str:
        """What is to be told, '' if nothing. RunError if a program holds time and is to fail."""
        found = self.page.read()
        moved_ns = found.now_ns - found.crept_ns
        if found.state is State.RUNS and found.pid in self._spinners and moved_ns == self._moved_ns:
            self._creep()
            return ""
        if found.state is not State.RUNS or moved_ns != self._moved_ns:
            self._moved_ns, self._since_s = moved_ns, None
            return ""
        used_s = self.cpu_s(self.kernel_pid)  # with 1,000 instances half a second's work
        if self._since_s is None:
            self._since_s = used_s
            return ""
        held_s = used_s - self._since_s
        if held_s < self.limit_s:
            return ""
        what = f"{found.program} (process {found.pid} in the guest)"
        told = f"{what} has computed for {held_s:.0f} s without sleeping or reading the clock"
        if self.on_spin == FAIL:
            raise RunError(
                f"{told}, so virtual time stands still",
                "if it only takes long, give a larger --spin-limit; if it waits in a loop, let it "
                "sleep there, or let time go on beside it: --on-spin creep",
            )
        self._spinners[found.pid] = found.program
        self._since_s = used_s  # the next one has the whole limit again
        self._creep()
        return f"{told}: time goes on beside it from now on"

    def _creep(self) -> None:
        with suppress(ProcessLookupError):  # it has ended: that is told otherwise
            self.page.creep(self.kernel_pid, CREEP_NS)
