"""What the machine of an agent or a driver is busy with meanwhile, for its last words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runtime.judge.machine_load import MachineRecord
from runtime.system import hostfigures
from runtime.system.hostfigures import HostReading

INTERVAL_NS = 900_000_000  # an agent looks at it twice a second
STEP_AFTER = 2  # readings, before a planted step


class OwnMachine:
    """`step_ns`: fault injection, by so much the wall clock is set."""

    def __init__(
        self, step_ns: int = 0, read: Callable[[], HostReading] = hostfigures.read
    ) -> None:
        self._step_ns = step_ns
        self._read = read
        self._machine = MachineRecord()
        self._last_ns: int | None = None
        self._count = 0

    def look(self, elapsed_ns: int) -> None:
        """At most about once a second."""
        if self._last_ns is not None and elapsed_ns - self._last_ns < INTERVAL_NS:
            return
        self._last_ns = elapsed_ns
        self._count += 1
        found = self._read()
        if self._count > STEP_AFTER:
            found = replace(found, ahead_ns=found.ahead_ns + self._step_ns)
        self._machine.take(found, elapsed_ns)

    def record(self) -> dict[str, Any]:
        return self._machine.record()
