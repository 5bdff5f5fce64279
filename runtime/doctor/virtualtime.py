"""Whether runs in virtual time (`--time virtual`) are possible here: by starting a guest.

Never "fail": runs in real time need none of it. Where there is no kernel yet, what would stop one
is looked for (runtime.virtual.forbidden).
"""

from __future__ import annotations

import platform
from pathlib import Path

from runtime.doctor.findings import OK, WARN, Check
from runtime.errors import RunError
from runtime.system import compiled_programs
from runtime.virtual import forbidden, trial
from runtime.virtual.kernel import asking, kernel_cache, kernel_tools

NAME = "virtual time"
_PROCESSOR = Path("/proc/cpuinfo")
_HIDES = "cpuid_fault"  # among its features: a process can be stopped where it asks for them
_NOT_NEEDED = "only needed for --time virtual"


def check() -> Check:
    """One line. Takes a second where there is a kernel: what is forbidden is asked only where it
    does not start, or there is none."""
    machine = platform.machine()
    if machine != kernel_tools.ARCHITECTURE:
        return Check(NAME, WARN, f"this machine is {machine}: only x86-64 can", _NOT_NEEDED)
    try:
        kernel = kernel_cache.path_for_run()
    except RunError as error:
        return _warning(error.message, error.remedy)
    try:
        return _tried(kernel)
    except RunError as error:
        return Check(NAME, WARN, error.message, error.remedy or _NOT_NEEDED)


def _tried(kernel: Path) -> Check:
    name = f"Linux {asking.version(kernel)}"
    if reason := trial.why_not(kernel, compiled_programs.find("tstorm-ns")):
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
    what, remedy = next(iter(forbidden.refusals()), (what, remedy))
    return Check(NAME, WARN, what, remedy or _NOT_NEEDED)
