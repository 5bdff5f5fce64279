"""The page of memory that a guest in virtual time shares with the host.

The guest's kernel tells there what time it is, what it waits for and which program runs; the host
says how far time may go. The layout is runtime/virtual/kernel/added/arch/um/include/shared/tstorm/
clockpage.h: a change there is a new VERSION here and there.

    page = ClockPage.create()
    … start the kernel with f"tstorm_page=fd:{page.fileno()}" and pass_fds=[page.fileno()]
    page.limit_ns = 5 * 10**9   # virtual time does not jump beyond this; None: no limit
    page.wait(1.0)              # until the guest waits at the limit, or has ended
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

MAGIC = 0x47505354  # "TSPG"
VERSION = 2
NEVER = (1 << 64) - 1
HOST_FROM = 2048  # bytes: from here on the host writes, before it the guest

_FUTEX = 202  # the system call's number on x86-64, the only machine there are such guests on
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1


class State(IntEnum):
    BOOTS = 0  # the kernel has not mapped the page yet
    RUNS = 1
    WAITS = 2  # at the limit, or for input: nothing in the guest is going to happen by itself
    ENDED = 3  # in good order. A kernel that is killed cannot say so.


class _Layout(ctypes.LittleEndianStructure):
    _fields_: ClassVar = [
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("now_ns", ctypes.c_uint64),
        ("next_ns", ctypes.c_uint64),
        ("state", ctypes.c_uint32),
        ("pid", ctypes.c_int32),
        ("comm", ctypes.c_char * 16),
        ("switches", ctypes.c_uint64),
        ("syscalls", ctypes.c_uint64),
        ("jumps", ctypes.c_uint64),
        ("waits", ctypes.c_uint64),
        ("crept_ns", ctypes.c_uint64),
        ("more_of_the_kernel", ctypes.c_ubyte * 1960),
        ("limit_ns", ctypes.c_uint64),
        ("wake_signal", ctypes.c_uint16),
        ("wake_host", ctypes.c_uint16),
        ("watch", ctypes.c_uint32),
        ("creep_ns", ctypes.c_uint64),
        ("free_turns", ctypes.c_uint64),
        ("more_of_the_host", ctypes.c_ubyte * 2016),
    ]


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What a guest said last. The fields are written one by one: a reading is no snapshot."""

    now_ns: int  # virtual time since the kernel started
    next_ns: int | None  # what it last wanted to jump to; None: nothing is ever going to happen
    state: State
    pid: int  # of the program that runs or ran last, in the guest
    program: str  # its name
    switches: int  # from task to task
    syscalls: int  # of programs
    jumps: int  # over time in which nothing happened
    waits: int  # for the host
    crept_ns: int  # time that went on because the host said so (creep)


class ClockPage:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, ctypes.sizeof(_Layout))
        self._page = _Layout.from_buffer(self._memory)
        start = ctypes.addressof(self._page)
        self._state = start + _Layout.state.offset
        self._wake = start + _Layout.wake_signal.offset
        self._system = ctypes.CDLL(None, use_errno=True)

    @classmethod
    def create(cls) -> ClockPage:
        """A page for a guest that is going to start, without a limit. OSError where there is no
        memory for it."""
        descriptor = os.memfd_create("clockpage", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, ctypes.sizeof(_Layout))
        page = cls(descriptor)
        page._page.magic, page._page.version = MAGIC, VERSION
        page._page.watch = 1
        page.limit_ns = None
        return page

    def fileno(self) -> int:
        return self._descriptor

    def read(self) -> ClockReading:
        page = self._page
        return ClockReading(
            now_ns=page.now_ns,
            next_ns=None if page.next_ns == NEVER else page.next_ns,
            state=State(page.state),
            pid=page.pid,
            program=page.comm.decode(errors="replace"),
            switches=page.switches,
            syscalls=page.syscalls,
            jumps=page.jumps,
            waits=page.waits,
            crept_ns=page.crept_ns,
        )

    @property
    def limit_ns(self) -> int | None:
        limit: int = self._page.limit_ns
        return None if limit == NEVER else limit

    @limit_ns.setter
    def limit_ns(self, limit_ns: int | None) -> None:
        """The guest may jump as far as this, and on at once if it waits. It is never stopped in the
        middle of work: reading the clock takes time there, and passes a limit."""
        self._page.limit_ns = NEVER if limit_ns is None else limit_ns
        self._page.wake_host = (self._page.wake_host + 1) & 0xFFFF
        self._futex(self._wake, _FUTEX_WAKE, 0x7FFFFFFF, None)

    def goes_on(self) -> None:
        """Of a guest that waits, just before it gets a reason not to (a limit that is not before
        its `next_ns`, input): it counts as running, so that `wait` is for its next wait."""
        self._page.state = State.RUNS

    def free(self, turns: int) -> None:
        """Where time stands still, what programs do takes none of it so many times: looks at a
        clock, calls that fail, computing that counts. They would wait for ever otherwise."""
        self._page.free_turns = turns

    def creep(self, kernel_pid: int, by_ns: int) -> None:
        """Lets time go on by so much (not beyond the next event, nor the limit) although a program
        runs, and lets another program have the processor. `kernel_pid` is the guest's own process
        on the host. ProcessLookupError if it is gone."""
        self._page.creep_ns = by_ns
        os.kill(kernel_pid, signal.SIGALRM)

    def wait(self, timeout_s: float) -> State:
        """Sleeps until the guest waits or has ended, so long at most. One that was killed does not
        tell: who waits for more than a moment looks after the process, too."""
        end = time.monotonic() + timeout_s
        while (state := State(self._page.state)) in (State.BOOTS, State.RUNS):
            rest_s = end - time.monotonic()
            if rest_s <= 0:
                break
            self._futex(self._state, _FUTEX_WAIT, int(state), rest_s)
        return state

    def close(self) -> None:
        """Doing it twice is as good as once. Nothing else may be asked of it afterwards."""
        if self._descriptor >= 0:
            del self._page
            self._memory.close()
            os.close(self._descriptor)
            self._descriptor = -1

    def _futex(self, address: int, operation: int, value: int, timeout_s: float | None) -> None:
        """Nobody needs what it returns: who waits looks again, who wakes may find nobody."""
        timeout = None
        if timeout_s is not None:
            parts = divmod(round(timeout_s * 1e9), 10**9)
            timeout = (ctypes.c_int64 * 2)(*parts)
        self._system.syscall(
            ctypes.c_long(_FUTEX),
            ctypes.c_void_p(address),
            ctypes.c_int(operation),
            ctypes.c_uint32(value),
            timeout,
            None,
            ctypes.c_int(0),
        )
