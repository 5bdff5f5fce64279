"""Whether programs did what is right, how a run ends because of them, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.driver.programends import NOTICED
from runtime.judge import judge_programs
from runtime.judge.lateness import late_for_delays
from runtime.options import COMPLETED, DEFAULTS, FAILED
from runtime.results.event_comparison import Log, differ
from runtime.results.loglines import last_line
from runtime.results.summary import programs_failed
from runtime.rundir import logmarks
from runtime.rundir.discard import discard
from runtime.rundir.held_directory import HeldDirectory
from tests.runtime.support import Compile, User, records
from tests.waiting import wait_until

MS = 1_000_000
BEGUN = {"kind": "join", "target": "a.0", "started_ns": 5}


def ended(status: int = 0, sig: int = 0, **more: object) -> dict[str, object]:
    found = {"kind": "exit", "target": "a.0", "applied_ns": 9, "status": status, "signal": sig}
    return {**found, "asked": False, **more}


def judged(expect: str, *found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return judge_programs.failures({"a.0": expect}, [BEGUN, *found], to_the_end=True)


# -- what is right ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "fine", "one", "killed", "running"),
    [
        ("success", True, False, False, False),
        ("run", False, False, False, True),
        ("any", True, True, True, True),
        ("", True, False, False, True),
    ],
)
def test_what_services_expect(
    expect: str, fine: bool, one: bool, killed: bool, running: bool
) -> None:
    assert (judged(expect, ended(0)) == []) is fine
    assert (judged(expect, ended(1)) == []) is one
    assert (judged(expect, ended(-1, 9)) == []) is killed
    assert (judged(expect, {"kind": "killed", "target": "a.0", "applied_ns": 1}) == []) is killed
    assert (judged(expect, ended(-1, 15, asked=True)) == []) is running


def test_what_the_timeline_ends_is_not_judged() -> None:
    for kind in ("leave", "crash"):
        gone = {"kind": kind, "target": "a.0"}
        assert judged("success", gone, ended(-1, 15, asked=True)) == []
        (still,) = judged("success", gone, ended(-1, 15, asked=True), BEGUN)
        assert still == {"target": "a.0", "expect": "success", "still_running": True}
    # a failure before it stays one
    assert len(judged("success", ended(3), {"kind": "crash", "target": "a.0"})) == 1
    # and an interrupted run says nothing of what still ran
    assert judge_programs.failures({"a.0": "success"}, [BEGUN], to_the_end=False) == []


def test_a_program_that_ended_before_time_zero_has_ended() -> None:
    """Its join is done at time 0, and stands behind its end."""
    early = {"kind": "join", "target": "a.0", "started_ns": -80}
    assert (
        judge_programs.failures(
            {"a.0": "success"}, [ended(0, applied_ns=-5), early], to_the_end=True
        )
        == []
    )
    later = {"kind": "join", "target": "a.0", "started_ns": 70}
    again = [early, ended(0), later]
    assert len(judge_programs.failures({"a.0": "success"}, again, to_the_end=True)) == 1


def test_who_states_nothing_counts_where_that_is_asked_for() -> None:
    (failure,) = judged("", ended(1))
    assert not judge_programs.counts(failure, fail_on_exit=False)
    assert judge_programs.counts(failure, fail_on_exit=True)
    (failure,) = judged("success", ended(1))
    assert judge_programs.counts(failure, fail_on_exit=False)


@pytest.mark.parametrize("expect", ["", "any", "run"])
def test_what_cannot_be_started_counts_whatever_is_stated(expect: str) -> None:
    never = {"kind": "exit", "target": "a.0", "applied_ns": 0, "error": "no such program"}
    (failure,) = judged(expect, never)
    assert judge_programs.counts(failure, fail_on_exit=False)


# -- what is said -----------------------------------------------------------------------------


def test_a_run_that_failed_blames_programs_only_where_they_have_ended_it() -> None:
    """What ended the run may have ended them, too, as when memory runs out."""
    summary = {"outcome": FAILED, "failures": [{"target": "a.0", "expect": "success", "signal": 9}]}
    assert not programs_failed(summary, DEFAULTS)
    assert programs_failed(summary, DEFAULTS, ended_by_programs=True)
    assert programs_failed({**summary, "outcome": COMPLETED}, DEFAULTS)


def test_packets_that_are_late_for_small_delays_are_said() -> None:
    totals = {"tx_frames": "5000", "late_p99_ns": str(MS)}
    assert late_for_delays(totals, 10 * MS) == [], "a tenth is what is allowed"
    (limit,) = late_for_delays(totals, 10 * MS - 1)
    assert (limit["what"], limit["figure_ns"], limit["percent"]) == ("late_p99", MS, 10)
    (limit,) = late_for_delays({**totals, "tx_frames": "7"}, 2 * MS)
    assert limit["text"] == (
        "1 of 100 packets left the engine 1 ms late or later (of 7 packets: hardly more than the"
        " latest ones): 50 % of the smallest delay of a link, which is 2 ms"
    )
    assert late_for_delays({**totals, "tx_frames": "0"}, 2 * MS) == []
    assert late_for_delays(totals, 0) == []
    assert late_for_delays({}, 2 * MS) == [], "a datapath that does not count it"


def log_of(quit_ns: int | None, *planned_ns: int) -> Log:
    events = {
        seq: {"kind": "set", "target": "l", "args": {}, "planned_ns": at}
        for seq, at in enumerate(planned_ns)
    }
    return Log(events, Counter(), {}, quit_ns)


def test_runs_that_programs_end_are_compared_up_to_there() -> None:
    assert differ(log_of(50, 10, 40), log_of(60, 10, 40, 55)) == []
    assert [one.what for one in differ(log_of(50, 10), log_of(60, 10, 40))] == ["event"]
    (one,) = differ(log_of(50, 10), log_of(None, 10, 55))
    assert (one.what, one.first, one.second) == ("end", "the run ended early", "")


def test_marks_are_read_as_they_are_written() -> None:
    for at_ns in (0, 1, 12_345_678_901):
        text = logmarks.words(at_ns, "crash")
        assert logmarks.parse(text) == logmarks.Mark(at_ns, "crash")
    assert logmarks.parse(logmarks.words(None, "setup sh")) == logmarks.Mark(None, "setup sh")
    cut = logmarks.line(logmarks.words(7, "a\nb"), cut=True).decode()
    assert cut == "\n[tstorm] 0.000000007 s: a b (the line before had no end)\n"
    assert logmarks.parse(cut.strip()) == logmarks.Mark(7, "a b", cut=True)
    assert logmarks.parse("[tstorm] of a program") is None


def test_the_last_line_of_a_log_is_the_programs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = "[12:01] disk full\n[tstorm] 2.000000000 s: crash\n[tstorm] before 0 s: setup sh\n\n"
    (tmp_path / "logs/a.0.log").write_text(text)
    assert last_line(HeldDirectory.hold(tmp_path.resolve()), "a.0.log") == "[12:01] disk full"


def test_data_is_removed_whatever_programs_have_made_of_it(tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    for name in ("db.0", "db.1", "web.0", ".fs/db.0", ".fs/web.0"):
        deep = tmp_path / "instances" / name / "work" / "work"
        deep.mkdir(parents=True)
        (deep / "page").write_text("data")
        (deep / "way out").symlink_to(kept)
        deep.chmod(0)
        deep.parent.chmod(0o500)
    (tmp_path / "instances/db.2").symlink_to(kept)
    run = HeldDirectory.hold(tmp_path.resolve())
    left = discard(run, ["db"])
    assert left == ["db.2"], "a link in the place of a directory is not ours"
    there = sorted(path.name for path in (tmp_path / "instances").iterdir())
    assert there == [".fs", "db.2", "web.0"]
    assert [path.name for path in (tmp_path / "instances/.fs").iterdir()] == ["web.0"]
    assert kept.is_dir()
    assert discard(run, []) == []


def test_what_a_killed_trial_of_overlays_has_left_goes_with_any_run(tmp_path: Path) -> None:
    inner = tmp_path / "instances/.try-x/0/work/work"
    inner.mkdir(parents=True)
    inner.chmod(0)
    (tmp_path / "instances/a.0").mkdir()
    assert discard(HeldDirectory.hold(tmp_path.resolve()), []) == []
    assert [path.name for path in (tmp_path / "instances").iterdir()] == ["a.0"]


# -- with real programs -----------------------------------------------------------------------

FOUR = """
service works img=x exec="sh -c 'sleep 0.2; exit {}'" expect=success
service serves img=x exec="sleep 60" expect=run
service idles img=x exec="sh -c 'exit 9'" expect=any
service loose img=x exec="sh -c 'echo broken pipe; exit 4'"
bridge s1
link works--s1 latency=1
link serves--s1 latency=1
link idles--s1 latency=1
link loose--s1 latency=1
at 900ms quit
"""


def summary(user: User, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / out / "summary.json").read_text())
    return found


@pytest.mark.e2e
@pytest.mark.one_user
def test_expectations_decide_the_exit_code(plan_of: Compile, user: User) -> None:
    assert user.run(plan_of(FOUR.format(0)), "fine")["exit_code"] == 0
    (loose,) = summary(user, "fine")["failures"]
    assert (loose["target"], loose["status"], loose["expect"]) == ("loose.0", 4, "")
    assert loose["last_log_line"] == "broken pipe"
    result = user.run(plan_of(FOUR.format(6)), "unmet")
    assert (result["outcome"], result["exit_code"]) == ("completed", 5)
    plan = plan_of(FOUR.format(0).replace("sleep 0.2", "sleep 60"))
    assert user.run(plan, "late")["exit_code"] == 5
    assert [one["target"] for one in summary(user, "late")["failures"]] == ["loose.0", "works.0"]
    plan = plan_of(FOUR.format(0).replace("sleep 60", "true"))
    assert user.run(plan, "gone")["exit_code"] == 5
    page = (user.home / "gone/report.html").read_text()
    assert "serves.0" in page.partition("Programs that failed")[2]


@pytest.mark.e2e
@pytest.mark.one_user
def test_the_first_failure_ends_a_run_where_that_is_asked_for(plan_of: Compile, user: User) -> None:
    plan = plan_of(FOUR.format(0).replace("900ms quit", "60s quit"))
    result = user.run(plan, fail_fast=True)
    assert (result["outcome"], result["exit_code"]) == ("failed", 5)
    assert result["message"] == (
        "loose.0: its program ended by itself with status 4 (--fail-fast);"
        " last log line: broken pipe"
    )


@pytest.mark.e2e
def test_of_many_programs_that_end_as_they_should_the_first_ones_are_told(
    plan_of: Compile, user: User
) -> None:
    text = 'service a replicas=30 exec="true" expect=success\nbridge s\nlink a--s latency=1\n'
    plan = plan_of(text + "quit when all exit\n")
    process = user.tstorm("run", str(plan), "--out", str(user.home / "out"))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said.count("its program ended by itself with status 0") == NOTICED


QUITS = """
service bench img=x replicas=2 exec="sh -c 'sleep 0.4; exit {}'" expect=success
service server img=x exec="sh -c 'trap \\"\\" TERM; while :; do sleep 1; done'" grace=700ms \
    expect=run keep=no
