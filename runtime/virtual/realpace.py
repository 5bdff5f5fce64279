"""Virtual time that goes no faster than real time, for as long as somebody types at a terminal in
the guest: while a person thinks nothing happens in there, and hours would go by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from runtime.virtual.clockpage import ClockPage, State

TICK_SECONDS = 0.005
LEAD_NS = 50_000_000  # how far ahead of a guest that is slower the limit may get


class RealPace:
    """Moves the limit of a guest's time while at least one holds it."""

    def __init__(self, page: ClockPage) -> None:
        self._page = page
        self._holders = 0
        self._moving: asyncio.Task[None] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._holders += 1
        if self._moving is None:
            self._page.limit_ns = self._page.read().now_ns
            self._moving = asyncio.get_running_loop().create_task(self._move())
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0 and self._moving is not None:
                self._moving.cancel()
                self._moving = None
                self._page.limit_ns = None

    async def _move(self) -> None:
        before_ns = time.monotonic_ns()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now_ns = time.monotonic_ns()
            self.advance(now_ns - before_ns)
            before_ns = now_ns

    def advance(self, real_ns: int) -> None:
        """So much real time has gone by."""
        limit_ns = (self._page.limit_ns or 0) + real_ns
        reading = self._page.read()
        if reading.state != State.WAITS:  # it works, and is not to catch up afterwards
            limit_ns = min(limit_ns, reading.now_ns + LEAD_NS)
        self._page.limit_ns = limit_ns
