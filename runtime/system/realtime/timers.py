"""Calls and sleeps to the nanosecond, never before their moment; and what the wall clock shows."""

from __future__ import annotations

import asyncio
import ctypes
import os
import selectors
import time
from collections.abc import Callable
from math import ceil

SECOND_NS = 10**9


def call_at(at_ns: int, action: Callable[[], None]) -> None:
    """At or after the moment (CLOCK_MONOTONIC). The loop's own timers are early by its clock's
    resolution at most, which is several ms in virtual time."""
    if time.monotonic_ns() >= at_ns:
        action()
    else:
        asyncio.get_running_loop().call_at(at_ns / 1e9, call_at, at_ns, action)


class ExactSelector(selectors.EpollSelector):
    """Where an event loop sleeps. epoll_wait(2) counts in whole milliseconds, so a loop of asyncio
    wakes up to one too late; here a timerfd(2) ends the sleep. OSError."""

    def __init__(self) -> None:
        super().__init__()
        self._timer = _Timer()
        self.register(self._timer, selectors.EVENT_READ)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            ready = super().select(timeout)
        else:
            self._timer.start(ceil(timeout * SECOND_NS))
            ready = super().select(None)
        if not any(key.fileobj is self._timer for key, _ in ready):
            return ready
        self._timer.stop()  # or it stays readable
        return [one for one in ready if one[0].fileobj is not self._timer]

    def close(self) -> None:
        self._timer.close()
        super().close()


class _Timer:
    """Owns a descriptor that is readable once the time is over. OSError."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor: int = self._library.timerfd_create(time.CLOCK_MONOTONIC, flags)
        if self._descriptor < 0:
            raise _error()

    def fileno(self) -> int:
        return self._descriptor

    def start(self, left_ns: int) -> None:
        """From now on; a time that was going on is forgotten."""
        # struct itimerspec: the interval of repeats, of which there are none, and the time left.
        setting = (ctypes.c_long * 4)(0, 0, *divmod(left_ns, SECOND_NS))
        if self._library.timerfd_settime(self._descriptor, 0, setting, None) != 0:
            raise _error()

    def stop(self) -> None:
        self.start(0)

    def close(self) -> None:
        os.close(self._descriptor)


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


READINGS = 5  # of both clocks; the pair that was read in the least time counts

Clock = Callable[[], int]


def unix_ns(
    monotonic_ns: int, monotonic: Clock = time.monotonic_ns, wall: Clock = time.time_ns
) -> int:
    """A moment of CLOCK_MONOTONIC as ns since 1970 (UTC), as the wall clock is set now."""
    found = min(_wall_reading(monotonic, wall) for _ in range(READINGS))
    return monotonic_ns + found[1]


def _wall_reading(monotonic: Clock, wall: Clock) -> tuple[int, int]:
    """How long it took, and the wall clock less the other one in the middle of that time."""
    before = monotonic()
    shown = wall()
    after = monotonic()
    return after - before, shown - (before + after) // 2
