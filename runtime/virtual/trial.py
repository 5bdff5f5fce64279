"""A trial of a kernel for virtual time: it starts, runs a program, and ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from runtime.rundir.runfiles import DRIVER_LOG
from runtime.virtual import guest, line

SECONDS = 60  # it takes half a second
_BOOT_UNIX_NS = 946_684_800 * 10**9


def why_not(kernel: Path, keeper: Path) -> str:
    """Why the kernel cannot be used here, '' if it can. `keeper`: tstorm-ns. Leaves nothing.

    Call it from the thread that goes on: a guest ends with the one that started it.
    """
    with tempfile.TemporaryDirectory(prefix="tstorm-trial-") as name:
        place = Path(name)
        run = place / "run"
        run.mkdir()
        (run / DRIVER_LOG).touch()
        machine = guest.Machine(kernel, keeper, place / "guest", _BOOT_UNIX_NS, 0)
        return _boot(machine, run)


def _boot(machine: guest.Machine, run: Path) -> str:
    ours, theirs = line.pair()
    with ours, theirs:
        # A program of this Python: it is here, and a run needs it.
        argv = [sys.executable, "-I", "-S", "-c", "print('here')"]
        trial = guest.start(machine, (run, run), argv, {}, theirs)
        try:
            status = trial.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return f"it did not come to its end within {SECONDS} s"
        finally:
            trial.process.kill()
            trial.process.wait()
            trial.page.close()
    found = guest.status_of_driver(machine)
    if found is None:
        return guest.why_it_ended(machine, status)
    if found != 0:
        said = (run / DRIVER_LOG).read_text(errors="replace").strip()
        return f"a program in it ended with status {found}: {said}"
    return ""
