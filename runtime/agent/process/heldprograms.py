"""Starts and ends the programs of this host's own instances, where a tstorm-hold keeps each of them
(docs/hold.md): a step that has taken effect here is carried out here, and said.

Nothing happens for instances of which no process was told: in a local run that are all, since the
nursery starts and ends them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from runtime.agent.process.orders import OrderError
from runtime.schedule import Schedule

HOLD_SIGNAL = 35  # SIGRTMIN + 1 of glibc
ORDERS = {"join": 1, "leave": 2, "crash": 3}
_PIDFD_SEND_SIGNAL = 424  # on every architecture; Python's own takes no value along
_SI_QUEUE = -1
_SIGINFO = struct.Struct("=iii4xiii100x")  # siginfo_t where pointers have 64 bits: 128 bytes

Say = Callable[[Mapping[str, object]], None]


class HeldPrograms:
    """Nodes are the plan's: `own` are this host's, by name. `elapsed` is ns since T0."""

    def __init__(self, own: Mapping[str, int], elapsed: Callable[[], int], say: Say) -> None:
        self._own = own
        self._elapsed = elapsed
        self._say = say
        self._holds: dict[int, tuple[int, int]] = {}  # node -> process, descriptor of it

    def know(self, processes: Mapping[int, int]) -> None:
        """From now on these nodes' programs are kept by these processes. OrderError if one of them
        does not take orders; then nothing has changed."""
        opened: dict[int, tuple[int, int]] = {}
        try:
            for node, pid in sorted(processes.items()):
                opened[node] = (pid, _open(pid, node))
        except OrderError:
            _close(opened.values())
            raise
        _close(self._holds.pop(node) for node in opened if node in self._holds)
        self._holds.update(opened)

    def carry_out(self, timeline: Schedule, step: int) -> None:
        """What is asked of own instances with this step, in the order of its events."""
        if not self._holds:
            return
        there = sorted(timeline.present) if step == 0 else ()
        asked = [*(("join", name) for name in there)]
        asked += [(event.kind, event.target) for event in timeline.steps[step].events]
        for what, name in asked:
            if what in ORDERS and name in self._own:
                status = self._order(self._own[name], ORDERS[what])
                self._say(
                    {
                        "say": "life",
                        "step": step,
                        "node": self._own[name],
                        "what": what,
                        "elapsed_ns": self._elapsed(),
                        "status": status,
                    }
                )

    def _order(self, node: int, order: int) -> str:
        known = self._holds.get(node)
        return _order(*known, order) if known else "nobody has told which process keeps it"

    def close(self) -> None:
        _close(self._holds.values())
        self._holds.clear()


def _open(pid: int, node: int) -> int:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        reason = error.strerror
        raise OrderError(f"node {node} has no process {pid}: {reason}") from error
    if not _takes_orders(pid):
        os.close(descriptor)
        raise OrderError(f"process {pid} of node {node} is no tstorm-hold that takes orders")
    return descriptor


def _close(holds: Iterable[tuple[int, int]]) -> None:
    for _, descriptor in holds:
        os.close(descriptor)


def _takes_orders(pid: int) -> bool:
    """An order that comes before the process blocks the signal is lost, and another program would
    die of it."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    found = dict(line.split(":\t", 1) for line in text.split("\n") if ":\t" in line)
    blocked = int(found.get("SigBlk", "0"), 16)
    return found.get("Name") == "tstorm-hold" and bool(blocked >> (HOLD_SIGNAL - 1) & 1)


def _order(pid: int, descriptor: int, order: int) -> str:
    """'' when it is sent, else why not. The descriptor never means another process than before."""
    if not _takes_orders(pid):
        return "its tstorm-hold takes no orders any more"
    info = _SIGINFO.pack(HOLD_SIGNAL, 0, _SI_QUEUE, os.getpid(), os.getuid(), order)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_PIDFD_SEND_SIGNAL, descriptor, HOLD_SIGNAL, info, 0) == 0:
        return ""
    return os.strerror(ctypes.get_errno())
