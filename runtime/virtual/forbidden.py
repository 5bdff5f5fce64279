"""What this machine forbids that a guest needs: programs must be traced (ptrace(2)), and memory in
a file without a name run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_NOEXEC = Path("/proc/sys/vm/memfd_noexec")
_LEAST_EXEC = 2  # of vm.memfd_noexec: from here on nothing of such memory may be run
_SECONDS = 30
# PTRACE_TRACEME (0) as a child of ours would ask for it.
_TRACE = (
    "import ctypes, os; c = ctypes.CDLL(None, use_errno=True);"
    "print('' if c.ptrace(0, 0, None, None) == 0 else os.strerror(ctypes.get_errno()))"
)
# Memory in a file without a name, to be run.
_MEMORY = (
    "import mmap, os; f = os.memfd_create('a', 0); os.ftruncate(f, 4096);"
    "mmap.mmap(f, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC)"
)


def refusals() -> list[tuple[str, str]]:
    """What this machine forbids, and what to do ('' if nobody knows): [] if nothing is known to."""
    found = []
    if words := _said(_TRACE):
        scope = _number(_SCOPE)
        remedy = (
            f"sysctl kernel.yama.ptrace_scope=1 (it is {scope})"
            if scope >= (2 if os.geteuid() else 3)
            else "in a container: --cap-add SYS_PTRACE, or a seccomp profile that allows ptrace"
        )
        found.append((f"programs may not be traced: {words}", remedy))
    if words := _said(_MEMORY):
        is_set = _number(_NOEXEC) >= _LEAST_EXEC
        remedy = f"sysctl vm.memfd_noexec=0 (it is {_number(_NOEXEC)})" if is_set else ""
        found.append((f"memory in a file without a name may not be run: {words}", remedy))
    return found


def _said(code: str) -> str:
    """The words of a small program that was refused something, '' if it was not."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be tried: {error}"
    said = (done.stdout if done.returncode == 0 else done.stderr).strip()
    if done.returncode < 0 and not said:
        return f"who tries is killed by signal {-done.returncode}"
    return said.splitlines()[-1] if said else ""


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
