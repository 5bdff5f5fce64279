"""What all who look at a run are told, made once: a picture of all, and the updates that follow it.

Input: a page that grows (runtime/page/growing_page.py). Output: server-sent events. Each listener
has a queue of its own, of bounded size: one that does not take what it is told is cut off, and
nobody waits for it. The files are read in a thread; nobody asks the run for anything.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from compiler.extension import is_held
from compiler.plan.reader import Plan
from runtime.errors import RunError
from runtime.options import VIRTUAL, RunOptions

TICK_SECONDS = 0.1  # between two looks at events and logs
GROWTH_SECONDS = 0.25  # between two updates of what is drawn over time
MOST_LISTENERS = 64
MOST_WAITING_BYTES = 8 << 20  # of updates that one has not taken
MOST_SINCE_BYTES = 4 << 20  # of updates behind a picture; then there is another one
T = TypeVar("T")
_STATE, _UPDATE, _END = "state", "update", "end"


class Growing(Protocol):
    """What a feed tells of."""

    options: RunOptions
    plan: Plan
    ended: bool

    def whole(self) -> dict[str, Any]: ...
    def news(self) -> dict[str, Any]: ...
    def growth(self) -> dict[str, Any]: ...
    def end(self) -> dict[str, Any] | None: ...


class LaggingError(Exception):
    """A listener does not take what it is told."""


class Listener:
    """One who is told everything from a picture on."""

    def __init__(self, messages: list[bytes], *, last: bool) -> None:
        self._messages = deque(messages)
        self._news = asyncio.Event()
        self._waiting = 0  # bytes that have come since
        self.is_last = last  # nothing comes behind what is there
        self.lags = False

    def tell(self, message: bytes, *, last: bool) -> None:
        self.is_last = last
        self._waiting += len(message)
        if self._waiting > MOST_WAITING_BYTES and not last:
            self.lags = True
            self._messages.clear()
        else:
            self._messages.append(message)
        self._news.set()

    async def next(self) -> bytes | None:
        """None at the end. LaggingError."""
        while not self._messages:
            if self.lags:
                raise LaggingError
            if self.is_last:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._waiting = max(self._waiting - len(message), 0)
        return message


Held = Callable[[], int | None]


class Feed:
    """`api`: where the page finds what it may do. `held`: where a run in virtual time says that its
    time is held, whoever holds it (RunError)."""

    def __init__(self, page: Growing, api: str, held: Held | None = None) -> None:
        self._page, self._api, self._held = page, api, held
        self._lock = asyncio.Lock()  # a picture and the updates behind it fit together
        self._listeners: set[Listener] = set()
        self._picture: bytes | None = None
        self._since: list[bytes] = []
        self._grown_at = 0.0
        self._live: dict[str, Any] = {}
        self._digest = ""
        self._time_held_ns: int | None = None
        self._damage = ""
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Until the run has ended, and has been told to the end."""
        while not self.ended.is_set():
            async with self._lock:
                name, update = await asyncio.to_thread(self._step)
                if update:
                    self._tell(name, encode(name, update))
            if not self.ended.is_set():
                await asyncio.sleep(TICK_SECONDS)

    def _step(self) -> tuple[str, Mapping[str, Any]]:
        try:
            grows = time.monotonic() - self._grown_at >= GROWTH_SECONDS
            if grows and (whole := self._page.end()) is not None:
                return _END, {**whole, "live": None}
            found = {**self._page.news()}
            if grows:
                self._grown_at = time.monotonic()
                found.update(self._page.growth())
                self._look_at_time()
            if self._page.plan.digest != self._digest:
                found["live"] = self._lives()
            return _UPDATE, found
        except (RunError, OSError) as error:
            said, self._damage = self._damage, str(error)
            return _UPDATE, {} if said == self._damage else {"notes": [self._damage]}

    def _lives(self) -> dict[str, Any]:
        self._digest = self._page.plan.digest
        options = self._page.options
        self._live = {"api": self._api, "held": is_held(self._page.plan)}
        if options.time == VIRTUAL:
            self._live["time_held_ns"] = self._time_held_ns
            self._live["virtual"] = True
        return self._live

    def _look_at_time(self) -> None:
        """It may be held, or go on, by a command."""
        if self._held is not None and self._page.options.time == VIRTUAL:
            with suppress(RunError):  # the run is getting ready, or ends
                if (at_ns := self._held()) != self._time_held_ns:
                    self.hold_time(at_ns)

    def hold_time(self, at_ns: int | None) -> None:
        """In virtual time: everything stands still there; None: it goes on."""
        self._time_held_ns, self._digest = at_ns, ""  # who listens is told

    def _tell(self, name: str, message: bytes) -> None:
        last = name == _END
        self._since.append(message)
        if last:
            self._picture, self._since = message, []
            self.ended.set()
        elif sum(map(len, self._since)) > MOST_SINCE_BYTES:
            self._picture, self._since = None, []
        for listener in self._listeners:
            listener.tell(message, last=last)

    async def read(self, what: Callable[[], T]) -> T:
        """In the thread in which the page grows, while it does not. What `what` raises."""
        async with self._lock:
            return await asyncio.to_thread(what)

    def whole(self) -> dict[str, Any]:
        """All that is known, for `read`. RunError."""
        live = None if self._page.ended else self._live or self._lives()
        return {**self._page.whole(), "live": live}

    async def listen(self) -> Listener | None:
        """Somebody who is told everything from now on; None if there are too many. RunError."""
        async with self._lock:
            if len(self._listeners) >= MOST_LISTENERS:
                return None
            if self._picture is None:
                whole = await asyncio.to_thread(self.whole)
                self._picture, self._since = encode(_STATE, whole), []
            listener = Listener([self._picture, *self._since], last=self.ended.is_set())
            self._listeners.add(listener)
            return listener

    @property
    def is_listened_to(self) -> bool:
        return bool(self._listeners)

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)


def encode(name: str, value: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "backslashreplace")
