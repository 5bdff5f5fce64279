"""Notices when the driver, or the engine that it asks, stood still: stopped, starved or stuck.

The driver asks its event loop to be woken every TICK_NS; what it is woken later is time in which it
did nothing. Who is asked something and does not answer in time is told apart from that: a driver
that stood still saw the answer late by itself. Times are ns of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from runtime.judge.verdict import BOUNDS

TICK_NS = 100_000_000

OnStall = Callable[[str, int], None]  # who, for how long, until now
Now = Callable[[], int]


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that is on its way."""

    at_ns: int
    lost_ns: int  # what the driver had lost until then


class Pulse:
    """`on_stall` is told of every stall that the verdict will count."""

    def __init__(self, myself: str, on_stall: OnStall, now: Now = time.monotonic_ns) -> None:
        self._myself = myself
        self._on_stall = on_stall
        self._now = now
        self._due_ns = 0  # when the loop is to wake next; 0 while nobody watches
        self._lost_ns = 0

    async def run(self) -> None:
        """Watches until it is cancelled."""
        try:
            while True:
                self.expect()
                await asyncio.sleep(TICK_NS / 1e9)
                self.look()
        finally:
            self._due_ns = 0

    def end(self) -> None:
        """What was lost up to now counts, and nothing later."""
        self.look()
        self._on_stall = lambda _who, _for_ns: None

    def expect(self) -> None:
        self._due_ns = self._now() + TICK_NS

    def look(self) -> None:
        """Counts what was lost up to now, once."""
        now = self._now()
        if not self._due_ns or now <= self._due_ns:
            return
        late_ns, self._due_ns = now - self._due_ns, now
        self._lost_ns += late_ns
        if late_ns > BOUNDS["driver_stall"].floor_ns:
            self._on_stall(self._myself, late_ns)

    def asked(self) -> PendingQuestion:
        self.look()
        return PendingQuestion(self._now(), self._lost_ns)

    def answered(self, asked: PendingQuestion, who: str) -> None:
        """Also if no answer came."""
        self.look()
        took_ns = self._now() - asked.at_ns - (self._lost_ns - asked.lost_ns)
        if took_ns > BOUNDS["engine_stall"].floor_ns:
            self._on_stall(who, took_ns)
