"""Nothing is called before its moment, whatever the loop thinks of its clock, and sleeps end by the
nanosecond that was asked for."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from pathlib import Path

import pytest

from runtime.system.realtime import rt_throttle, timers
from runtime.system.realtime.timers import ExactSelector

Ready = list[tuple[selectors.SelectorKey, int]]


def test_a_coarse_clock_makes_nothing_early() -> None:
    async def whole() -> int:
        loop = asyncio.get_running_loop()
        loop._clock_resolution = 3600.0  # type: ignore[attr-defined]  # to the loop all is due
        due_ns = time.monotonic_ns() + 30_000_000
        called: asyncio.Future[int] = loop.create_future()
        timers.call_at(due_ns, lambda: called.set_result(time.monotonic_ns()))
        loop.call_soon(lambda: None)  # it looks at its timers after this
        return await called - due_ns

    assert asyncio.run(whole()) >= 0
    assert rt_throttle.run(whole()) >= 0


def test_epoll_is_never_asked_to_wait_by_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    wait = selectors.EpollSelector.select

    def select(self: selectors.EpollSelector, timeout: float | None = None) -> Ready:
        asked.append(timeout)
        return wait(self, timeout)

    monkeypatch.setattr(selectors.EpollSelector, "select", select)
    selector = ExactSelector()
    before_ns = time.monotonic_ns()
    assert selector.select(0.000_3) == []
    assert time.monotonic_ns() - before_ns >= 300_000
    assert asked == [None]  # for ever: something else ends it
    selector.close()


def test_what_is_ready_ends_a_sleep_and_the_timer_is_no_event() -> None:
    selector = ExactSelector()
    one, other = socket.socketpair()
    with one, other:
        selector.register(one, selectors.EVENT_READ, "data")
        other.send(b"x")
        for timeout in (3600, 0, None):
            assert [key.data for key, _ in selector.select(timeout)] == ["data"]
        one.recv(1)
        assert selector.select(0.001) == []
        assert selector.select(0) == []  # the one that ran out is forgotten
    before = descriptors()
    selector.close()
    assert descriptors() == before - 2


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
