"""Who acts while a guest's time stands still, as the host sees it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runtime.virtual import standstill
from runtime.virtual.clockpage import NEVER, ClockPage, State
from runtime.virtual.time_limits import TimeLimits


def test_who_waits_for_time_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "STUCK_SECONDS", 0.01)
    page = ClockPage.create()
    page._page.state, page._page.next_ns = State.WAITS, NEVER
    told = threading.Event()
    still = standstill.Standstill(5, lambda _: 3 if told.wait(10) else 4, stuck=told.set)
    asyncio.run(still.take_place(TimeLimits(page), Path("control"), lambda: True))
    assert still.status == 3
    page.close()
