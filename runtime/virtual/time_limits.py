"""How far a guest's time may go: as far as everybody lets it who holds it.

    limits = TimeLimits(page)
    at_ns = await limits.stop(me)   # time stands still there, and all that was due has been done
    limits.release(me)

What a moment is: everything has been done that was due by then, and nothing is done that is due
later. The guest waits there and computes nothing, so whatever comes to it then comes at the same
point of its work each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from runtime.errors import RunError
from runtime.virtual.clockpage import ClockPage, ClockReading, State

LOOK_SECONDS = 0.002
STOP_SECONDS = 8.0  # for a guest to come to a stop: less than who asks for it waits
TICK_SECONDS = 0.005
LOOK_NS = 256  # what a look at a clock takes in there
FREE_TURNS = (
    1_000_000  # of what a question has to do in there: a second's, for a loop that never ends
)
LEAD_NS = 50_000_000  # how far ahead of a guest that is slower the limit may get


class TimeLimits:
    """Whoever holds time is an object; each has one limit, of the guest's CLOCK_MONOTONIC."""

    def __init__(self, page: ClockPage) -> None:
        self._page = page
        self._limits: dict[object, int] = {}
        self._moments: list[int] = []  # at which somebody is going to act, in order
        self._acting: object | None = None
        self._asking = 0
        self._least_ns = 0  # nobody holds it before this
        self._is_over = False

    def read(self) -> ClockReading:
        return self._page.read()

    def goes_on(self) -> None:
        """Of a guest that stands still, just before it gets something to do."""
        self._page.goes_on()

    def set(self, holder: object, limit_ns: int) -> None:
        if not self._is_over:
            self._limits[holder] = limit_ns
            self._apply()

    def release(self, holder: object) -> None:
        self._limits.pop(holder, None)
        self._apply()

    def expect(self, moments: Sequence[int]) -> None:
        """Time stands still at each of these until it is passed."""
        self._moments = [*moments]
        self._apply()

    def passed(self, at_ns: int) -> None:
        """Somebody acts at this moment, and holds time meanwhile."""
        if self._moments[:1] == [at_ns]:
            del self._moments[0]
            self._apply()

    @contextmanager
    def acting(self, holder: object) -> Iterator[None]:
        """What it does at its moment takes some time, and nobody else holds that."""
        self._acting = holder
        self._apply()
        try:
            yield
        finally:
            self._acting = None
            self._apply()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Something is asked of the guest: where time stands still the answer takes none of it. A
        look at a clock that has begun before ends first."""
        self._asking += 1
        self._page.free(FREE_TURNS)
        if (end_ns := self._end_of_look()) is not None:
            self._least_ns = end_ns
            self._page.goes_on()
            self._apply()
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._page.free(0)

    def _end_of_look(self) -> int | None:
        """Of one for which the guest waits where time stands still."""
        reading, limit_ns = self._page.read(), self._page.limit_ns
        if limit_ns is None or reading.next_ns is None or reading.state != State.WAITS:
            return None
        least_ns = max(limit_ns, reading.now_ns)
        return reading.next_ns if reading.next_ns <= least_ns + LOOK_NS else None

    def end(self) -> None:
        """The run is to end: nobody holds its time any more."""
        self._is_over = True
        self._limits.clear()
        self._moments.clear()
        self._apply()

    def of_others(self, holder: object) -> int | None:
        """How far all others let it go; None: as far as it likes."""
        found = [ns for one, ns in self._limits.items() if one is not holder]
        return min([*found, *self._moments[:1]], default=None)

    def _apply(self) -> None:
        limit_ns = self._limits.get(self._acting)
        if limit_ns is None:
            limit_ns = min([*self._limits.values(), *self._moments[:1]], default=None)
        if limit_ns is not None:
            limit_ns = max(limit_ns, self._least_ns)
        if limit_ns != self._page.limit_ns:
            self._page.limit_ns = limit_ns

    def stands(self, at_ns: int) -> bool:
        """Whether it waits at this moment, for whoever holds it there."""
        reading = self._page.read()
        waits = reading.next_ns is None or reading.next_ns > at_ns
        return reading.state == State.WAITS and waits

    async def settle(self, at_ns: int) -> None:
        """Where time stands still: until all that was due has been done, which takes looks at a
        clock, though no time is left for them."""
        with self.asking():
            while not self.stands(at_ns):
                await asyncio.sleep(LOOK_SECONDS)

    async def until(self, at_ns: int, seconds: float = STOP_SECONDS) -> None:
        """Until time stands still at this moment. RunError if that takes longer."""
        end = time.monotonic() + seconds
        while not self.stands(at_ns):
            self._check(end)
            await asyncio.sleep(LOOK_SECONDS)

    async def stop(self, holder: object, seconds: float = STOP_SECONDS) -> int:
        """Stops time for `holder`, as soon as the guest comes to a pause, and returns the moment at
        which it stands. RunError if that takes longer."""
        end = time.monotonic() + seconds
        self.set(holder, 0)
        try:
            while self._page.read().state != State.WAITS:
                self._check(end)
                await asyncio.sleep(LOOK_SECONDS)
            others_ns, at_ns = self.of_others(holder), self._page.read().now_ns
            at_ns = at_ns if others_ns is None else min(at_ns, others_ns)
            self.set(holder, at_ns)
            await self.until(at_ns, max(end - time.monotonic(), 0))
        except BaseException:
            self.release(holder)
            raise
        return at_ns

    def _check(self, end: float) -> None:
        if self._is_over or self._page.read().state == State.ENDED:
            raise RunError("the run has ended, or is ending")
        if time.monotonic() > end:
            raise RunError(
                f"the run's time did not come to a stop within {STOP_SECONDS:.0f} s",
                "one of its programs may compute without a pause, and time stops where all of them"
                " wait; or this machine is very busy: try again",
            )


class RealPace:
    """Virtual time that goes no faster than real time, for as long as somebody types at a terminal
    in the guest: while a person thinks nothing happens in there, and hours would go by."""

    def __init__(self, limits: TimeLimits) -> None:
        self._limits = limits
        self._limit_ns = 0
        self._holders = 0
        self._moving: asyncio.Task[None] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._holders += 1
        if self._moving is None:
            self._limit_ns = self._limits.read().now_ns
            self._limits.set(self, self._limit_ns)
            self._moving = asyncio.get_running_loop().create_task(self._move())
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0 and self._moving is not None:
                self._moving.cancel()
                self._moving = None
                self._limits.release(self)

    async def _move(self) -> None:
        before_ns = time.monotonic_ns()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now_ns = time.monotonic_ns()
            self.advance(now_ns - before_ns)
            before_ns = now_ns

    def advance(self, real_ns: int) -> None:
        """So much real time has gone by."""
        limit_ns = self._limit_ns + real_ns
        reading, others_ns = self._limits.read(), self._limits.of_others(self)
        # It works, or stands still for somebody else, and is not to catch up afterwards.
        if reading.state != State.WAITS or (others_ns is not None and others_ns < limit_ns):
            limit_ns = min(limit_ns, reading.now_ns + LEAD_NS)
        self._limit_ns = limit_ns
        self._limits.set(self, limit_ns)


class NoPace(RealPace):
    """Of a run whose time somebody else holds: a command's terminal moves it nowhere."""

    @contextmanager
    def held(self) -> Iterator[None]:
        yield
