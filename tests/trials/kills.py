"""kill -9 of one part of a run at a random moment: the outcome is right, and nothing is left.

    python -m tests.trials.kills [--rounds N | --seconds N] [--seed N]

Parts: tstorm, keeper, init, driver, nursery, datapath (pktd), and over hosts an agent. Moments:
while the run is set up, while it runs, while it ends. As root and as an ordinary user, hop-exact
and over two hosts. Whatever `tstorm destroy` does not find is a failure: processes, devices,
mounts, records, sockets, temporary files.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.trials import rounds
from tests.trials.outcomes import (
    COMPLETED,
    ENDING,
    FAILED,
    LAST_NS,
    PHASES,
    TEXT,
    find,
    options,
    outcome_is_told,
    reach,
)
from tests.trials.scene import Scene, clean, finished, kinds, scene

ALL = ("tstorm", "keeper", "init", "driver", "nursery", "datapath")


def attempt(rnd: random.Random) -> str:
    chosen = options(rnd)
    victim = rnd.choice([*ALL, *(["agent"] if chosen else [])])
    phase = rnd.choice(PHASES)
    with scene(TEXT, rnd.choice(kinds())) as made:
        process = made.run(*chosen)
        killed_ns = _kill(made, process, victim, phase, rnd)
        if victim == "tstorm":
            process.wait()
            process.communicate()
        else:
            _judge(made, finished(process), victim, phase, killed_ns)
        clean(made)
        if victim == "tstorm" and made.read("manifest.json"):
            outcome = made.read("manifest.json").get("outcome")
            assert outcome is not None, "destroy has not closed the run directory"
        clean(made)  # twice is as good as once
    return f"{victim} ({phase})" if killed_ns else "too late"


def _kill(
    made: Scene, process: subprocess.Popen[str], victim: str, phase: str, rnd: random.Random
) -> int:
    """When (CLOCK_MONOTONIC); 0 if there was nothing to kill."""
    if find(process, victim) == 0:
        return 0
    reach(made, process, phase, rnd)
    pid = find(process, victim) if process.poll() is None else 0
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return time.monotonic_ns()
    return 0


def _judge(made: Scene, end: tuple[int, str], victim: str, phase: str, killed_ns: int) -> None:
    outcome = outcome_is_told(made, end[0])
    if not killed_ns or phase == ENDING or _over(made, killed_ns):
        return  # the run may have ended before anybody noticed
    if victim == "agent":
        assert outcome in (COMPLETED, FAILED), end  # before the start it is fatal, else it is back
        return
    assert outcome == FAILED, end
    assert end[1].strip(), "failed without a reason"


def _over(made: Scene, killed_ns: int) -> bool:
    """The timeline had come to its end by then, or nearly so."""
    start_ns = made.read("manifest.json").get("start_monotonic_ns")
    return isinstance(start_ns, int) and killed_ns >= start_ns + LAST_NS


def main() -> int:
    return rounds.run("kills", __doc__, attempt)


if __name__ == "__main__":
    sys.exit(main())
