"""kill -9 of each part at random moments: nothing is left after `destroy`."""

from __future__ import annotations

import json
import os
import random
import signal
import time

import pytest

from tests.runtime.support import Compile, User, processes_with
from tests.trials.scene import all_ended, driver_of, helper, nothing_left
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

PLAN = """
service server img=x replicas=4 exec="sh -c 'sleep 61 & sleep 62'"
bridge s1
link server--s1 latency=1 up=10Mb down=10Mb
at 100ms server.0 crash
at 100ms server.0 join
at 200ms server.1 leave
at 300ms server.1 join
at 60s quit
"""

MOMENTS = random.Random(20).sample(range(50, 1200, 10), 4)  # ms after the start


@pytest.mark.parametrize("moment", MOMENTS)
def test_killing_tstorm_kills_everything(plan_of: Compile, user: User, moment: int) -> None:
    process = user.start("run", str(plan_of(PLAN)), str(user.home / "out"), "{}")
    time.sleep(moment / 1000)  # the moment is the point: any will do
    process.send_signal(signal.SIGKILL)
    process.wait()
    all_ended(user)
    if (user.home / "state").exists():  # else it had not come to its record yet
        nothing_left(user)
        nothing_left(user)  # destroying twice is as good as once


@pytest.mark.parametrize("moment", MOMENTS[:2])
def test_killing_the_driver_ends_the_run(plan_of: Compile, user: User, moment: int) -> None:
    process = user.start("run", str(plan_of(PLAN)), str(user.home / "out"), "{}")
    driver = wait_until(lambda: driver_of(process), "the driver's start")
    time.sleep(moment / 1000)
    os.kill(driver, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    result = json.loads(out.splitlines()[-1])
    assert result["outcome"] == "failed", err
    assert "killed by signal 9" in result["message"] or "status 137" in result["message"]
    nothing_left(user)
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert manifest["outcome"] == "failed"


def test_killing_pktd_fails_the_run_with_a_reason(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN))
    pktd = wait_until(lambda: helper(process, "pktd"), "pktd")
    os.kill(pktd, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    result = json.loads(out.splitlines()[-1])
    assert result["outcome"] == "failed", err
    assert "packet engine (pktd) ended during the run (status -9)" in result["message"]
    nothing_left(user)


def test_killing_the_nursery_fails_the_run_with_a_reason(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN))
    nursery = wait_until(lambda: helper(process, "tstorm-ns"), "the nursery")
    os.kill(nursery, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    result = json.loads(out.splitlines()[-1])
    assert result["outcome"] == "failed", err
    assert "nursery" in result["message"]
    nothing_left(user)


def test_the_next_run_clears_up_after_a_killed_one(plan_of: Compile, user: User) -> None:
    plan = plan_of(PLAN)
    process = user.begin(plan, "first")
    active = user.home / "state/tstorm/active"
    assert len(list(active.iterdir())) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert user.run(plan, "second", until_ns=100_000_000)["outcome"] == "completed"
    assert list(active.iterdir()) == []
    manifest = json.loads((user.home / "first/manifest.json").read_text())
    assert manifest["outcome"] == "killed"


def test_a_crash_kills_what_the_program_left_behind(plan_of: Compile, user: User) -> None:
    """Also a daemon that has detached itself from its session."""
    plan = plan_of(
        "service server img=x exec=\"sh -c 'setsid sleep 77 & sleep 78'\"\nbridge s1\n"
        "link server--s1 latency=1\nat 1s server.0 crash\nat 30s quit\n"
    )
    process = user.begin(plan)
    run = f"TSTORM_RUN_DIR={user.home / 'out'}"
    wait_until(lambda: len(processes_with(run)) >= 2, "the program and its daemon")
    wait_until(lambda: not processes_with(run), "their end at the crash", 15)
    assert process.poll() is None
