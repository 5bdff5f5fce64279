"""However a run in virtual time ends, it says how, and nothing of it stays on the host."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from runtime.system import procs
from tests.runtime.guest.longrun import Begin
from tests.runtime.support import Compile, User, processes_with
from tests.virtual.guests import session
from tests.waiting import wait_until

pytestmark = pytest.mark.virtual

SHORT = 'service server img=x exec="sleep 60"\nbridges s1\nlink server--s1 up=1Mb down=1Mb\n'
MOMENTS = random.Random(11).sample(range(50, 2500, 10), 4)  # ms after the start


def started(someone: User, plan: Path) -> subprocess.Popen[str]:
    options = json.dumps({"time": "virtual"})
    return someone.start("run", str(plan), str(someone.home / "out"), options)


def kernel_of(run: subprocess.Popen[str]) -> int:
    """The guest's kernel, once it is there: the only child that leads a session."""
    return wait_until(
        lambda: next((one.pid for one in procs.descendants(run.pid) if leads(one.pid)), 0),
        "the start of the guest's kernel",
    )


def leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def result(run: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = run.communicate(timeout=120)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert "exit_code" in found, err
    return found


def nothing_left(someone: User, kernel: int) -> None:
    """No process, record, socket or folder."""
    place = str(someone.home / "xdg")
    wait_until(lambda: not processes_with(place), "the end of every process")
    if kernel:
        wait_until(lambda: not dict(session(kernel)), "the end of what the kernel has started")
    someone.call("destroy")
    assert list((someone.home / "state/tstorm/active").iterdir()) == []
    assert list((someone.home / "xdg/tstorm").iterdir()) == []


def outcome(someone: User) -> Any:
    return json.loads((someone.home / "out/manifest.json").read_text())["outcome"]


def test_one_interrupt_winds_down_in_virtual_time(begin: Begin, someone: User) -> None:
    run = begin()
    kernel = kernel_of(run)
    run.send_signal(signal.SIGINT)
    assert result(run)["exit_code"] == 130
    assert outcome(someone) == "interrupted"
    ends = [
        json.loads(line) for line in (someone.home / "out/events.jsonl").read_text().splitlines()
    ]
    assert [end["target"] for end in ends if end["kind"] == "exit"] == ["server.0", "server.1"]
    assert "verdict" in json.loads((someone.home / "out/summary.json").read_text())
    nothing_left(someone, kernel)


def test_an_interrupt_is_heard_by_a_guest_that_does_not_listen_yet(
    plan_of: Compile, someone: User
) -> None:
    run = started(someone, plan_of(SHORT))
    kernel = kernel_of(run)
    run.send_signal(signal.SIGINT)
    found = result(run)
    assert (found["outcome"], found["exit_code"]) == ("interrupted", 130)
    nothing_left(someone, kernel)


def test_a_guest_that_stands_still_is_killed_by_a_second_request_to_stop(
    begin: Begin, someone: User
) -> None:
    run = begin()
    kernel = kernel_of(run)
    os.kill(kernel, signal.SIGSTOP)
    while run.poll() is None:  # two that come at once are one request
        run.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    found = result(run)
    assert (found["outcome"], found["exit_code"]) == ("interrupted", 130)
    assert "interrupted twice" in found["message"]
    nothing_left(someone, kernel)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killing_tstorm_takes_the_guest_along(plan_of: Compile, someone: User, moment: int) -> None:
    run = started(someone, plan_of(SHORT + "at 3600s quit\n"))
    time.sleep(moment / 1000)  # the moment is the point: any will do
    known = [one.pid for one in procs.descendants(run.pid) if leads(one.pid)]
    run.kill()
    run.wait()
    for kernel in known or [0]:
        if (someone.home / "state/tstorm/active").exists():  # else it had not come so far
            nothing_left(someone, kernel)
    if (someone.home / "out/manifest.json").exists():
        assert outcome(someone) in ("killed", "completed")


@pytest.mark.parametrize("moment", MOMENTS[:2])
def test_a_killed_kernel_is_an_outcome(begin: Begin, someone: User, moment: int) -> None:
    run = begin()
    kernel = kernel_of(run)
    time.sleep(moment / 1000)
    os.kill(kernel, signal.SIGKILL)
    found = result(run)
    assert (found["outcome"], found["exit_code"]) == ("failed", 1)
    assert "the guest's kernel was killed by signal 9 (Killed)" in found["message"]
    assert outcome(someone) == "failed"
    nothing_left(someone, kernel)


def test_killed_programs_end_the_run(begin: Begin, someone: User) -> None:
    run = begin()
    kernel = kernel_of(run)
    for one in procs.descendants(kernel):
        procs.send(one, signal.SIGKILL)
    assert result(run)["outcome"] == "failed"
    nothing_left(someone, kernel)


def test_destroying_ends_a_live_run(begin: Begin, someone: User) -> None:
    run = begin()
    kernel = kernel_of(run)
    assert [one["was_live"] for one in someone.call("destroy", str(someone.home / "out"))] == [True]
    assert result(run)["outcome"] == "interrupted"
    nothing_left(someone, kernel)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        ("#!/bin/sh\necho 'Kernel panic - not syncing: no place for me' >&2\nexit 1\n", "no place"),
        ("#!/bin/sh\necho ptrace is refused\nexit 1\n", "ptrace is refused"),
        ("\x7fELF", "Exec format error"),
    ],
)
def test_a_machine_that_does_not_start_the_kernel_is_told(
    plan_of: Compile, someone: User, kernel: str, why: str
) -> None:
    file = someone.home / "kernel"
    file.write_text(kernel)
    file.chmod(0o755)
    someone.environment["TSTORM_KERNEL"] = str(file)
    run = started(someone, plan_of(SHORT + "at 1s quit\n"))
    out, err = run.communicate(timeout=120)
    said = json.loads(out.splitlines()[-1])
    assert (said.get("exit_code"), run.returncode) == (3, 3), err
    assert why in said["error"]
    assert outcome(someone) == "failed"
    nothing_left(someone, 0)
