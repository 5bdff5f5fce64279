"""Setups and readiness with real programs: when they run, what time 0 waits for, and what is said
of programs that do not get so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.intime import Attempt, exactly
from tests.runtime.support import Compile, User, records

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

SECOND = 10**9
# The program listens a while after its start; the file shows that the setup came before it.
LATE = "sh -c 'test -f made && sleep 0.4 && exec python3 -m http.server 8000'"
WEB = f"""
service web img=x exec="{LATE}" setup="sh -c 'echo making; touch made'" ready=tcp:8000
bridge s1
link web--s1 latency=1
"""
ASKER = """
service asker img=x exec="./ask" expect=success
link asker--s1 latency=1
"""
ASK = """#!/usr/bin/env python3
import socket
socket.create_connection(("web.0", 8000))
"""


def events(user: User, *kinds: str, out: str = "out") -> list[dict[str, Any]]:
    found = records(user.home / out / "events.jsonl")
    return [one for one in found if one["kind"] in kinds]


def log(user: User, name: str, out: str = "out") -> list[str]:
    return (user.home / out / "logs" / f"{name}.log").read_text().splitlines()


def summary(user: User, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / out / "summary.json").read_text())
    return found


@pytest.mark.parametrize("hosts", [0, 2])
def test_time_zero_is_when_all_are_ready(
    plan_of: Compile, user: User, workspace: Path, hosts: int
) -> None:
    """Who has no check starts then, and asks the server once: it must be ready."""
    script = workspace / "ask"  # beside the plan
    script.write_text(ASK)
    script.chmod(0o755)
    plan = plan_of(WEB + ASKER + "start when ready\nquit when asker exits\nat 60s quit\n")
    result = user.run(plan, hosts=hosts)
    assert (result["outcome"], result["exit_code"]) == ("completed", 0), result
    setup, ready = events(user, "setup", "ready")
    assert (setup["kind"], setup["target"], setup["status"]) == ("setup", "web.0", 0)
    assert setup["applied_ns"] < ready["ready_ns"] <= 0
    (join,) = (one for one in events(user, "join") if one["target"] == "web.0")
    assert join["started_ns"] < join["ready_ns"] <= 0
    assert join["ready_ns"] - join["started_ns"] > 0.4 * SECOND
    (asker,) = (one for one in events(user, "join") if one["target"] == "asker.0")
    assert asker["started_ns"] >= 0
    found = summary(user)
    assert [one["target"] for one in found["setups"]] == ["web.0"]
    assert [one["ready_ns"] for one in found["readiness"]] == [ready["ready_ns"]]
    assert log(user, "web.0")[:3] == [
        "[tstorm] before 0 s: setup sh",
        "making",
        "[tstorm] before 0 s: setup ended with 0",
    ]


def test_a_later_join_is_set_up_once_and_followed_until_it_is_ready(
    plan_of: Compile, user: User
) -> None:
    text = WEB + "at 100ms web join\nat 1500ms web crash\nat 1600ms web join\nat 3s quit\n"
    plan = plan_of(text)

    def trial(attempt: Attempt) -> None:
        out = attempt.name("out")
        attempt.saw(user.home / out)
        user.run(plan, out, **attempt.options)
        check_the_later_join(user, out)

    exactly(trial)


def check_the_later_join(user: User, out: str) -> None:
    (setup,) = events(user, "setup", out=out)
    first, second = events(user, "join", out=out)
    (start,) = events(user, "start", out=out)
    ready = events(user, "ready", out=out)
    assert "started_ns" not in first, "the setup came before the start"
    assert first["applied_ns"] < setup["applied_ns"] <= start["started_ns"]
    assert start["started_ns"] < ready[0]["ready_ns"] < second["applied_ns"]
    assert second["started_ns"] < ready[1]["ready_ns"]
    assert log(user, "web.0", out).count("making") == 1
    marks = [line.partition(" s: ")[2] for line in log(user, "web.0", out) if "[tstorm]" in line]
    assert marks == ["join", "setup sh", "setup ended with 0", "crash", "join"]


NEVER = """
service db img=x exec="sh -c 'echo no space left; sleep 60'" ready="sh -c 'echo refused; exit 2'" \
ready-timeout=600ms
service fine img=x exec="sleep 60"
bridge s1
link db--s1 latency=1
link fine--s1 latency=1
at 1500ms quit
"""

REFUSED = "not within 0.6 s (ready-timeout=): the check sh ended with 2: refused"
HANGS = "service fine img=x ready=\"sh -c 'echo no such database; sleep 60'\" ready-timeout=900ms"


def test_a_run_that_starts_when_ready_fails_where_one_is_not(plan_of: Compile, user: User) -> None:
    result = user.run(plan_of("start when ready\n" + NEVER))
    assert (result["outcome"], result["exit_code"]) == ("failed", 5)
    assert result["message"] == (f"db.0 is not ready: {REFUSED}; last log line: no space left")
    (never,) = events(user, "not_ready")
    assert (never["target"], never["reason"]) == ("db.0", REFUSED)
    assert events(user, "join") == []


def test_without_it_what_is_not_ready_is_a_warning(plan_of: Compile, user: User) -> None:
    plan = plan_of(NEVER.replace("service fine img=x", HANGS))
    process = user.start("run", str(plan), str(user.home / "out"), "{}")
    said = [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]
    assert (said[-1]["outcome"], said[-1]["exit_code"]) == ("completed", 0)
    warnings = [one["message"] for one in said[:-1] if one["warning"]]
    assert sorted(warnings) == [
        f"db.0 is not ready: {REFUSED}",
        "fine.0 is not ready: not within 0.9 s (ready-timeout=): the check sh did not end in 0.9 s:"
        " no such database",
    ]
    never = sorted(events(user, "not_ready"), key=lambda one: one["took_ns"])
    assert never[0]["took_ns"] >= 0.6 * SECOND
    found = [one["reason"] for one in summary(user)["readiness"]]
    assert found == [one["reason"] for one in never]


def test_a_program_that_failed_is_not_waited_for(plan_of: Compile, user: User) -> None:
    text = NEVER.replace("sleep 60'\" ready=", "exit 7'\" ready=").replace("600ms\n", "60s\n")
    result = user.run(plan_of("start when ready\n" + text))
    assert result["exit_code"] == 5
    assert result["message"].startswith("db.0 is not ready: its program ended with status 7")


def test_a_setup_that_fails_is_a_program_that_could_not_start(plan_of: Compile, user: User) -> None:
    text = """
