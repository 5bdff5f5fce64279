"""The small experiment that trials disturb, and what may be said of it afterwards."""

from __future__ import annotations

import random
import subprocess
import time
from contextlib import suppress

from tests.trials.scene import Scene, parts
from tests.waiting import wait_until

COMPLETED, FAILED, INTERRUPTED = "completed", "failed", "interrupted"
EXITS = {0: COMPLETED, 1: FAILED, 3: FAILED, 130: INTERRUPTED}
SETTING_UP, RUNNING, ENDING = "set-up", "running", "ending"
PHASES = (SETTING_UP, RUNNING, ENDING)
READY_SECONDS = 60

# Instances that come and go, one that crashes with a child of its own, one that will not be told to
# leave, and a link that changes.
TEXT = """
service server img=x replicas=3 exec="sh -c 'sleep 61 & sleep 62'"
service stubborn img=x exec="sh -c 'trap : TERM; sleep 63 & while :; do wait; done'"
bridge s1
link server--s1 latency=1 up=10Mb down=10Mb
link stubborn--s1 latency=1 up=10Mb down=10Mb
at 200ms server.0 crash
at 400ms server.0 join
at 500ms server--s1 set latency=3ms
at 600ms server.1 leave
at 900ms server.1 join
at 1500ms quit
"""
LAST_NS = 1_400_000_000  # from here on the end may come first


def options(rnd: random.Random) -> tuple[str, ...]:
    """Hop-exact or over two hosts."""
    return rnd.choice([(), ("--hosts", "2")])


def find(process: subprocess.Popen[str], part: str) -> int:
    """The part's process, as soon as it is there; 0 if the run has ended without it."""
    found = [0]

    def there() -> bool:
        found[0] = parts(process).get(part, 0)
        return bool(found[0]) or process.poll() is not None

    wait_until(there, f"a {part}", READY_SECONDS)
    return found[0]


def reach(scene: Scene, process: subprocess.Popen[str], phase: str, rnd: random.Random) -> None:
    """A random moment of this phase, or the end of the run."""
    if phase == SETTING_UP:
        time.sleep(rnd.uniform(0, 0.8))
        return
    wait_until(lambda: scene.going() or process.poll() is not None, "events", READY_SECONDS)
    if phase == RUNNING:
        time.sleep(rnd.uniform(0, 1.2))
        return
    leave(process)
    time.sleep(rnd.uniform(0, 3))  # within the grace of what will not leave


def leave(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        process.terminate()


def outcome_is_told(scene: Scene, status: int) -> str:
    """What the exit status says and what stands in the run directory are the same. Returns it.

    Before there is a run directory nothing needs to stand in it.
    """
    assert status in EXITS, f"it ended with {status}"
    manifest = scene.read("manifest.json")
    if manifest:
        assert manifest.get("outcome") == EXITS[status], (status, manifest.get("outcome"))
    elif EXITS[status] == COMPLETED:
        raise AssertionError("completed, and there is no manifest")
    return EXITS[status]
