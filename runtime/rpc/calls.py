"""Requests and answers over a channel: the coordinator asks, an agent answers in order.

`{"do": …}` is answered by `{"ok": {…}}` or by `{"error": TEXT, "remedy": TEXT}`, in the order of
the requests. `{"say": …}` is what an agent says on its own, between answers.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.errors import RunError, fail
from runtime.rpc.jsonobject import encode
from runtime.rpc.secure import Channel, ChannelError

UNREAD_SECONDS = 0.5  # to read what came while this process did something else
TEXT_LENGTH = 2000  # of an error's words that are believed

OnSay = Callable[[dict[str, Any]], None]
Handler = Callable[[dict[str, Any], int], Awaitable[Mapping[str, object]]]


class RefusedError(RunError):
    """The agent says no, and why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent: one that many agents get is encoded once."""

    what: str  # is to be done
    data: bytes

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Request:
        """ValueError for what is not JSON."""
        return cls(str(fields.get("do")), encode(fields))

    def extended(self, fields: Mapping[str, object]) -> Request:
        """With fields of one agent's own behind those that all get; none of them twice."""
        return Request(self.what, self.data[:-1] + b"," + encode(fields)[1:])


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent answered; when it was asked and when the answer came (CLOCK_MONOTONIC, ns)."""

    value: dict[str, Any]
    asked_ns: int
    answered_ns: int


@dataclass(slots=True)
class _Question:
    what: str
    seconds: float
    asked_ns: int
    future: asyncio.Future[Answer]


class Asker:
    """The coordinator's side of a channel; `on_say` gets what the agent says on its own.

    An answer that does not come in time, or is none, ends the channel: what comes later could
    not be told from the answer to something else.
    """

    def __init__(self, channel: Channel, on_say: OnSay) -> None:
        self.channel = channel
        self._on_say = on_say
        self._questions: deque[_Question] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._reader = asyncio.get_running_loop().create_task(self._read())

    async def ask(self, request: Mapping[str, object] | Request, seconds: float) -> Answer:
        """Sends at once, then waits.

        `seconds` count from the answer before, so a short question may be asked behind a long one.
        Raises RefusedError if the agent refuses, ChannelError if it is lost or does not answer.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        sent = request if isinstance(request, Request) else Request.of(request)
        asked = time.monotonic_ns()
        self.channel.send(sent.data)
        self._questions.append(_Question(sent.what, seconds, asked, future))
        if len(self._questions) == 1:
            self._watch()
        return await future

    def _watch(self) -> None:
        """Gives the oldest question its time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._questions:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._questions[0].seconds, self._overdue)

    def _overdue(self) -> None:
        """Was this process busy for so long, the answer may be here and not read yet."""
        self._timer = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        question = self._questions[0]
        reason = f"no answer to `{question.what:.40}` within {question.seconds:g} s"
        self.channel.give_up(reason, "silent")

    async def _read(self) -> None:
        try:
            while True:
                received = await self.channel.receive()
                if "say" in received.message:
                    self._on_say(received.message)
                else:
                    self._answer(received.message, received.at_ns)
        except RunError as error:
            self._fail_all(error.message)
        except BaseException as error:
            # A fault of ours in on_say: without the channel nobody could take it for a good run.
            self.channel.give_up(f"its message could not be handled: {error!r}", "bad_messages")
            self._fail_all("its channel was closed")
            raise

    def _fail_all(self, reason: str) -> None:
        while self._questions:
            fail(self._questions.popleft().future, ChannelError(reason))
        self._watch()

    def _answer(self, message: dict[str, Any], now: int) -> None:
        value, error = message.get("ok"), message.get("error")
        if not self._questions or (isinstance(value, dict) == isinstance(error, str)):
            self.channel.give_up("it sent an invalid answer", "bad_messages")
            raise ChannelError(f"{self.channel.peer} is gone: it sent an invalid answer")
        question = self._questions.popleft()
        self._watch()
        if question.future.done():
            return  # nobody waits for it any more
        if isinstance(value, dict):
            question.future.set_result(Answer(value, question.asked_ns, now))
        else:
            remedy = str(message.get("remedy", ""))
            words = RefusedError(f"{error:.{TEXT_LENGTH}}", f"{remedy:.{TEXT_LENGTH}}")
            fail(question.future, words)

    async def close(self) -> None:
        """Goodbye; waits until the connection is over."""
        self.channel.close()
        await asyncio.wait({self._reader})


class AgentEnd:
    """An agent's side of its channels, of which the last one counts: it answers requests (see
    `answer`) and says things on its own. What is said while no coordinator is there is kept for the
    next one, the last `most` messages of it."""

    def __init__(
        self, handler: Handler, most: int, last: Callable[[], bool] = lambda: False
    ) -> None:
        self.channel: Channel | None = None
        self.serving: set[asyncio.Task[None]] = set()
        self._handler, self._last = handler, last
        self._unsaid: deque[Mapping[str, object]] = deque(maxlen=most)

    @property
    def is_connected(self) -> bool:
        return self.channel is not None and not self.channel.over

    def welcome(self, channel: Channel) -> None:
        """A coordinator is there."""
        self.channel = channel
        while self._unsaid and not channel.over:
            channel.send(self._unsaid.popleft())
        task = asyncio.get_running_loop().create_task(answer(channel, self._handler, self._last))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    def say(self, message: Mapping[str, object]) -> None:
        if self.channel is not None and not self.channel.over:
            try:
                self.channel.send(message)
                return
            except ChannelError:
                pass  # gone in this moment
        self._unsaid.append(message)

    def forget(self) -> None:
        """Nobody is to hear what is kept."""
        self._unsaid.clear()


async def answer(
    channel: Channel, handler: Handler, last: Callable[[], bool] = lambda: False
) -> None:
    """The agent's side: answers requests, one after the other, until the channel is over.

    `handler` gets the request and when it came (CLOCK_MONOTONIC, ns). A RunError of its is the
    answer; so is a request without what is needed. Any other error is a fault of ours: it ends the
    channel, so that nobody waits, and is raised. When `last()` is true after an answer, the channel
    is closed.
    """
    while True:
        try:
            received = await channel.receive()
            channel.send(await _answered(handler, received.message, received.at_ns))
        except ChannelError:
            return
        except Exception as error:
            channel.give_up(f"a request could not be dealt with: {error!r}", "broken")
            raise
        if last():
            channel.close()
            return


async def _answered(handler: Handler, request: dict[str, Any], now: int) -> dict[str, object]:
    try:
        return {"ok": dict(await handler(request, now))}
    except ChannelError:
        raise
    except RunError as error:
        return {"error": error.message, "remedy": error.remedy}
    except (KeyError, TypeError, ValueError) as error:
        return {"error": f"not a request: {type(error).__name__} {error}", "remedy": ""}
