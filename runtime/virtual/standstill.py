"""Moments at which a guest's time is stopped.

    still = Standstill(at_ns, act=lambda control: …)      # somebody looks around in there
    launch.run(plan, options, places, standstill=still)   # ends when `act` does
    still.status

The run is carried out as ever until then. At the moment `act` is called in a thread, with the run's
control socket, over which commands are started in instances. Meanwhile time goes on by `go_ns` at
most, as fast as it can; afterwards the run ends as one that was interrupted. `stuck` is called once
if `act` goes on and on while time stands still.

    again = Repetition((at_ns, …), act=lambda directory, control, number: …)
    launch.run(plan, options, places, again=again)        # what was done by hand is done again

At each moment `act` is called in a thread, and the run goes on when it has returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.virtual.time_limits import TimeLimits

LOOK_SECONDS = 0.02
STUCK_SECONDS = 5.0


@dataclass(slots=True)
class Standstill:
    """`at_ns`: of the guest's CLOCK_MONOTONIC."""

    at_ns: int
    act: Callable[[Path], int]
    go_ns: int = 0
    stuck: Callable[[], None] | None = None
    status: int | None = None  # what `act` returned; None: the moment did not come
    late_ns: int = 0  # by so much it stands later: what was due by then takes time

    async def take_place(
        self, limits: TimeLimits, control: Path, has_begun: Callable[[], bool]
    ) -> None:
        """Waits for the moment, whose limit time has had from the start on, and acts. `act` may
        raise."""
        while not (has_begun() and limits.stands(self.at_ns)):
            await asyncio.sleep(LOOK_SECONDS)
        await limits.settle(self.at_ns)
        self.late_ns = max(limits.read().now_ns - self.at_ns, 0)
        limits.set(self.act, self.at_ns + self.go_ns)
        acting = asyncio.ensure_future(asyncio.to_thread(self.act, control))
        while self.stuck is not None and not acting.done():
            await asyncio.wait([acting], timeout=STUCK_SECONDS)
            if not acting.done() and limits.stands(self.at_ns + self.go_ns):
                self.stuck()
                break
        self.status = await acting
        limits.release(self.act)

    def hold(self, limits: TimeLimits) -> None:
        limits.set(self.act, self.at_ns)


@dataclass(frozen=True, slots=True)
class Repetition:
    """`moments`: of the guest's CLOCK_MONOTONIC, in order. `act` stops time for itself, and gets
    the run's directory, its control socket and the number of the moment, from 0 on."""

    moments: Sequence[int]
    act: Callable[[Path, Path, int], None]

    def hold(self, limits: TimeLimits) -> None:
        """From the start of the guest on, so that it cannot go beyond the first moment."""
        limits.expect(self.moments)

    async def take_place(
        self, limits: TimeLimits, directory: Path, control: Path, has_begun: Callable[[], bool]
    ) -> None:
        """`act` may raise."""
        for number, at_ns in enumerate(self.moments):
            while not (has_begun() and limits.stands(at_ns)):
                await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.act, directory, control, number)
            limits.passed(at_ns)
