"""Where a process number means something: one boot of one machine, and the namespaces in it.

Homes are shared between machines and containers, so a record of a run says where it was made. A
machine's identity alone proves little: containers have none or their image's, and virtual machines
made from one image have the same. Hence numbers count only where boot and namespaces agree, and an
earlier boot of the same machine counts as over only where a lock says so too
(runtime.system.locks).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import MachineError

_PROC = Path("/proc")
_MACHINE_ID = Path("/etc/machine-id")
_INITIAL_USERS = 0xEFFFFFFD  # inode of the first user namespace (linux/nsfs.h, fixed since 3.8)


@dataclass(frozen=True, slots=True)
class ProcessScope:
    """'' is what is not known; it equals nothing."""

    machine: str = ""  # hash of the machine's id: the id itself is not to be told (machine-id(5))
    boot: str = ""
    pids: str = ""  # the PID namespace that process numbers are of
    clock: str = ""  # the time namespace that their starts are counted in; '' without any
    host: str = ""  # its name, for people

    @property
    def is_here(self) -> bool:
        """Whether process numbers recorded there are ours."""
        mine = here()
        known = bool(mine.boot and mine.pids)
        return known and (self.boot, self.pids, self.clock) == (mine.boot, mine.pids, mine.clock)

    @property
    def is_another_boot(self) -> bool:
        """Whether it is this machine, as far as its id tells, before it was started anew."""
        mine = here()
        same = self.machine == mine.machine != ""
        return same and bool(self.boot and mine.boot) and self.boot != mine.boot

    def text(self) -> str:
        """Where that is, seen from here."""
        if not self.pids:
            return "where another release of tstorm has recorded it"
        if self.boot == here().boot:
            return f"in another container (or PID namespace) of this machine, host name {self.host}"
        return f"on another machine (or in another container), host name {self.host}"


def here() -> ProcessScope:
    """MachineError if /proc is not this PID namespace's: its numbers would name strangers."""
    return ProcessScope(
        machine=_machine(),
        boot=_read(_PROC / "sys/kernel/random/boot_id"),
        pids=_pid_namespace(),
        clock=namespace("time"),
        host=os.uname().nodename,
    )


def namespace(kind: str) -> str:
    """This process' namespace of a kind, '' if the kernel has none."""
    try:
        found = (_PROC / "self/ns" / kind).stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def user_namespace_number() -> int:
    """0 for the first one, in which user numbers mean what they mean on the machine."""
    try:
        number = (_PROC / "self/ns/user").stat().st_ino
    except OSError:
        return 0  # a kernel without user namespaces
    return 0 if number == _INITIAL_USERS else number


def _pid_namespace() -> str:
    """NSpid has one number for each namespace from that of /proc down to ours (proc(5))."""
    status = _read(_PROC / "self/status").splitlines()
    numbers = next((line.split()[1:] for line in status if line.startswith("NSpid:")), [])
    if len(numbers) != 1:
        raise MachineError(
            "/proc is not that of the PID namespace that tstorm is in",
            "mount one of its own: unshare --pid --fork --mount-proc",
        )
    return namespace("pid")


def _machine() -> str:
    identity = _read(_MACHINE_ID)
    return hashlib.sha256(b"thunderstorm:" + identity.encode()).hexdigest() if identity else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