service db img=x exec="touch started" setup="sh -c 'echo no such user; exit 3'"
bridge s1
link db--s1 latency=1
at MOMENT db join
at 60s quit
"""
    for moment in ("0s", "300ms"):
        result = user.run(plan_of(text.replace("MOMENT", moment)), moment)
        assert (result["outcome"], result["exit_code"]) == ("failed", 5)
        assert result["message"].startswith("db.0: cannot start 'touch': setup ended with 3")
        (failed,) = summary(user, moment)["failures"]
        assert failed["error"] == "setup ended with 3"
        assert not list((user.home / moment / "instances").glob("*/started"))
        assert "no such user" in log(user, "db.0", moment)


def test_a_crash_ends_a_setup_and_the_next_join_tries_again(plan_of: Compile, user: User) -> None:
    setup = "sh -c 'echo x >> tries; test $(wc -l < tries) -gt 1 || sleep 60'"
    text = f"""
service db img=x exec="sh -c 'touch started; sleep 60'" setup="{setup}"
bridge s1
link db--s1 latency=1
at 200ms db join
at 700ms db crash
at 1s db join
at 2s quit
"""
    result = user.run(plan_of(text), fail_on_exit=True)
    assert (result["outcome"], result["exit_code"]) == ("completed", 0)
    home = user.home / "out/instances/db.0"
    assert (home / "tries").read_text() == "x\nx\n"
    assert (home / "started").exists()
    (start,) = events(user, "start")
    assert start["started_ns"] > SECOND


def test_a_check_by_tcp_is_made_where_the_instance_is(plan_of: Compile, user: User) -> None:
    """Nothing of the machine listens there, and other instances do."""
    text = """
service one img=x exec="sleep 60" ready=tcp:8000 ready-timeout=500ms
service two img=x exec="python3 -m http.server 8000" ready=tcp:8000
service six img=x exec="python3 -m http.server 8000 --bind ::" ready=tcp:8000
bridge s1
link one--s1 latency=1
link two--s1 latency=1
link six--s1 latency=1
at 4s quit
"""
    user.run(plan_of(text))
    assert {one["target"] for one in events(user, "ready")} == {"two.0", "six.0"}
    (never,) = events(user, "not_ready")
    assert never["target"] == "one.0"
    assert "Connection refused" in never["reason"]


def test_times_before_time_zero_are_negative_also_of_a_program_that_ended(
    plan_of: Compile, user: User
) -> None:
    text = """
service quick img=x exec="true" ready=none expect=success
service slow img=x exec="sleep 60" ready="sh -c 'test -e there || { touch there; exit 1; }'"
bridge s1
link quick--s1 latency=1
link slow--s1 latency=1
start when ready
at 300ms quit
"""
    result = user.run(plan_of(text))
    assert (result["outcome"], result["exit_code"]) == ("completed", 0), result
    (ended,) = (one for one in events(user, "exit") if one["target"] == "quick.0")
    assert ended["applied_ns"] < 0
    assert not ended["asked"]
    shown = user.call("inspect", str(user.home / "out"))
    assert shown["summary"]["verdict"]["state"] == "unknown"


def test_whom_others_start_after_starts_before_them_without_a_check(
    plan_of: Compile, user: User
) -> None:
    """Without after= all three would start at time 0, in any order."""
    text = """
service db img=x exec="sleep 60"
service job img=x exec="true" expect=success
service app img=x exec="sleep 60" after=db;job:exit ready=none
bridge s1
link db--s1 latency=1
link job--s1 latency=1
link app--s1 latency=1
start when ready
at 300ms quit
"""
    result = user.run(plan_of(text))
    assert (result["outcome"], result["exit_code"]) == ("completed", 0), result
    joined = {one["target"]: one["started_ns"] for one in events(user, "join")}
    (ended,) = (one for one in events(user, "exit") if one["target"] == "job.0")
    assert joined["db.0"] < joined["app.0"] < 0
    assert ended["applied_ns"] < joined["app.0"]
