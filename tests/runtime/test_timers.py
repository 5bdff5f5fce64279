"""Nothing is called before its moment, whatever the loop thinks of its clock."""

from __future__ import annotations

import asyncio
import time

from runtime.system.realtime import timers


def test_a_coarse_clock_makes_nothing_early() -> None:
    async def whole() -> int:
        loop = asyncio.get_running_loop()
        loop._clock_resolution = 3600.0  # type: ignore[attr-defined]  # to the loop all is due
        due_ns = time.monotonic_ns() + 30_000_000
        called: asyncio.Future[int] = loop.create_future()
        timers.call_at(due_ns, lambda: called.set_result(time.monotonic_ns()))
        loop.call_soon(lambda: None)  # it looks at its timers after this
        return await called - due_ns

    assert asyncio.run(whole()) >= 0
