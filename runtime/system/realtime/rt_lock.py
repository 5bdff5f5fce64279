"""Turns at working in the real-time class, of the processes of a run on one machine.

Four agents that wake together would keep a program from its processor four times as long as one.
So they share a page of memory and a lock: one of them works at a time, and when they have worked
for PIECE_NS on end nobody does for REST_NS. Who waits for the lock sleeps until it is free: those
that looked at it now and then took the rests of the others for that. Nobody waits longer than his
patience: one that has stopped, or waits for a disk in the midst of its turn, holds nobody up.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import struct
import time

PIECE_NS = 150_000
REST_NS = 100_000
PATIENCE_NS = 3_000_000
MOST = 8  # agents: more would only wait for each other
SIZE = 16

_STATE = struct.Struct("=QQ")  # how long the present stretch of work is; when it was last added to


class _PatienceEndedError(Exception):
    """The alarm while a lock is waited for."""


class Turns:
    """Of a main thread, which has SIGALRM for itself; what is installed for it is put back.

    With a descriptor of `make` those of all processes that have it; without, our own alone."""

    def __init__(self, descriptor: int = -1, patience_ns: int = PATIENCE_NS) -> None:
        self._patience_ns = patience_ns
        self._lock = -1
        self._is_waiting = False
        if descriptor < 0:
            self._page = mmap.mmap(-1, SIZE)
            return
        # A lock belongs to an opening of a file, so each process opens it anew.
        self._lock = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        self._page = mmap.mmap(self._lock, SIZE)

    def take(self) -> tuple[int, bool]:
        """Waits for its turn. Returns how long the present stretch of work is already, in ns, and
        whether it is our turn: False if patience has ended."""
        is_ours = self._wait()
        stretch_ns, at_ns = _STATE.unpack(self._page[:])
        rested_ns = time.monotonic_ns() - at_ns
        if 0 <= rested_ns < REST_NS:
            if stretch_ns < PIECE_NS:
                return stretch_ns, is_ours
            time.sleep((REST_NS - rested_ns) / 1e9)
        self._page[:] = _STATE.pack(0, time.monotonic_ns())
        return 0, is_ours

    def _wait(self) -> bool:
        if self._lock < 0:
            return True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return self._wait_asleep()

    def _wait_asleep(self) -> bool:
        before = signal.signal(signal.SIGALRM, self._alarm)  # no call goes on after it
        try:
            self._is_waiting = True
            signal.setitimer(signal.ITIMER_REAL, self._patience_ns / 1e9)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._is_waiting = False
        except _PatienceEndedError:
            return False  # should the lock have come at the same moment, `give` frees it
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            signal.siginterrupt(signal.SIGALRM, False)
        return True

    def _alarm(self, _number: int, _frame: object) -> None:
        if self._is_waiting:
            self._is_waiting = False
            raise _PatienceEndedError

    def give(self, stretch_ns: int) -> None:
        """Its turn is over; the stretch of work is so long by now."""
        self._page[:] = _STATE.pack(stretch_ns, time.monotonic_ns())
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)


def make() -> int:
    """A descriptor for Turns, to be handed to other processes. OSError."""
    descriptor = os.memfd_create("tstorm-turns", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, SIZE)
    return descriptor
