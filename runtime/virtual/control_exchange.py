"""The control socket of a run in virtual time, on the host: what is asked there is passed on over
the line to the guest, which answers (runtime.virtual.inside). Several calls may be under way.

The first line of a connection is the request. `enter` is answered here: a guest's processes are
nobody else's to enter, so a command is asked for with `exec`; then lines go both ways until the
guest says that it is over or the peer hangs up. While a command has a terminal, virtual time goes
no faster than real time.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from runtime.driver.control import ControlServer, encode, read_request, refusal
from runtime.errors import RunError
from runtime.options import VIRTUAL
from runtime.virtual.clockpage import ClockPage, State
from runtime.virtual.line import PARTS, READ_BYTES, Lines, is_part

# Virtual time that goes no faster than real time, for as long as somebody types at a terminal in
# the guest: while a person thinks nothing happens in there, and hours would go by.

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


ANSWER_SECONDS = 8.0  # for the first answer: less than who asks waits for it
REQUEST_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0
_Tell = Callable[[Mapping[str, object]], None]


class ControlExchange:
    """`send` puts a record on the line; `asked` is told of every question that the guest gets.
    While a command has a terminal, `pace` is held."""

    def __init__(
        self, path: Path, send: _Tell, asked: Callable[[str], None], pace: RealPace
    ) -> None:
        self._pace = pace
        self._send = send
        self._asked = asked
        self._calls: dict[int, _Call] = {}
        self._count = 0
        self._server = ControlServer(path, self._converse)

    def hear(self, record: Mapping[str, Any]) -> None:
        """What the guest says about a call. RunError if it makes no sense."""
        number = record["call"]
        if type(number) is not int or not 0 < number <= self._count:
            raise RunError("the guest answers what nobody asked")
        if type(record.get("say", {})) is not dict:
            raise RunError("the guest's answer is no object")
        if number in self._calls:  # who asked may have gone meanwhile
            self._calls[number].hear(record)

    async def _converse(self, connection: socket.socket) -> None:
        data = await asyncio.wait_for(read_request(connection), REQUEST_SECONDS)
        if not data:
            return
        try:
            (request,) = Lines("a request").take(data)
            await self._pass_on(connection, request)
        except (RunError, ValueError) as error:
            error = error if isinstance(error, RunError) else RunError("not a request")
            await asyncio.get_running_loop().sock_sendall(connection, encode(refusal(error)))

    async def _pass_on(self, connection: socket.socket, request: Mapping[str, Any]) -> None:
        if request.get("ask") == "enter":
            answer = encode({"time": VIRTUAL})
            await asyncio.get_running_loop().sock_sendall(connection, answer)
            return
        if type(request.get("ask")) is not str:
            raise RunError("not a request")
        self._asked(request["ask"])
        self._count += 1
        call = _Call(self._count, connection, self._send)
        self._calls[self._count] = call
        try:
            with self._pace.held() if request.get("terminal") else nullcontext():
                await call.carry_out(request)
        finally:
            del self._calls[call.number]

    async def close(self) -> None:
        """The run is over, and every call with it. What has been answered is still passed on."""
        for call in self._calls.values():
            call.hear({"over": True})
        await self._server.finish(LAST_WORDS_SECONDS)


class _Call:
    def __init__(self, number: int, connection: socket.socket, send: _Tell) -> None:
        self.number = number
        self._connection = connection
        self._send = send
        self._heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._room = asyncio.Semaphore(PARTS)  # for input that is on its way

    def hear(self, record: Mapping[str, Any]) -> None:
        if record.get("took"):
            self._room.release()
        else:
            self._heard.put_nowait(record)

    async def carry_out(self, request: Mapping[str, Any]) -> None:
        """RunError if there is no answer."""
        self._tell(say=request)
        listening = asyncio.ensure_future(self._listen())
        answering = asyncio.ensure_future(self._answer())
        both = {listening, answering}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            if not answering.done() or answering.exception() is not None:
                self._tell(over=True)  # nobody listens to the answer any more
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    def _tell(self, **words: object) -> None:
        self._send({"call": self.number, **words})

    async def _answer(self) -> None:
        """Until the guest has said everything."""
        loop = asyncio.get_running_loop()
        try:
            record = await asyncio.wait_for(self._heard.get(), ANSWER_SECONDS)
        except TimeoutError:
            raise RunError(
                f"the run did not answer within {ANSWER_SECONDS:.0f} s",
                "one of its programs may compute without a pause, and in virtual time everything"
                " else waits for that; or this machine is very busy",
            ) from None
        while "say" in record:
            await loop.sock_sendall(self._connection, encode(record["say"]))
            if is_part(record["say"]):
                self._tell(took=True)
            record = await self._heard.get()

    async def _listen(self) -> None:
        """Until who asked hangs up."""
        loop = asyncio.get_running_loop()
        lines = Lines("what a peer says")
        while data := await loop.sock_recv(self._connection, READ_BYTES):
            for said in lines.take(data):
                if is_part(said):
                    await self._room.acquire()
                self._tell(say=said)
