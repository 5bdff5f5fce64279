"""One part of a run is stopped and goes on, or tstorm is told to end, at a random moment.

    python -m tests.trials.stops [--rounds N | --seconds N] [--seed N]

SIGSTOP and SIGCONT of each part for up to three seconds: the run completes, or says that its start
was not together. SIGINT, SIGTERM or SIGHUP: it is interrupted. Either way nothing is left, without
`tstorm destroy`.
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
    FAILED,
    INTERRUPTED,
    RUNNING,
    SETTING_UP,
    TEXT,
    find,
    options,
    outcome_is_told,
    reach,
)
from tests.trials.scene import Scene, all_ended, clean, finished, kinds, scene

PARTS = ("tstorm", "keeper", "init", "driver", "nursery", "datapath")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_SECONDS = 3.0
# What a stop before T0 may end in: the agents' clocks or the common start are not known any more.
NOT_TOGETHER = ("was confirmed by all agents only", "is not known well enough")


def attempt(rnd: random.Random) -> str:
    chosen = options(rnd)
    with scene(TEXT, rnd.choice(kinds())) as made:
        process = made.run(*chosen)
        act = _stopped if rnd.random() < 0.6 else _told
        said = act(made, process, rnd, hosts=bool(chosen))
        all_ended(made.user)
        clean(made)
    return said


def _stopped(
    made: Scene, process: subprocess.Popen[str], rnd: random.Random, *, hosts: bool
) -> str:
    part = rnd.choice([*PARTS, *(["agent"] if hosts else [])])
    phase = rnd.choice((SETTING_UP, RUNNING))
    pid = find(process, part)
    reach(made, process, phase, rnd)
    seconds = rnd.uniform(0.1, MOST_SECONDS)
    with suppress(ProcessLookupError):
        os.kill(pid or process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid or process.pid, signal.SIGCONT)
    end = finished(process)
    outcome = outcome_is_told(made, end[0])
    if outcome == FAILED and hosts and phase == SETTING_UP:
        assert any(words in end[1] for words in NOT_TOGETHER), end
        return f"{part} stopped (not together)"
    assert outcome == COMPLETED, end
    return f"{part} stopped ({phase})"


def _told(made: Scene, process: subprocess.Popen[str], rnd: random.Random, *, hosts: bool) -> str:
    del hosts
    number = rnd.choice(SIGNALS)
    time.sleep(rnd.uniform(0, 2.5))
    begun = bool(made.read("manifest.json"))
    if process.poll() is None:
        process.send_signal(number)
    status, err = finished_or_interrupted(process)
    if status == -number:  # Python had not come to the command yet
        assert not begun
        return "told before it began"
    outcome = outcome_is_told(made, status)
    assert outcome in (COMPLETED, INTERRUPTED), err
    return f"{number.name}, {outcome}"


def finished_or_interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """As finished(); an interpreter that is interrupted while it starts says so in its own way."""
    try:
        return finished(process)
    except AssertionError as error:
        if process.returncode in (1, 130, -signal.SIGINT) and "KeyboardInterrupt" in str(error):
            return -signal.SIGINT, ""
        raise


def main() -> int:
    return rounds.run("stops", __doc__, attempt)


if __name__ == "__main__":
    sys.exit(main())
