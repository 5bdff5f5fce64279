"""What a run in virtual time draws by from which moment on: its own seed, and those of `--reseed`.

The guest's kernel and pktd are told ahead, and nothing wakes at the moment itself: each looks at
the time when it draws. So a run is the same until then, to the last byte. From the start of
programs on, too, the guest draws by a seed that it is told: how often getting ready has drawn
(what the driver reads is longer with more events) leaves no trace.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from runtime.errors import RunError
from runtime.options import VIRTUAL
from runtime.schedule import Schedule

GUEST = "/proc/tstorm"  # arch/um/tstorm/seed.c


def _drawn_by(what: str, seed: int, at_ns: int) -> bytes:
    return hashlib.sha256(f"{what} {seed} from {at_ns}".encode()).digest()


def _moments(schedule: Schedule, t0_ns: int) -> Iterator[tuple[int, int, int]]:
    """Each in ns of CLOCK_MONOTONIC and of the plan, and its seed."""
    for at_ns, seed in schedule.options.reseeded:
        yield t0_ns + schedule.clock.due(at_ns), at_ns, seed


def engine_words(schedule: Schedule, t0_ns: int) -> str:
    """What pktd is told with its epoch."""
    return "".join(
        f" reseed={due_ns}:{int.from_bytes(_drawn_by('links', seed, at_ns)[:8], 'big')}"
        for due_ns, at_ns, seed in _moments(schedule, t0_ns)
    )


def begin_anew(schedule: Schedule, seed: int, moment_ns: int, *, is_start: bool) -> None:
    """The guest's randomness is the seed's from this moment on (CLOCK_MONOTONIC), at which
    programs start: at time 0, or before it, where some start then. RunError."""
    if schedule.options.time != VIRTUAL:
        return
    words = "start" if is_start else "programs before the start"
    told = [(moment_ns, f"randomness of a guest, {words},", seed, 0)]
    if is_start:
        for due_ns, at_ns, other in _moments(schedule, moment_ns):
            told.append((due_ns, "randomness of a guest", other, at_ns))
    try:
        # By system calls that do not fail: those would take time, which the run without has not.
        file = os.open(GUEST, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for due_ns, what, by, at_ns in told:
                os.write(file, f"reseed {due_ns} {_drawn_by(what, by, at_ns).hex()}".encode())
        finally:
            os.close(file)
    except OSError as error:
        raise RunError(f"the guest's kernel takes no other seed: {error.strerror}") from error
