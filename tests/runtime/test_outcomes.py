"""Outcomes that say what happened: parts of a run that stand still, end too soon, never start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from runtime.judge.verdict import BOUNDS
from tests.runtime.support import DEADLINE_SECONDS, Compile, User, records
from tests.trials.scene import children, driver_of, helper
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

STOPPED_SECONDS = 2.0
PLAN = """
service server img=x replicas=2 exec="sleep 60"
bridge s1
link server--s1 latency=5
at 1s server--s1 set latency=6
at 2s server--s1 set latency=7
at 4s quit
"""
STUBBORN = """
service server img=x exec="sh -c 'trap : TERM; while :; do sleep 1; done'"
bridge s1
link server--s1 latency=5
at 500ms quit
"""


def summary(user: User, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / out / "summary.json").read_text())
    return found


def events(user: User, kind: str, out: str = "out") -> list[dict[str, Any]]:
    return [one for one in records(user.home / out / "events.jsonl") if one["kind"] == kind]


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert "outcome" in found, err
    return found


def reasons(user: User) -> dict[tuple[str, str], int]:
    verdict = summary(user)["verdict"]
    assert verdict["state"] == "degraded"
    return {(one["what"], one["subject"]): one["figure_ns"] for one in verdict["reasons"]}


def hold_up(pid: int) -> None:
    """Stops a process for STOPPED_SECONDS, counted from when it stands still."""
    os.kill(pid, signal.SIGSTOP)
    try:
        stat = Path(f"/proc/{pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "its stop")
        time.sleep(STOPPED_SECONDS)  # how long is the point
    finally:
        os.kill(pid, signal.SIGCONT)


def until_phase(process: subprocess.Popen[str], phase: str) -> None:
    assert process.stdout is not None
    wait_until(lambda: f'"phase": "{phase}"' in process.stdout.readline(), phase)


# -- what stands still ------------------------------------------------------------------------


def test_a_driver_that_stood_still_is_told(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN), max_lateness_ns=1_000_000_000)
    hold_up(driver_of(process))
    result = result_of(process)
    assert (result["outcome"], result["exit_code"]) == ("completed", 4)
    found = reasons(user)
    assert found["driver_stall", "the driver"] > 1_500_000_000
    assert ("engine_stall", "pktd") not in found, "it was the driver that did not look"
    assert summary(user)["verdict"]["too_late"] is True
    (stall,) = events(user, "stall")
    assert stall["stalled_ns"] == found["driver_stall", "the driver"]
    page = (user.home / "out/report.html").read_text()
    assert page.index("DEGRADED: the driver stood still") < page.index("completed")


def test_an_idle_engine_that_stood_still_is_told(plan_of: Compile, user: User) -> None:
    """Nothing is in flight: only the driver can know it."""
    process = user.begin(plan_of(PLAN))
    hold_up(helper(process, "pktd"))
    result = result_of(process)
    assert (result["outcome"], result["exit_code"]) == ("completed", 0)
    found = reasons(user)
    assert found["engine_stall", "pktd"] > 1_500_000_000
    assert ("driver_stall", "the driver") not in found


def test_a_run_in_time_is_not_degraded_and_not_said_to_be_more(
    plan_of: Compile, user: User
) -> None:
    """A busy machine may well be late: then the reasons must say by how much."""
    assert user.run(plan_of(PLAN), max_lateness_ns=60_000_000_000)["exit_code"] == 0
    verdict = summary(user)["verdict"]
    assert {one["what"] for one in verdict["judged"]} >= {"network_change", "program_start"}
    times = [one for one in verdict["judged"] if one["what"] in BOUNDS]
    assert verdict["largest_ns"] == max(one["figure_ns"] for one in times)
    late = {one["what"] for one in verdict["judged"] if one["figure"] > one["threshold"]}
    assert (verdict["state"] in ("degraded", "invalid")) == bool(late)
    assert {reason["what"] for reason in verdict["reasons"]} == late


HOSTS = PLAN.replace('"sleep 60"', '"ping -i 0.1 server.0"')


@pytest.mark.parametrize("part", ["agent", "datapath"])
def test_parts_of_a_host_that_stood_still_are_told(plan_of: Compile, user: User, part: str) -> None:
    process = user.begin(plan_of(HOSTS), hosts=2)
    driver = driver_of(process)
    name = "pktd" if part == "datapath" else "python"
    pid = next(pid for command, pid in children(driver) if command.startswith(name))
    hold_up(pid)
    assert result_of(process)["outcome"] == "completed"
    found = reasons(user)
    held_up = [figure for (what, _), figure in found.items() if what == "agent_stall"]
    assert held_up, found
    assert max(held_up) > 1_500_000_000


# -- what ends too soon -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [("pktd", "packet engine (pktd) ended during the run (status -9)"), ("tstorm-ns", "nursery")],
)
def test_a_helper_killed_while_winding_down_fails_the_run(
    plan_of: Compile, user: User, name: str, words: str
) -> None:
    process = user.begin(plan_of(STUBBORN))
    pid = helper(process, name)
    until_phase(process, "stopping")
    os.kill(pid, signal.SIGKILL)
    result = result_of(process)
    assert (result["outcome"], result["exit_code"]) == ("failed", 1)
    assert words in result["message"]


def test_a_hosts_datapath_killed_while_winding_down_fails_the_run(
    plan_of: Compile, user: User
) -> None:
    process = user.begin(plan_of(STUBBORN), hosts=1)
    pid = helper(process, "pktd")
    until_phase(process, "stopping")
    os.kill(pid, signal.SIGKILL)
    result = result_of(process)
    assert (result["outcome"], result["exit_code"]) == ("failed", 1)
    assert "the datapath of host0 ended with signal 9" in result["message"]


def test_a_second_interrupt_kills_and_says_interrupted(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(STUBBORN.replace("500ms", "60s")))
    process.send_signal(signal.SIGINT)
    until_phase(process, "stopping")
    process.send_signal(signal.SIGINT)
    result = result_of(process)
    assert (result["outcome"], result["exit_code"]) == ("interrupted", 130)
    assert result["message"].startswith("interrupted twice")
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert manifest["outcome"] == "interrupted"


def test_an_instance_killed_from_outside_is_an_event(plan_of: Compile, user: User) -> None:
    text = "service server\nbridge s1\nlink server--s1 latency=5\nat 60s quit\n"
    process = user.begin(plan_of(text), fail_on_exit=True)
    nursery = helper(process, "tstorm-ns")
    ((_, first),) = children(nursery)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: events(user, "killed"), "the news of it")
    (instance,) = user.call("inspect", str(user.home / "out"))["instances"]
    assert instance["state"] == "killed"
    entered = user.start("exec", str(user.home / "out"), "server.0", "true")
    assert "was killed" in entered.communicate(timeout=DEADLINE_SECONDS)[0]
    process.send_signal(signal.SIGINT)
    assert result_of(process)["outcome"] == "interrupted"
    (killed,) = events(user, "killed")
    assert killed["target"] == "server.0"
    (ended,) = summary(user)["exits"]
    assert (ended["target"], ended["killed"]) == ("server.0", True)


# -- what never starts ------------------------------------------------------------------------

MISSPELT = """
service db img=x exec="/nowhere/postgress -D data" expect=any
service web img=x exec="sleep 60"
bridge s1
link db--s1 latency=1
link web--s1 latency=1
at 60s quit
"""


@pytest.mark.parametrize("hosts", [0, 1])
def test_a_program_that_cannot_be_started_ends_the_run(
    plan_of: Compile, user: User, hosts: int
) -> None:
    process = user.begin(plan_of(MISSPELT), hosts=hosts)
    out, _ = process.communicate(timeout=DEADLINE_SECONDS)
    *told, result = [json.loads(line) for line in out.splitlines()]
    assert (result["outcome"], result["exit_code"]) == ("failed", 5)
    said = "db.0: cannot start '/nowhere/postgress': no such program"
    assert result["message"] == said
    assert [one["warning"] for one in told if one["message"] == said] == [True]
    services = {one["name"]: one for one in told[-1]["services"]}
    assert (services["db"]["joined"], services["db"]["not_started"]) == (0, 1)
    assert (services["web"]["joined"], services["web"]["not_started"]) == (1, 0)
    failed = {one["target"]: one for one in summary(user)["failures"]}
    assert failed["db.0"]["error"] == "no such program"


FLAKY = """
service web img=x exec="sleep 60"
service flaky img=x exec="sh -c 'echo out of disk; exit 3'"
bridge s1
link web--s1 latency=1
link flaky--s1 latency=1
at 500ms quit
"""


def test_failing_programs_are_an_exit_code_where_that_is_asked_for(
    plan_of: Compile, user: User
) -> None:
    plan = plan_of(FLAKY)
    assert user.run(plan, "one")["exit_code"] == 0
    (ended,) = summary(user, "one")["exits"]
    assert ended["last_log_line"] == "out of disk"
    result = user.run(plan, "two", fail_on_exit=True)
    assert (result["outcome"], result["exit_code"]) == ("completed", 5)
    fine = plan_of(
        'service a img=x exec="true"\nservice b img=x exec="sleep 60"\nbridge s1\n'
        "link a--s1 latency=1\nlink b--s1 latency=1\nat 200ms b.0 crash\nat 300ms b.0 join\n"
        "at 500ms b.0 leave\nat 700ms quit\n"
    )
    assert user.run(fine, "three", fail_on_exit=True)["exit_code"] == 0


# -- when it was ------------------------------------------------------------------------------


def test_time_zero_is_told_by_the_wall_clock(plan_of: Compile, user: User) -> None:
    before = time.time_ns()
    user.run(plan_of(PLAN), until_ns=0)
    after = time.time_ns()
    header, *_ = records(user.home / "out/events.jsonl")
    assert (header["kind"], header["format"]) == ("header", "thunderstorm-events")
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert header["start_unix_ns"] == manifest["start_unix_ns"]
    assert header["start_monotonic_ns"] == manifest["start_monotonic_ns"]
    assert before < header["start_unix_ns"] < after
