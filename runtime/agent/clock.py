"""The clock of an agent, and the only place where it is read."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol


class Clock(Protocol):
    """Time in ns, as this agent tells it to others."""

    def now_ns(self) -> int:
        """Now."""

    def machine_ns(self, at_ns: int) -> int:
        """What the datapath calls that time."""

    def agent_ns(self, machine_ns: int) -> int:
        """What this agent calls a time of the datapath's (CLOCK_MONOTONIC)."""

    def cpu_ns(self) -> int:
        """CPU time that this process has used."""

    async def sleep_until(self, at_ns: int) -> None:
        """Returns at or after that time."""

    async def sleep_until_or(self, at_ns: int, event: asyncio.Event) -> bool:
        """The same, or as soon as the event is set: then True."""


class SystemClock:
    """CLOCK_MONOTONIC. With `offset_ns` it is wrong by so much, as that of another machine is."""

    def __init__(self, offset_ns: int = 0) -> None:
        self._offset_ns = offset_ns

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._offset_ns

    def machine_ns(self, at_ns: int) -> int:
        return at_ns - self._offset_ns

    def agent_ns(self, machine_ns: int) -> int:
        return machine_ns + self._offset_ns

    def cpu_ns(self) -> int:
        return time.process_time_ns()

    async def sleep_until(self, at_ns: int) -> None:
        while (left := at_ns - self.now_ns()) > 0:
            await asyncio.sleep(left / 1e9)

    async def sleep_until_or(self, at_ns: int, event: asyncio.Event) -> bool:
        while (left := at_ns - self.now_ns()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), left / 1e9)
                return True
        return event.is_set()
