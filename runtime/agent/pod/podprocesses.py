"""Finds the processes of pods, by the UIDs of the pods in /proc/PID/cgroup: every container runtime
puts a pod's processes into a control group of its own, so none of their sockets is needed.

The group is named `podUID`, under control groups of version 1 and 2, with the driver cgroupfs or
systemd (which writes `-` as `_`), of kubelet, k3s or kind, and in paths that are relative to the
agent's own group (`/../../podUID/…`). A container may make groups inside its own: only the
outermost name of a pod that is asked for counts.

What is in the network of the host itself (process 1) is no process of a pod, although CRI-O has its
conmon in the pod's group.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import MachineError

PROC = Path("/proc")
HOLD_SIGNAL = 35  # SIGRTMIN + 1 of glibc
TEXT_BYTES = 1 << 16  # of one file of /proc; they are shorter
_POD = re.compile(
    r"(?:(?<=/)|(?<=-))pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12})"
    r"(?=\.slice|[/:\n]|\Z)",
    re.ASCII,
)
_START = 19  # field of /proc/PID/stat after the command's closing bracket (proc(5)): clock ticks


class NotFoundError(Exception):
    """Why a pod's tstorm-hold cannot be used now. It may be there later."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a pod. `start` is in clock ticks since boot, `network` names its namespace."""

    pid: int
    start: int
    network: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A pod whose program is kept: by process `hold`, a `kind` of tstorm-hold (run | gate). Its
    network is that of process `network`, which lives as long as the pod; /proc calls it
    `space`."""

    hold: int
    network: int
    kind: str
    space: str


def pod_of(groups: str, wanted: Collection[str]) -> str:
    """The pod that a text of /proc/PID/cgroup is of, '' if it is of none that is wanted."""
    for match in _POD.finditer(groups):
        uid = match[1].replace("_", "-")
        if uid in wanted:
            return uid
    return ""


def pod_of_process(pid: int, wanted: Collection[str], proc: Path = PROC) -> str:
    """The same of a process, '' also when it is gone."""
    return pod_of(_text(proc / str(pid) / "cgroup"), wanted)


def members(wanted: Collection[str], proc: Path = PROC) -> dict[str, list[Member]]:
    """The processes of the pods that are wanted, the eldest first. Raises MachineError."""
    host = network_of(1, proc)
    if not host:
        raise MachineError(
            "the agent may not look at the node's process 1",
            "its pod needs hostPID and the capability SYS_PTRACE",
        )
    found: dict[str, list[Member]] = {uid: [] for uid in wanted}
    for pid in _pids(proc):
        uid = pod_of_process(pid, wanted, proc)
        member = _member(proc, pid) if uid else None
        if member is not None and member.network != host:
            found[uid].append(member)
    for group in found.values():
        group.sort(key=lambda member: (member.start, member.pid))
    return found


class Census:
    """Looks at the processes of the pods that are `wanted` then, for all who want to know at a
    time: one look costs up to 50 ms of processor time."""

    def __init__(self, wanted: Callable[[], Collection[str]]) -> None:
        self.wanted = wanted
        self._next: asyncio.Task[dict[str, list[Member]]] | None = None
        self._one = asyncio.Lock()

    async def look(self) -> dict[str, list[Member]]:
        """As of a time after this was asked. Raises MachineError."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._look())
        return await asyncio.shield(self._next)

    async def _look(self) -> dict[str, list[Member]]:
        async with self._one:
            self._next = None  # who comes from now on wants the look after this one
            return await asyncio.to_thread(members, self.wanted())


def kept(group: Iterable[Member], proc: Path = PROC) -> Kept:
    """Who keeps the program of a pod with these processes. Raises NotFoundError."""
    found = list(group)
    if not found:
        raise NotFoundError("no process of its pod is on this node")
    holds = [member for member in found if _init(status_of(member.pid, proc))]
    if not holds:
        raise NotFoundError("no tstorm-hold of its pod takes orders")
    hold = holds[0]
    if hold.network != found[0].network:
        raise NotFoundError("its tstorm-hold is not in the network of its pod")
    words = _text(proc / str(hold.pid) / "cmdline").split("\0")
    if len(words) < 2 or words[1] not in ("run", "gate"):
        raise NotFoundError("its tstorm-hold neither runs a program nor is a gate")
    return Kept(hold.pid, found[0].pid, words[1], hold.network)


def status_of(pid: int, proc: Path = PROC) -> Mapping[str, str]:
    """/proc/PID/status; empty when there is no such process."""
    lines = _text(proc / str(pid) / "status").split("\n")
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def takes_orders(status: Mapping[str, str]) -> bool:
    """An order that comes before the process blocks the signal is lost, and another program would
    die of it."""
    blocked = int(status.get("SigBlk", "0"), 16)
    return status.get("Name") == "tstorm-hold" and bool(blocked >> (HOLD_SIGNAL - 1) & 1)


def _init(status: Mapping[str, str]) -> bool:
    """Whether it takes orders as the first process of a container: programs take any name."""
    return takes_orders(status) and status.get("NSpid", "").split()[1:] == ["1"]


def _pids(proc: Path) -> Iterator[int]:
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            yield int(entry.name)


def _member(proc: Path, pid: int) -> Member | None:
    """None for a process that ends: it has no namespaces any more."""
    network = network_of(pid, proc)
    fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
    return Member(pid, int(fields[_START]), network) if network and len(fields) > _START else None


def network_of(pid: int, proc: Path = PROC) -> str:
    """The name of a process's network namespace, '' when it ends or is another user's."""
    try:
        return str((proc / str(pid) / "ns/net").readlink())
    except OSError:
        return ""


def _text(path: Path) -> str:
    """'' where the process is gone, or another user's."""
    try:
        with path.open("rb") as file:
            return file.read(TEXT_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
