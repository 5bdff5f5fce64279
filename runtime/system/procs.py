"""Processes here by number and start time, so that a reused number is never mistaken."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PARENT, _START = 1, 19  # fields of /proc/PID/stat after the command's closing bracket (proc(5))


@dataclass(frozen=True, slots=True)
class Process:
    """`start` is in clock ticks since boot. In one scope (process_scope.py) it names a process for
    ever."""

    pid: int
    start: int


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def identify(pid: int) -> Process | None:
    """None if there is no such process."""
    fields = _stat(pid)
    return None if fields is None else Process(pid, int(fields[_START]))


def alive(process: Process) -> bool:
    """Whether this very process still runs; a zombie does not."""
    fields = _stat(process.pid)
    return (
        fields is not None and int(fields[_START]) == process.start and fields[0] not in ("Z", "X")
    )


def die_with(parent: int) -> None:
    """From now on this process is killed when the thread that has started it ends, whose process
    `parent` is (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was faster
        os.kill(os.getpid(), signal.SIGKILL)


def descendants(root: int) -> list[Process]:
    """All processes below `root` in this PID namespace's view, at this moment."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found = []
    queue = list(children.get(root, ()))
    while queue:
        pid = queue.pop()
        if process := identify(pid):
            found.append(process)
        queue.extend(children.get(pid, ()))
    return found


def send(process: Process, number: signal.Signals) -> bool:
    """Signals exactly this process. False if it is gone. PermissionError if not permitted."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(process):  # checked after the descriptor is bound to whoever has the number
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_gone(processes: list[Process], seconds: float) -> list[Process]:
    """Those that are still there when the time is over."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.01)
        left = [process for process in left if alive(process)]
    return left


def status_text(status: int) -> str:
    """How a child ended, in words; -N: by signal N."""
    return f"signal {-status}" if status < 0 else f"status {status}"
