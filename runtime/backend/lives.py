"""What the runner of the timeline, and `inspect`, ask of an instance, whoever starts and ends its
program: the nursery of this machine (runtime.backend.local.instances), or the agent of its host.

Times are ns of this process's CLOCK_MONOTONIC.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from compiler.plan.types import Node


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended by itself: by `status`, or by `signal` (then status is -1)."""

    status: int
    signal: int

    @property
    def well(self) -> bool:
        return self.status == 0


class Life(Protocol):
    """One incarnation of an instance: `port` is where it is attached."""

    @property
    def port(self) -> int: ...

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when every process of it is dead."""


@dataclass(frozen=True, slots=True)
class Joined:
    """How a join went: when it was carried out, when the program ran, or why it did not."""

    at_ns: int
    started_ns: int | None = None  # None for an instance without a program, too
    error: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """When an instance was asked to leave, and who is leaving if anybody was there."""

    at_ns: int
    life: Life | None


class Lives(Protocol):
    """One instance through all its lives. `state` is 'up', 'cut' or 'down', as the timeline has it;
    whoever follows that sets it, and `start_error`. The rest is of the present life."""

    node: Node
    state: str
    start_error: str  # why its program was not started
    ended: Ended | None  # its program ended by itself
    started: bool  # its program was
    killed: bool  # all of it died, unasked

    @property
    def argv(self) -> tuple[str, ...]:
        """Of the program; empty if there is none."""

    @property
    def present(self) -> Life | None: ...

    def prepare(self) -> asyncio.Future[Any]:
        """Begins to make the next life; the future is done when it is made, or cannot be."""

    async def next_life(self) -> Life:
        """The oldest prepared one, made now if there is none. RunError."""

    def hold(self, life: Life, gate: int) -> None:
        """Has its program wait until the pipe `gate` reads end of file. RunError.

        Only for an instance that was never there: nothing of a life before can be in the way.
        """

    async def join(self, life: Life, opened_ns: int) -> Joined:
        """Starts its program, once all processes of the life before are dead. `opened_ns` is when
        its gate was opened, if it was held."""

    async def leave(self) -> Left:
        """SIGTERM now, SIGKILL after the grace."""

    async def crash(self) -> int:
        """SIGKILL to all of it now. Returns when that was."""
