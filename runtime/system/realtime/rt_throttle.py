"""Rests of a process in the real-time class, so that programs get their processor.

Whoever is in that class runs before every program under test, for as long as it has work. So its
work is cut into pieces, with a rest after each in which any program that waits for this processor
runs (runtime.system.realtime.rt_lock). A timer cuts pieces wherever Python code runs, between two
of its instructions. What it cannot cut, such as a long call of a C library, is measured.

Not in virtual time: there computing takes none, and how much there was is not the same each time.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from runtime.system.realtime.rt_lock import PATIENCE_NS, PIECE_NS, Turns
from runtime.system.realtime.timers import ExactSelector

LEAST_SECONDS = 20e-6  # of a timer

Value = TypeVar("Value")


class Rests:
    """Of the main thread. `longest_ns` is the longest piece so far, in CPU time; `count` is how
    often a piece was cut, `unheld` how often it went on although others were at work."""

    def __init__(self) -> None:
        self.is_on = False
        self.longest_ns = 0
        self.count = 0
        self.unheld = 0
        self._is_preferred = False
        self._turns: Turns | None = None  # while a piece is worked on in the real-time class
        self.descriptor = -1
        self._own = Turns()
        self._began_ns = 0
        self._before_ns = 0  # of the stretch that the present piece goes on with

    def begin(self, descriptor: int = -1, patience_ns: int = PATIENCE_NS) -> None:
        """From now on, with others that have this descriptor (runtime.system.realtime.rt_lock). In
        the main thread; SIGALRM is taken. OSError. Not under user-mode Linux, whose timers are
        signals of another kernel: a rest takes ten times as long there, and programs begin seconds
        late."""
        if is_user_mode_linux():
            return
        self.descriptor = descriptor
        self._own = Turns(descriptor, patience_ns)
        signal.signal(signal.SIGALRM, lambda _number, _frame: self._cut())
        signal.siginterrupt(signal.SIGALRM, False)
        self.is_on = True

    def end(self) -> None:
        """No more of it; the timer, which may have run out already, is not heard."""
        if self.is_on:
            self.is_on = False
            self.sleep()
            signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def counters(self) -> dict[str, int]:
        return {"longest_piece_ns": self.longest_ns, "rests": self.count, "unheld": self.unheld}

    def work(self) -> None:
        """A piece begins, if this thread is in a real-time class: waits until that is in order."""
        if not self._is_preferred:  # once it is, it stays so
            self._is_preferred = is_preferred()
            if not self._is_preferred:
                return
        self._before_ns, is_ours = self._own.take()
        self.unheld += not is_ours
        self._began_ns = time.thread_time_ns()
        self._turns = self._own  # last, since the timer may run out between any two of these lines
        self._set_timer(self._before_ns)

    def sleep(self) -> None:
        """The piece has ended: there is nothing to do."""
        turns, self._turns = self._turns, None
        if turns is None:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        piece_ns = time.thread_time_ns() - self._began_ns
        self.longest_ns = max(self.longest_ns, piece_ns)
        turns.give(self._before_ns + piece_ns)

    def _cut(self) -> None:
        """The timer has run out. It counts time in which others ran, too, and may come late."""
        if self._turns is None:
            return
        stretch_ns = self._before_ns + time.thread_time_ns() - self._began_ns
        if stretch_ns < PIECE_NS:
            self._set_timer(stretch_ns)
            return
        self.count += 1
        self.sleep()
        self.work()

    def _set_timer(self, stretch_ns: int) -> None:
        left = (PIECE_NS - stretch_ns) / 1e9
        signal.setitimer(signal.ITIMER_REAL, max(left, LEAST_SECONDS))


def is_user_mode_linux() -> bool:
    """Whether this kernel is a process of another one."""
    try:
        return b"User Mode Linux" in Path("/proc/cpuinfo").read_bytes()
    except OSError:
        return False


def is_preferred() -> bool:
    """Whether this thread is in a real-time class. musl has no answer, and no way to enter one."""
    try:
        policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    except OSError:
        return False
    return policy in (os.SCHED_RR, os.SCHED_FIFO)


RESTS = Rests()  # of this process


class _RestingSelector(ExactSelector):
    """Where an event loop sleeps: pieces end there by themselves."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not RESTS.is_on or timeout == 0:  # there is something to do: the piece goes on
            return super().select(timeout)
        RESTS.sleep()
        found = super().select(timeout)
        RESTS.work()
        return found


def run(main: Coroutine[Any, Any, Value]) -> Value:
    """As asyncio.run. The loop wakes to the ns, and its thread rests once RESTS has begun."""
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(_RestingSelector())
    ) as runner:
        try:
            return runner.run(main)
        finally:
            RESTS.end()


REAL_TIME_PRIORITY = 1  # below pktd's data thread: whoever carries packets goes first


def prefer(*processes: int) -> str:
    """Real-time scheduling where permitted, for main threads only and not inherited by programs.

    0 is this process. Returns what is in force. pktd's main thread tells when a commit has taken
    effect; late news of it would delay every event. So do agents.
    """
    policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
    try:
        for process in processes:
            os.sched_setscheduler(process, policy, os.sched_param(REAL_TIME_PRIORITY))
    except OSError:
        return "other"
    return "rr"
