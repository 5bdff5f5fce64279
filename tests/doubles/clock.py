"""A clock that is none: time passes while somebody sleeps by it, and when a test says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass
class FakeClock:
    """In the place of an agent's clock (runtime.agent.clock), of the module `time`, or of a
    function that returns ns. `step_ns` more pass whenever somebody looks."""

    now: int = 0  # ns
    step_ns: int = 0

    def now_ns(self) -> int:
        self.now += self.step_ns
        return self.now

    __call__ = monotonic_ns = now_ns

    def machine_ns(self, at_ns: int) -> int:
        return at_ns

    def agent_ns(self, machine_ns: int) -> int:
        return machine_ns

    def cpu_ns(self) -> int:
        return 7

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)

    async def sleep_until(self, at_ns: int) -> None:
        self.now = max(self.now, at_ns)
        await asyncio.sleep(0)

    async def sleep_until_or(self, at_ns: int, event: asyncio.Event) -> bool:
        if not event.is_set():
            await self.sleep_until(at_ns)
        return event.is_set()
