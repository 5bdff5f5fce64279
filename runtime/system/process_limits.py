"""Starting processes, and what to do when the kernel has none to give.

fork(2) and clone(2) say no more than EAGAIN when a limit is met. Which of them it is, the kernel's
files tell: pids.max of our control groups, RLIMIT_NPROC, kernel.threads-max and kernel.pid_max;
namespaces end with ENOSPC at user.max_*_namespaces.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, TypeVar

from runtime.errors import MachineError
from runtime.system import control_groups

T = TypeVar("T")

_NAMESPACES = ("user", "pid", "net", "mnt", "uts", "ipc")


def start(what: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """A child process. MachineError says what could not be started, why, and what helps."""
    try:
        return subprocess.Popen(argv, **options)
    except OSError as error:
        raise MachineError(
            f"cannot start {what}: {error.strerror}", remedy(error.errno or 0)
        ) from error


async def in_thread(pool: Executor, action: Callable[..., T], *arguments: Any) -> T:
    """What the action returns. MachineError if there is no thread to do it."""
    try:
        work = asyncio.get_running_loop().run_in_executor(pool, action, *arguments)
    except RuntimeError as error:  # "can't start new thread": pthread_create(3) answers EAGAIN
        raise MachineError(f"cannot start a thread: {error}", remedy(errno.EAGAIN)) from error
    return await work


def remedy(code: int, root: Path = control_groups.ROOT) -> str:
    """What helps against an errno of fork(2), clone(2), unshare(2) or pipe(2); '' for others."""
    if code == errno.EAGAIN:
        return _more_processes(root)
    if code in (errno.ENOSPC, errno.EUSERS):
        limits = ", ".join(f"user.max_{kind}_namespaces" for kind in _NAMESPACES)
        return f"there are too many namespaces: as root raise {limits} (sysctl)"
    if code == errno.ENOMEM:
        return "the kernel has no memory for it: free some, or raise memory.max of the cgroup"
    return REMEDY if code in (errno.EMFILE, errno.ENFILE) else ""


def remedy_for(text: str) -> str:
    """The same for a message that ends with the kernel's words."""
    known = (errno.EAGAIN, errno.ENOSPC, errno.EUSERS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    return next((remedy(code) for code in known if text.endswith(os.strerror(code))), "")


def _more_processes(root: Path) -> str:
    full = []
    for group in control_groups.own("pids", root):
        most = control_groups.value(group / "pids.max")
        if most is not None:
            used = control_groups.value(group / "pids.current") or 0
            full.append((most - used, f"raise pids.max of {group}, which is {most} ({used} used)"))
    if full:
        return min(full)[1]
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = "unlimited" if allowed == resource.RLIM_INFINITY else str(allowed)
    return (
        "there are too many processes and threads: raise RLIMIT_NPROC (ulimit -u, now "
        f"{limit}), kernel.threads-max or kernel.pid_max"
    )


# Open files: how many a run needs, and what to do when there are too few.

FILES_AN_INSTANCE = 8  # at most, in the driver or in pktd; twice as many while it is replaced
FILES_BESIDES = 100
REMEDY = "raise the hard limit: ulimit -Hn 65536"


def enough_for(limit: int) -> int:
    """How many instances a run can have with this many open files."""
    return max(limit - FILES_BESIDES, 0) // FILES_AN_INSTANCE


def raise_limit(instances: int) -> None:
    """As many open files as allowed. MachineError if that is too few for so many instances."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and enough_for(hard) < instances:
        raise MachineError(
            f"{instances} instances need more than the {hard} open files that are allowed", REMEDY
        )
