"""Whether runs in virtual time (`--time virtual`) are possible here: by starting a guest.

Never "fail": runs in real time need none of it. Where there is no kernel yet, what would stop one
is looked for: programs must be traced (ptrace(2)), and memory in a file without a name run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from runtime.doctor.findings import OK, WARN, Check
from runtime.errors import RunError
from runtime.system import programs
from runtime.virtual import trial
from runtime.virtual.kernel import asking, cache, tools

NAME = "virtual time"
_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_NOEXEC = Path("/proc/sys/vm/memfd_noexec")
_PROCESSOR = Path("/proc/cpuinfo")
_HIDES = "cpuid_fault"  # among its features: a process can be stopped where it asks for them
_LEAST_EXEC = 2  # of vm.memfd_noexec: from here on nothing of such memory may be run
_SECONDS = 30
_NOT_NEEDED = "only needed for --time virtual"
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


def check() -> Check:
    """One line. Takes a second where there is a kernel: what is forbidden is asked only where it
    does not start, or there is none."""
    machine = platform.machine()
    if machine != tools.ARCHITECTURE:
        return Check(NAME, WARN, f"this machine is {machine}: only x86-64 can", _NOT_NEEDED)
    try:
        kernel = cache.path_for_run()
    except RunError as error:
        return _warning(error.message, error.remedy)
    try:
        return _tried(kernel)
    except RunError as error:
        return Check(NAME, WARN, error.message, error.remedy or _NOT_NEEDED)


def _tried(kernel: Path) -> Check:
    name = f"Linux {asking.version(kernel)}"
    if reason := trial.why_not(kernel, programs.find("tstorm-ns")):
        return _warning(f"{name} does not start: {reason}", _NOT_NEEDED)
    how = "seccomp, else ptrace" if asking.can_seccomp(kernel) else "ptrace"
    random = "hidden from" if _hides_random_instructions() else "seen by"
    about = f"programs run under {how}; the processor's random instructions are {random} them"
    return Check(NAME, OK, f"{name} starts here; {about}")


def _hides_random_instructions() -> bool:
    """Whether two runs are the same even for programs that use rdrand (docs/virtual.md)."""
    try:
        return _HIDES in _PROCESSOR.read_text().split()
    except OSError:
        return False


def _warning(what: str, remedy: str) -> Check:
    """This, or what is behind it: a machine that forbids guests."""
    return Check(NAME, WARN, *next(iter(_refusals()), (what, remedy)))


def _refusals() -> list[tuple[str, str]]:
    """What this machine forbids, and what to do: [] if nothing is known to."""
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
        forbidden = _number(_NOEXEC) >= _LEAST_EXEC
        remedy = (
            f"sysctl vm.memfd_noexec=0 (it is {_number(_NOEXEC)})" if forbidden else _NOT_NEEDED
        )
        found.append((f"memory in a file without a name may not be run: {words}", remedy))
    return found


def _said(code: str) -> str:
    """The words of a small program that was refused something, '' if it was not."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    said = (done.stdout if done.returncode == 0 else done.stderr).strip()
    return said.splitlines()[-1] if said else ""


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
