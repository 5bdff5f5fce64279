"""One tstorm-hold, which keeps the program of an instance (docs/hold.md), and orders to it."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from pathlib import Path

from compiler.plan.event_kinds import EVENT_KINDS
from runtime.agent.pod.podprocesses import HOLD_SIGNAL, status_of, takes_orders
from runtime.agent.process.orders import OrderError

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
