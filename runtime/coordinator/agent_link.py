"""The coordinator's link to one agent: connects, asks, measures the clock, notices the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.coordinator import says
from runtime.coordinator.clock_offsets import (
    EXCHANGES,
    ClockError,
    ClockExchange,
    ClockRecord,
    Offset,
    measured,
)
from runtime.errors import RunError
from runtime.json_schema import decoded
from runtime.rpc import endpoint, secure
from runtime.rpc.calls import Answer, Asker, RefusedError, Request
from runtime.rpc.secure import ChannelError

RETRY_SECONDS = 0.05
ANSWER_SECONDS = 10.0  # for what an agent does at once; slower is lost
TIME_SECONDS = 5.0  # for a look at its clock: so long a hang may go unnoticed


@dataclass(frozen=True, slots=True)
class _TimeReply:
    """When it was asked and when it has answered, by its own clock, and its wall clock less that
    one."""

    t2: int
    t3: int
    wall: int | None = None


OnSay = Callable[[int, says.Message], None]
OnLost = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Host:
    """Where an agent listens."""

    name: str
    address: str
    port: int = 7474

    def __str__(self) -> str:
        return f"{self.name} ({endpoint.text((self.address, self.port))})"


class AgentError(RunError):
    """An agent refuses something, or says what makes no sense. `host` is its number."""

    def __init__(self, host: int, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.host = host


class LostError(AgentError):
    """An agent is not there: never connected, ended, cut off, or silent."""


class AgentLink:
    """One host of a run. `identity` tells agents' processes apart ('' before the first)."""

    def __init__(self, number: int, host: Host, on_say: OnSay, on_lost: OnLost) -> None:
        self.number = number
        self.host = host
        self.identity = ""
        self.clock = ClockRecord()
        self.wall_ns: int | None = None  # its wall clock less its own, when it was asked last
        self.lost = "not connected"  # why nothing can be asked, '' while it can
        self._on_say = on_say
        self._on_lost = on_lost
        self._asker: Asker | None = None
        self._closed = asyncio.Event()
        self._closed.set()
        self.leaving = False  # the end of the connection is expected: not a loss

    async def connect(self, key: bytes, deadline: float, *, shut: bool = False) -> bool:
        """Tries until `deadline` (of the loop's clock). Whether the process is another than before.

        A link that is `shut` only measures clocks until open(): the agent does not know yet what
        the others do. Raises LostError with the last reason.
        """
        if self._asker is not None:  # half of the connection may be gone, and nobody knows yet
            self._asker.channel.give_up("another connection takes its place", "replaced")
            await self._closed.wait()
        address, port = self.host.address, self.host.port
        try:
            found = await secure.connect_by(deadline, address, port, key, RETRY_SECONDS)
        except ChannelError as error:
            message = f"{self.host.name}: {error.message}"
            raise LostError(self.number, message, error.remedy) from error
        other = found.identity != self.identity
        if other:
            self.clock.restart()
        self.identity, self.leaving = found.identity, False
        self.lost = "it has not been resumed yet" if shut else ""
        asker = Asker(found.channel, self._said)
        self._asker = asker
        self._closed.clear()
        found.channel.closed.add_done_callback(lambda closed: self._over(asker, closed.result()))
        return other

    def open(self) -> None:
        """Ends what connect(shut=True) began."""
        if self._asker is not None:
            self.lost = ""

    def _over(self, asker: Asker, reason: str) -> None:
        if asker is not self._asker:
            return
        self.lost = reason
        self._asker = None
        self._closed.set()
        if not self.leaving:
            self._on_lost(self.number, reason)

    def _said(self, message: dict[str, Any]) -> None:
        try:
            said = says.read(message)
        except RunError as error:
            self._distrust(error.message)
        else:
            self._on_say(self.number, said)

    def _distrust(self, reason: str) -> None:
        if self._asker is not None:
            self._asker.channel.give_up(reason, "bad_messages")

    async def ask(
        self, request: Mapping[str, object] | Request, seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """The answer. Raises AgentError, a LostError if the agent is gone or silent."""
        if self.lost:
            raise LostError(self.number, f"{self.host} is lost: {self.lost}")
        return (await self._ask(request, seconds)).value

    async def ask_shut(self, request: Request, seconds: float = ANSWER_SECONDS) -> None:
        """The same between connect(shut=True) and open()."""
        await self._ask(request, seconds)

    async def _ask(self, asked: Mapping[str, object] | Request, seconds: float) -> Answer:
        asker = self._asker
        request = asked if isinstance(asked, Request) else Request.of(asked)
        if asker is None:
            raise LostError(self.number, f"{self.host} is lost: {self.lost}")
        try:
            return await asker.ask(request, seconds)
        except RefusedError as error:
            what = f"{self.host.name} cannot {request.what}: {error.message}"
            raise AgentError(self.number, what, error.remedy) from error
        except ChannelError as error:
            reason = asker.channel.reason or error.message
            raise LostError(self.number, f"{self.host.name} is lost: {reason}") from error

    async def drained(self) -> None:
        """Until what was sent takes no memory of this process any more."""
        if self._asker is not None:
            await self._asker.channel.drained()

    async def measure(self, exchanges: int = EXCHANGES) -> Offset:
        """Measures the agent's clock, and keeps it in `clock`. Raises LostError."""
        offset = measured([await self._exchange() for _ in range(exchanges)])
        self.clock.add(offset)
        return offset

    async def _exchange(self) -> ClockExchange:
        answer = await self._ask({"do": "time"}, TIME_SECONDS)
        try:
            said = decoded(_TimeReply, answer.value, "its answer")
            self.wall_ns = said.wall
            return ClockExchange(answer.asked_ns, said.t2, said.t3, answer.answered_ns)
        except (ClockError, RunError) as error:
            self._distrust(f"its clock makes no sense: {error}")
            message = f"{self.host.name} is lost: its clock makes no sense: {error}"
            raise LostError(self.number, message) from error

    async def close(self) -> None:
        """Goodbye; waits for the end of the connection."""
        self.leaving = True
        if self._asker is not None:
            await self._asker.close()
        await self._closed.wait()
