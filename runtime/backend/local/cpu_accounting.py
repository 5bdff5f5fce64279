"""Computing that takes virtual time (`--cpu model=FACTOR`), as the guest's kernel keeps its books.

The kernel (arch/um/tstorm/cpu.c) takes the processor time that programs of an instance use on the
host, and lets them wait as long before what they did shows. Here an instance is told to it, and it
is asked what all of them have used. Only in the guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runtime.errors import MachineError

BOOKS = Path("/proc/tstorm_cpu")
WHOLE_MILLIS = 1000  # of one processor
MOST_MILLIS = 256 * WHOLE_MILLIS
_TOLD = ("used_ns", "charged_ns", "turn_ns")


def charge(pid: int, cpu_millis: int, name: str) -> None:
    """From now on programs in the network namespace of this process compute on so many thousandths
    of a processor, 0: one. The process itself goes on computing in no time. MachineError."""
    millis = min(cpu_millis or WHOLE_MILLIS, MOST_MILLIS)
    try:
        BOOKS.write_text(f"{pid} {millis}", encoding="ascii")
    except FileNotFoundError as error:
        raise MachineError(
            "this kernel for virtual time cannot charge what programs compute",
            "`tstorm kernel build` makes one that can; or leave --cpu out",
        ) from error
    except OSError as error:
        what = f"the guest's kernel gives no processor to instance {name}: {error.strerror}"
        raise MachineError(what) from error


def books() -> Mapping[str, int]:
    """What all instances used: processor time of the host and what it counted, and what a turn of
    a program costs the host by itself, which is not counted. In ns; empty if nobody knows."""
    try:
        lines = BOOKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    found = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {name: found[name] for name in _TOLD}