bridge s1
link bench--s1 latency=1
link server--s1 latency=1
at 200ms bench.1 join
at 700ms bench.0 crash
at 800ms bench.0 join
at 30s server leave
quit when bench exits
"""


@pytest.mark.e2e
@pytest.mark.one_user
def test_a_run_ends_when_its_programs_have(plan_of: Compile, user: User) -> None:
    """Not before all of them have, those included that are still to join."""
    result = user.run(plan_of(QUITS.format(0)), "out")
    assert (result["outcome"], result["exit_code"]) == ("completed", 0)
    found = records(user.home / "out/events.jsonl")
    (over,) = (one for one in found if one["kind"] == "quit")
    assert "seq" not in over
    assert 1_200 * MS < over["applied_ns"] < 20_000 * MS
    assert over["reason"] == "the programs of bench have ended"
    (late,) = (one for one in found if one["kind"] == "overdue")
    assert (late["target"], late["grace_ns"]) == ("server.0", 700 * MS)
    assert late["applied_ns"] >= over["applied_ns"] + 700 * MS
    told = summary(user)
    assert told["quit_early"] == over["reason"]
    assert told["events"]["planned"] == told["events"]["applied"] == 5
    assert told["verdict"]["state"] == "unknown", "what was planned later is not missing"
    assert sorted(path.name for path in (user.home / "out/instances").iterdir()) == [
        "bench.0",
        "bench.1",
    ]


@pytest.mark.e2e
def test_data_directories_go_at_the_end_also_of_a_run_that_was_killed(
    plan_of: Compile, user: User
) -> None:
    text = (
        FOUR.format(0)
        .replace("sleep 60", "echo data > base; sleep 60")
        .replace('exec="echo data > base; sleep 60"', "exec=\"sh -c 'echo data > base; sleep 60'\"")
    )
    assert user.run(plan_of(text), "done", discard_instances=True)["outcome"] == "completed"
    assert list((user.home / "done/instances").iterdir()) == []
    assert (user.home / "done/logs/loose.0.log").read_text() == "broken pipe\n"
    process = user.begin(plan_of(text.replace("900ms", "60s")), discard_instances=True)
    base = user.home / "out/instances/serves.0/base"
    wait_until(base.exists, "the program's data")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    user.call("destroy", str(user.home / "out"))
    assert list((user.home / "out/instances").iterdir()) == []
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert manifest["outcome"] == "killed"
    assert manifest["discards"] == ["works", "serves", "idles", "loose"]


@pytest.mark.e2e
def test_logs_have_marks_where_the_timeline_did_something(
    plan_of: Compile, user: User, workspace: Path
) -> None:
    text = """
