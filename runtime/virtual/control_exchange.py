"""The control socket of a run in virtual time, on the host: what is asked there is passed on over
the line to the guest, which answers (runtime.virtual.inside). Several calls may be under way.

The first line of a connection is the request. `enter` is answered here: a guest's processes are
nobody else's to enter, so a command is asked for with `exec`; then lines go both ways until the
guest says that it is over or the peer hangs up. While a command has a terminal, virtual time goes
no faster than real time.

What is about time is answered here, too, and the guest hears nothing of it:

    {"ask": "hold time"}, {"ask": "go time"}, {"ask": "held time"}
    {"ask": "stop"}  time stands still until the peer hangs up. Meanwhile it may send an action as a
                     second line, which is passed on; so an action comes to the guest at a moment
                     that can be told, and is the same when the same comes again at that moment
                     ("at_ns" in the request)
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from runtime import say
from runtime.errors import RunError
from runtime.options import VIRTUAL
from runtime.rpc.control import ControlServer, encode, read_request, refusal
from runtime.virtual.line import PARTS, READ_BYTES, CallMessage, Lines, call_message, is_part
from runtime.virtual.time_limits import LOOK_SECONDS, STOP_SECONDS, RealPace, TimeLimits

ANSWER_SECONDS = 8.0  # for the first answer: less than who asks waits for it
REQUEST_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0
ACTION_SECONDS = 600.0  # to compile an action: so long a peer that says nothing stops time
ACTION_NS = 1_000_000  # virtual time for it to be taken, or as often that as it takes
BEGIN_SECONDS = 6.0  # for a run that is held before it has begun
STEP_NS = 5_000_000  # of a run that has not begun: less than it knows that before
_HELD = "by hand"  # who holds time that `tstorm hold --time` has stopped
_OF_TIME = frozenset(("hold time", "go time", "held time"))
_Tell = Callable[[Mapping[str, object]], None]


class ControlExchange:
    """`send` puts a record on the line; `asked` is told of every question that the guest gets.
    While a command has a terminal, `pace` is held. `begun`: the guest's CLOCK_MONOTONIC at time 0,
    0 before it is known; `notice` tells whoever follows the run."""

    def __init__(
        self,
        path: Path,
        send: _Tell,
        asked: Callable[[str], None],
        limits: TimeLimits,
        pace: RealPace,
        begun: Callable[[], int] = int,
        notice: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._limits = limits
        self._pace = pace
        self._begun = begun
        self._notice = notice
        self._held_ns: int | None = None  # where time is held by hand
        self._turn = asyncio.Lock()  # of whoever stops time
        self._send = send
        self._asked = asked
        self._calls: dict[int, _Call] = {}
        self._count = 0
        self._server = ControlServer(path, self._converse)

    def hear(self, record: Mapping[str, Any]) -> None:
        """What the guest says about a call. RunError if it makes no sense."""
        message = call_message(record)
        if not 0 < message.call <= self._count:
            raise RunError("the guest answers what nobody asked")
        if message.call in self._calls:  # who asked may have gone meanwhile
            self._calls[message.call].hear(message)

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
        if request.get("ask") == "stop":
            await self._stopped(connection, request)
            return
        if request.get("ask") in _OF_TIME:
            answer = encode(await self._of_time(request["ask"]))
            await asyncio.get_running_loop().sock_sendall(connection, answer)
            return
        if type(request.get("ask")) is not str:
            raise RunError("not a request")
        self._asked(request["ask"])
        with self._pace.held() if request.get("terminal") else nullcontext():
            await self._called(connection, request)

    async def _called(self, connection: socket.socket, request: Mapping[str, Any]) -> None:
        more = {"time_held_ns": self._since_begin(self._held_ns)} if self._held_ns else {}
        call = self._call(connection, more if request["ask"] == "state" else {})
        try:
            with self._limits.asking():
                await call.carry_out(request)
        finally:
            del self._calls[call.number]

    def _call(self, connection: socket.socket, more: Mapping[str, object]) -> _Call:
        self._count += 1
        call = self._calls[self._count] = _Call(self._count, connection, self._send, more)
        return call

    def _since_begin(self, at_ns: int) -> int:
        return at_ns - self._begun()

    # -- time that stands still -------------------------------------------------------------------

    async def _of_time(self, asked: str) -> Mapping[str, object]:
        if asked == "held time":  # since the start; None: it goes on
            return {"time_held_ns": self._since_begin(self._held_ns) if self._held_ns else None}
        return await self._hold() if asked == "hold time" else self._go()

    async def _hold(self) -> Mapping[str, object]:
        async with self._turn_of_one():
            if self._held_ns is not None:
                raise RunError("its time is held already", "tstorm go lets it go on")
            end = time.monotonic() + BEGIN_SECONDS
            held_ns = await self._limits.stop(_HELD)
            try:
                held_ns = await self._at_the_beginning(held_ns, end)
            except BaseException:
                self._limits.release(_HELD)
                raise
            self._held_ns = held_ns
        at_ns = self._since_begin(held_ns)
        self._notice(f"time is held at {say.seconds(at_ns)}: tstorm go lets it go on")
        return {"time_held_ns": at_ns}

    async def _at_the_beginning(self, at_ns: int, end: float) -> int:
        """Of a run that has not begun yet, time goes on to its first moment at which something
        happens: by steps, since the guest says when time 0 is once it is ready. RunError if that
        takes too long."""
        now_ns = at_ns
        while not 0 < self._begun() <= now_ns:
            if time.monotonic() > end:
                raise RunError("the run has not begun yet", "try again when it is at 0s")
            at_ns = self._begun() if self._begun() > at_ns else at_ns + STEP_NS
            self._limits.set(_HELD, at_ns)
            await self._limits.until(at_ns, max(end - time.monotonic(), 0))
            await asyncio.sleep(LOOK_SECONDS)  # for what the guest has said meanwhile
            now_ns = min(self._limits.read().now_ns, at_ns)
        self._limits.set(_HELD, now_ns)
        return now_ns

    @asynccontextmanager
    async def _turn_of_one(self) -> AsyncIterator[None]:
        try:
            await asyncio.wait_for(self._turn.acquire(), STOP_SECONDS)
        except TimeoutError:
            raise RunError("another action is under way", "try again") from None
        try:
            yield
        finally:
            self._turn.release()

    def _go(self) -> Mapping[str, object]:
        """Whether it was held."""
        if self._held_ns is None:
            return {"went": False}
        self._held_ns = None
        self._limits.release(_HELD)
        self._notice("time goes on")
        return {"went": True}

    async def _stopped(self, connection: socket.socket, request: Mapping[str, Any]) -> None:
        """Time stands still until the peer hangs up."""
        loop, holder = asyncio.get_running_loop(), object()
        async with self._turn_of_one():
            try:
                at_ns, begun_ns = await self._stop(holder, request), self._begun()
                if not 0 < begun_ns <= at_ns:
                    raise RunError("the run has not begun yet", "try again when it is at 0s")
                now_ns = max(self._limits.read().now_ns, at_ns)
                told = {"at_ns": at_ns, "stopped_ns": at_ns - begun_ns, "now_ns": now_ns - begun_ns}
                await loop.sock_sendall(connection, encode(told))
                data = await asyncio.wait_for(read_request(connection), ACTION_SECONDS)
                if data:
                    (action,) = Lines("an action").take(data)
                    with self._limits.acting(holder):
                        answer = await self._acted(connection, action, holder, at_ns)
                    await loop.sock_sendall(connection, encode(answer))
                    await asyncio.wait_for(loop.sock_recv(connection, 1), REQUEST_SECONDS)
            finally:
                self._limits.release(holder)

    async def _stop(self, holder: object, request: Mapping[str, Any]) -> int:
        if "at_ns" not in request:
            return await self._limits.stop(holder)
        at_ns = int(request["at_ns"])
        self._limits.set(holder, at_ns)
        await self._limits.until(at_ns)
        self._limits.passed(at_ns)
        return at_ns

    async def _acted(
        self, connection: socket.socket, action: Mapping[str, Any], holder: object, at_ns: int
    ) -> Mapping[str, Any]:
        """What the guest says to it. One that it does not take is a question like others: the run
        goes another way than one without. Looking at the clock takes time in there, and so does an
        action: it has some, wherever time is held."""
        call = self._call(connection, {})
        self._limits.goes_on()
        call.tell(say={**action, "ask": "do"})  # it is there before time may go on
        asking = asyncio.ensure_future(call.answer())
        try:
            while True:
                while not asking.done() and not self._limits.stands(at_ns):
                    await asyncio.sleep(LOOK_SECONDS)
                await asyncio.wait([asking], timeout=LOOK_SECONDS)  # it may have said it already
                if asking.done():
                    break
                at_ns = self._next_step(holder, at_ns)
                if self._held_ns is not None:
                    self._held_ns = at_ns
                    self._limits.set(_HELD, at_ns)
                self._limits.set(holder, at_ns)
            answer = asking.result()
        finally:
            asking.cancel()
            del self._calls[call.number]
        if "ok" not in answer:
            self._asked("do")
        return answer

    def _next_step(self, holder: object, at_ns: int) -> int:
        """How far time goes on for an action. Where others hold it before that, only to what comes
        next: once the guest has answered it goes no further."""
        others_ns, next_ns = self._limits.of_others(holder), self._limits.read().next_ns
        if others_ns is None or others_ns >= at_ns + ACTION_NS or next_ns is None:
            return at_ns + ACTION_NS
        return min(max(next_ns, at_ns + 1), at_ns + ACTION_NS)

    async def close(self) -> None:
        """The run is over, and every call with it. What has been answered is still passed on."""
        self._limits.end()
        for call in self._calls.values():
            call.hear(CallMessage(call.number, over=True))
        await self._server.finish(LAST_WORDS_SECONDS)


class _Call:
    """`more` goes with the first answer."""

    def __init__(
        self, number: int, connection: socket.socket, send: _Tell, more: Mapping[str, object]
    ) -> None:
        self.number = number
        self._connection = connection
        self._send = send
        self._more = more
        self._heard: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()  # None: it is over
        self._room = asyncio.Semaphore(PARTS)  # for input that is on its way

    def hear(self, message: CallMessage) -> None:
        if message.took:
            self._room.release()
        else:
            self._heard.put_nowait(message.say)

    async def carry_out(self, request: Mapping[str, Any]) -> None:
        """RunError if there is no answer."""
        self.tell(say=request)
        listening = asyncio.ensure_future(self._listen())
        answering = asyncio.ensure_future(self._answer())
        both = {listening, answering}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            if not answering.done() or answering.exception() is not None:
                self.tell(over=True)  # nobody listens to the answer any more
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def answer(self) -> Mapping[str, Any]:
        """The one to what was told. RunError if there is none."""
        said = await self._first()
        if said is None:
            raise RunError("the run has ended, or is ending")
        return said

    def tell(
        self, *, say: Mapping[str, Any] | None = None, over: bool = False, took: bool = False
    ) -> None:
        self._send(CallMessage(self.number, say, over, took).to_record())

    async def _first(self) -> Mapping[str, Any] | None:
        try:
            return await asyncio.wait_for(self._heard.get(), ANSWER_SECONDS)
        except TimeoutError:
            raise RunError(
                f"the run did not answer within {ANSWER_SECONDS:.0f} s",
                "one of its programs may compute without a pause, and in virtual time everything"
                " else waits for that; or this machine is very busy",
            ) from None

    async def _answer(self) -> None:
        """Until the guest has said everything."""
        loop = asyncio.get_running_loop()
        said, more = await self._first(), self._more
        while said is not None:
            await loop.sock_sendall(self._connection, encode({**said, **more}))
            more = {}
            if is_part(said):
                self.tell(took=True)
            said = await self._heard.get()

    async def _listen(self) -> None:
        """Until who asked hangs up."""
        loop = asyncio.get_running_loop()
        lines = Lines("what a peer says")
        while data := await loop.sock_recv(self._connection, READ_BYTES):
            for said in lines.take(data):
                if is_part(said):
                    await self._room.acquire()
                self.tell(say=said)
