"""What own instances do before time 0, asked for by the coordinator: their setups; or their whole
start, where the run begins when all are ready. What comes of it is read from what each tstorm-hold
reports (docs/hold.md).

An instance that was started so joins with the first step without another order.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from compiler.plan.event_kinds import EVENT_KINDS
from runtime.agent.pod.podprocesses import HOLD_SIGNAL, status_of, takes_orders
from runtime.agent.pod.reports import Report, Reports
from runtime.agent.process.orders import OrderError

SET_UP, RELEASED = "set_up", "released"  # of orders.WAITS
PARTS = 64  # of reports that are read in one look


@dataclass(slots=True)
class _Early:
    """`wait` is what ends it; `asked_ns` (CLOCK_MONOTONIC) tells older reports from its own."""

    wait: str
    asked_ns: int
    over: bool = False
    error: str = ""
    reports: Reports = field(default_factory=Reports)


class AgentEarlyStarts:
    """By node of the plan."""

    def __init__(self) -> None:
        self._starts: dict[int, _Early] = {}

    def joined(self, node: int) -> bool:
        """Whether its join was ordered before the start."""
        found = self._starts.get(node)
        return found is not None and found.wait != SET_UP

    def begin(self, node: int, wait: str, hold: Hold | None, now_ns: int) -> None:
        """Orders it, unless that was done. A gate that is released says no more itself."""
        if node in self._starts and self._starts[node].wait == wait:
            return
        early = self._starts[node] = _Early(wait, now_ns)
        if hold is None:
            _end(early, "no tstorm-hold of it is known")
            return
        if wait != RELEASED:
            try:
                early.reports.open(hold.pid)
            except OSError as error:
                _end(early, f"its reports cannot be read: {error.strerror or error}")
                return
        refused = hold.order("setup" if wait == SET_UP else "join")
        if refused or wait == RELEASED:
            _end(early, refused)

    def look(self, node: int, hold: Hold | None, now: Callable[[], int]) -> tuple[bool, str]:
        """Whether it is over, and why it failed if it did."""
        early = self._starts[node]
        for _ in range(PARTS):
            reports = [] if early.over else early.reports.read(now)
            for report in reports:
                _take(early, report)
            if not reports:
                break
        if not early.over and (hold is None or not hold.alive()):
            _end(early, "its first process (tstorm-hold) is dead")
        return early.over, early.error

    def close(self) -> None:
        for early in self._starts.values():
            early.reports.close()


def _take(early: _Early, report: Report) -> None:
    if early.over or report.at_ns < early.asked_ns:
        return
    how = _how(report)
    if report.event == SET_UP and early.wait == SET_UP:
        _end(early, f"setup {how}" if how else "")
    elif report.event == "failed":
        _end(early, f"cannot start {report.program}: {report.error}")
    elif report.event == early.wait:
        _end(early, "")
    elif report.event == "not_ready":
        _end(early, "it is not ready within its ready-timeout=")
    elif report.event == "ended":  # and whatever it has left behind: nothing will be ready
        _end(early, f"its program {how or 'ended before it was ready'}")
    elif report.event == "ignored" and report.order in ("setup", "join"):
        _end(early, "")  # it was so already


def _how(report: Report) -> str:
    """How something ended that did not end well; '' if it did."""
    if report.error:
        return f"could not run: {report.error}"
    if report.signal:
        return f"ended by signal {report.signal}"
    return f"ended with {report.status}" if report.status else ""


def _end(early: _Early, error: str) -> None:
    early.over, early.error = True, error
    early.reports.close()


# One tstorm-hold, which keeps the program of an instance (docs/hold.md), and orders to it.

ORDERS = {**{kind.word: kind.order for kind in EVENT_KINDS if kind.order}, "setup": 6}
_PIDFD_SEND_SIGNAL = 424  # on every architecture; Python's own takes no value along
_SI_QUEUE = -1
_SIGINFO = struct.Struct("=iii4xiii100x")  # siginfo_t where pointers have 64 bits: 128 bytes


class Hold:
    """Means this very process for ever, whoever has its number later. Close it."""

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
