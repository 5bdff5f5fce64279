"""A moment at which a guest's time is stopped, so that somebody looks around in there.

    still = Standstill(at_ns, act=lambda control: …)
    launch.run(plan, options, places, standstill=still)   # ends when `act` does
    still.status

The run is carried out as ever until then. At the moment `act` is called in a thread, with the run's
control socket, over which commands are started in instances. Meanwhile time goes on by `go_ns` at
most, as fast as it can; afterwards the run ends as one that was interrupted. `stuck` is called once
if `act` goes on and on while time stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runtime.virtual.clockpage import ClockPage, State
from runtime.virtual.control_exchange import RealPace

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

    async def take_place(
        self, page: ClockPage, control: Path, has_begun: Callable[[], bool]
    ) -> None:
        """Waits for the moment, whose limit the page has had from its start on, and acts. `act` may
        raise."""
        while not (has_begun() and _stands(page, self.at_ns)):
            await asyncio.sleep(LOOK_SECONDS)
        page.limit_ns = self.at_ns + self.go_ns
        acting = asyncio.ensure_future(asyncio.to_thread(self.act, control))
        while self.stuck is not None and not acting.done():
            await asyncio.wait([acting], timeout=STUCK_SECONDS)
            if not acting.done() and _stands(page, self.at_ns + self.go_ns):
                self.stuck()
                break
        self.status = await acting
        page.limit_ns = None


def _stands(page: ClockPage, at_ns: int) -> bool:
    reading = page.read()
    waits = reading.next_ns is None or reading.next_ns > at_ns
    return reading.state == State.WAITS and waits


class NoPace(RealPace):
    """Of a run whose time somebody else holds: a command's terminal moves it nowhere."""

    @contextmanager
    def held(self) -> Iterator[None]:
        yield