service talker img=x exec="./talk"
service plain img=x exec="sh -c 'echo begun; sleep 60'"
bridge s1
link talker--s1 latency=1
link plain--s1 latency=1
at 0s talker join
at 600ms talker crash
at 900ms talker join
at 1500ms talker leave
at 2s quit
"""
    script = workspace / "talk"  # beside the plan
    script.write_text("#!/bin/sh\nprintf begun\ntrap 'printf bye; exit' TERM\nsleep 60 & wait\n")
    script.chmod(0o755)
    user.run(plan_of(text))
    lines = (user.home / "out/logs/talker.0.log").read_text().splitlines()
    marks = [logmarks.parse(line) for line in lines]
    assert [mark.text if mark else line for mark, line in zip(marks, lines, strict=True)] == [
        *("begun", "crash", "join"),
        *("begun", "leave", "bye"),
    ]
    found = records(user.home / "out/events.jsonl")
    crash = next(one for one in found if one["kind"] == "crash")
    assert marks[1] == logmarks.Mark(crash["applied_ns"], "crash", cut=True)
    assert (user.home / "out/logs/plain.0.log").read_text() == "begun\n", "nothing was done to it"


@pytest.mark.e2e
def test_inspect_says_who_is_paused_and_never_that_the_dead_run(
    plan_of: Compile, user: User
) -> None:
    text = """
service stands img=x exec="sleep 60"
service dead img=x exec="true"
bridge s1
link stands--s1 latency=1
link dead--s1 latency=1
at 100ms stands.0 pause
at 60s quit
"""
    process = user.begin(plan_of(text))
    out = user.home / "out"
    kinds = {"pause", "exit"}
    wait_until(
        lambda: kinds <= {one["kind"] for one in records(out / "events.jsonl")}, "pause and end"
    )
    found = {one["name"]: one for one in user.call("inspect", str(out))["instances"]}
    assert (found["stands.0"]["paused"], found["dead.0"]["paused"]) == (True, False)
    assert (found["dead.0"]["exit_status"], found["stands.0"].get("exit_status")) == (0, None)
    shown = user.tstorm("inspect", str(out)).communicate(timeout=60)[0]
    rows = [line.split() for line in shown.splitlines() if line.startswith(("stands.0", "dead.0"))]
    assert {row[0]: row[2] for row in rows} == {"stands.0": "paused", "dead.0": "ended"}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
