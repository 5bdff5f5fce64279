"""The program of an instance of this host that a tstorm-hold keeps (docs/hold.md): who takes orders
for it, and what was asked for before time 0.

That is its setup; or its whole start, where the run begins when all are ready. What comes of it is
read from what the tstorm-hold reports. An instance that was started so joins with the first step
without another order.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from compiler.plan.event_kinds import EVENT_KINDS
from runtime.agent.pod.podprocesses import HOLD_SIGNAL, Kept, status_of, takes_orders
from runtime.agent.pod.reports import Report, Reports
from runtime.agent.process.orders import OrderError

SET_UP, RELEASED = "set_up", "released"  # of orders.WAITS
PARTS = 64  # of reports that are read in one look

ORDERS = {**{kind.word: kind.order for kind in EVENT_KINDS if kind.order}, "setup": 6}
_PIDFD_SEND_SIGNAL = 424  # on every architecture; Python's own takes no value along
_SI_QUEUE = -1
_SIGINFO = struct.Struct("=iii4xiii100x")  # siginfo_t where pointers have 64 bits: 128 bytes


class Hold:
    """One tstorm-hold, and orders to it. Means this very process for ever, whoever has its number
    later. Close it."""

    def __init__(self, pid: int, node: int) -> None:
        """Raises OrderError if the process is not there or takes no orders."""
        self.pid = pid
        try:
            self._descriptor = os.pidfd_open(pid)
        except OSError as error:
            raise OrderError(f"node {node} has no process {pid}: {error.strerror}") from error
        if not takes_orders(status_of(pid)):
            self.close()
            raise OrderError(f"process {pid} of node {node} is no tstorm-hold that takes orders")

    def alive(self) -> bool:
        poll = select.poll()  # unlike select(2) for any descriptor
        poll.register(self._descriptor, select.POLLIN)
        return not poll.poll(0)

    def idle(self) -> bool:
        """Whether nothing runs under it: orphans are its children, too."""
        try:
            return not Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return not self.alive()

    def order(self, what: str) -> str:
        """'' when it is sent, else why not."""
        if not takes_orders(status_of(self.pid)):
            return "its tstorm-hold takes no orders any more"
        value = ORDERS[what]
        info = _SIGINFO.pack(HOLD_SIGNAL, 0, _SI_QUEUE, os.getpid(), os.getuid(), value)
        library = ctypes.CDLL(None, use_errno=True)
        if library.syscall(_PIDFD_SEND_SIGNAL, self._descriptor, HOLD_SIGNAL, info, 0) == 0:
            return ""
        return os.strerror(ctypes.get_errno())

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(slots=True)
class HeldProgram:
    """What is known of one instance: the UID of its pod, where it was found, and who takes orders
    for it, once the coordinator has told.

    inside         a process in the network of its pod, which lives as long as the pod; 0 for none
    network        in which it may join, '' for none: the coordinator tells when it is attached, its
                   addresses are known to all agents and its names are written
    early_wait     what ends that which was asked for before time 0; '' if nothing was
    early_asked_ns when that was (CLOCK_MONOTONIC), which tells older reports from its own
    """

    uid: str = ""
    inside: int = 0
    network: str = ""
    kept: Kept | None = None
    hold: Hold | None = None
    gated: bool = False
    gone: bool = False  # the end of `hold` was said
    warned: bool = False  # what is wrong with its reports was said
    left: bool = True  # it has answered the leave that the run ends with
    reports: Reports = field(default_factory=Reports)
    asked: str = ""  # the last order that could not be given at once
    task: asyncio.Task[None] | None = None  # of that order
    early_wait: str = ""
    early_asked_ns: int = 0
    early_over: bool = False
    early_error: str = ""
    early_reports: Reports = field(default_factory=Reports)

    @property
    def there(self) -> bool:
        return self.hold is not None and self.hold.alive()

    @property
    def joined_early(self) -> bool:
        """Whether its join was ordered before time 0."""
        return self.early_wait not in ("", SET_UP)

    def begin_early(self, wait: str, now_ns: int) -> None:
        """Orders it, unless that was done. A gate that is released says no more itself."""
        if self.early_wait == wait:
            return
        self.early_wait, self.early_asked_ns = wait, now_ns
        self.early_over, self.early_error = False, ""
        self.early_reports.close()
        self.early_reports = Reports()
        if self.hold is None:
            self._end_early("no tstorm-hold of it is known")
            return
        if wait != RELEASED:
            try:
                self.early_reports.open(self.hold.pid)
            except OSError as error:
                self._end_early(f"its reports cannot be read: {error.strerror or error}")
                return
        refused = self.hold.order("setup" if wait == SET_UP else "join")
        if refused or wait == RELEASED:
            self._end_early(refused)

    def look_early(self, now: Callable[[], int]) -> tuple[bool, str]:
        """Whether it is over, and why it failed if it did."""
        for _ in range(PARTS):
            reports = [] if self.early_over else self.early_reports.read(now)
            for report in reports:
                self._take_early(report)
            if not reports:
                break
        if not self.early_over and not self.there:
            self._end_early("its first process (tstorm-hold) is dead")
        return self.early_over, self.early_error

    def _take_early(self, report: Report) -> None:
        if self.early_over or report.at_ns < self.early_asked_ns:
            return
        how = _how(report)
        if report.event == SET_UP and self.early_wait == SET_UP:
            self._end_early(f"setup {how}" if how else "")
        elif report.event == "failed":
            self._end_early(f"cannot start {report.program}: {report.error}")
        elif report.event == self.early_wait:
            self._end_early("")
        elif report.event == "not_ready":
            self._end_early("it is not ready within its ready-timeout=")
        elif report.event == "ended":  # and whatever it has left behind: nothing will be ready
            self._end_early(f"its program {how or 'ended before it was ready'}")
        elif report.event == "ignored" and report.order in ("setup", "join"):
            self._end_early("")  # it was so already

    def _end_early(self, error: str) -> None:
        self.early_over, self.early_error = True, error
        self.early_reports.close()

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
        if self.hold is not None:
            self.hold.close()
        self.reports.close()
        self.early_reports.close()


def _how(report: Report) -> str:
    """How something ended that did not end well; '' if it did."""
    if report.error:
        return f"could not run: {report.error}"
    if report.signal:
        return f"ended by signal {report.signal}"
    return f"ended with {report.status}" if report.status else ""
