"""`run`, `replay`, `inspect`, `exec`, `destroy`, `doctor`: through the command line, for real."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import DEADLINE_SECONDS, begun, tstorm
from tests.waiting import wait_until

TDL = """\
seed 4
service a img=x replicas=2 exec="sleep 300"
service b
bridge s
link a--s latency=1ms up=10Mb symmetric
link b--s latency=2ms
at 1s a crash 1
at 2s a--s set latency=5ms
at 3s quit
"""

pytestmark = pytest.mark.e2e


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "two.tdl").write_text(TDL, encoding="utf-8")
    return tmp_path


def inspected(place: Path, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tstorm(place, "inspect", run, "--format", "json").stdout)
    return found


@pytest.fixture
def going_on(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of a minute in `place`/runs/long, up and running; killed in the end if still there."""
    (place / "two.tdl").write_text(TDL.replace("at 3s quit", "at 60s quit"), encoding="utf-8")
    with begun(place, "run", "two.tdl", "--out", "runs/long") as process:

        def up() -> bool:
            assert process.poll() is None, process.communicate()
            return (place / "runs/long/events.jsonl").exists() and inspected_running(place)

        wait_until(up, "the run goes on")
        yield process
    tstorm(place, "destroy", "--all")


def inspected_running(place: Path) -> bool:
    """Whether the run answers and every instance that joins at 0 s has joined."""
    done = tstorm(place, "inspect", "runs/long", "--format", "json", code=None)
    return done.returncode == 0 and json.loads(done.stdout).get("applied", 0) >= 3


@pytest.mark.ordinary
def test_run_and_replay(place: Path) -> None:
    asked = ("--out", "runs/one", "--format", "json", "--until", "1m")
    first = tstorm(place, "run", "two.tdl", *asked)
    result = json.loads(first.stdout)
    assert (result["outcome"], result["summary"]["events"]["applied"]) == ("completed", 9)
    assert Path(result["directory"]) == (place / "runs/one").resolve()
    assert "running" in first.stderr
    assert "note: the experiment ends at 3s, before --until 1m: 'at 1m quit' in" in first.stderr
    again = tstorm(place, "replay", "runs/one", "--check", "--quiet", "--out", "runs/again")
    assert again.stdout == f"{(place / 'runs/again').resolve()}\n"
    assert "the same events" in again.stderr
    manifest = json.loads((place / "runs/again/manifest.json").read_text(encoding="utf-8"))
    assert manifest["experiment"] == "two"
    assert manifest["plan_digest"] == result["summary"]["plan_digest"]


def test_a_replay_that_differs_says_what_and_ends_with_1(place: Path) -> None:
    first = tstorm(place, "run", "two.tdl", "--out", "runs/one", "--until", "1s")
    assert "note: no run of this in real time can be VALID, however good" in first.stderr
    differs = tstorm(place, "replay", "runs/one", "--check", "--until", "2s", "--quiet", code=1)
    assert "event 4: recorded: nothing; replayed: 2000000000 ns set a.0->s" in differs.stdout


def test_another_seed_recompiles_the_recorded_source(place: Path) -> None:
    tstorm(place, "run", "two.tdl", "--out", "runs/one", "--quiet", "--until", "0s")
    (place / "two.tdl").unlink()
    tstorm(place, "replay", "runs/one", "--seed", "77", "--out", "runs/other", "--quiet")
    manifest = json.loads((place / "runs/other/manifest.json").read_text(encoding="utf-8"))
    assert manifest["seed"] == 77


def test_check_needs_a_recorded_run(place: Path) -> None:
    done = tstorm(place, "replay", "two.tdl", "--check", code=2)
    assert "two.tdl is none" in done.stderr


def test_an_output_directory_in_use_is_refused(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine/thesis.txt").write_text("years of work", encoding="utf-8")
    done = tstorm(place, "run", "two.tdl", "--out", "mine", code=1)
    assert "not empty" in done.stderr
    assert [path.name for path in (place / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.ordinary
def test_a_run_can_be_seen_entered_and_destroyed(
    place: Path, going_on: subprocess.Popen[str]
) -> None:
    assert inspected(place, "runs/long")["live"] is True
    assert "instances" in tstorm(place, "inspect").stdout
    name = tstorm(place, "exec", "runs/long", "b.0", "--", "cat", "/proc/sys/kernel/hostname")
    assert name.stdout.strip() == "b-0"
    tstorm(place, "exec", "runs/long", "b.0", "sh", "-c", "exit 7", code=7)
    tstorm(place, "exec", "runs/long", "c.0", "--", "true", code=1)
    ended = tstorm(place, "destroy", "runs/long", "--format", "json")
    (row,) = json.loads(ended.stdout)
    assert row["was_running"] is True
    assert going_on.wait(DEADLINE_SECONDS) == 130
    assert tstorm(place, "destroy", "--all", "--format", "json").stdout == "[]\n"
    assert inspected(place, "runs/long")["live"] is False


def test_top_shows_a_run_again_and_again_and_ends_with_it(
    place: Path, going_on: subprocess.Popen[str]
) -> None:
    once = tstorm(place, "top", "runs/long", "--every", "0.2s", "--frames", "2").stdout
    assert once.count("/3 instances up") == 2
    assert once.count("PAIR") == 2
    assert "error" in tstorm(place, "top", "runs/other", code=1).stderr
    assert "at least" in tstorm(place, "top", "--every", "1ms", code=2).stderr
    with begun(place, "top") as process:
        assert process.stdout is not None
        assert "instances up" in process.stdout.readline()
        tstorm(place, "destroy", "runs/long")
        assert process.wait(DEADLINE_SECONDS) == 0
    assert "has ended: tstorm inspect" in tstorm(place, "top", "runs/long").stderr
    assert going_on.wait(DEADLINE_SECONDS) == 130


def test_logs_are_followed_to_the_end_of_the_run(place: Path) -> None:
    """Each line while the run goes on, and the last one, which has no end, when it is over."""
    text = """service a exec="sh -c 'echo begun; sleep 1; echo again; sleep 1; printf end'"
bridge s
link a--s latency=1ms
quit when a exits
at 60s quit
"""
    (place / "talk.tdl").write_text(text)
    with begun(place, "run", "talk.tdl", "--out", "runs/talk") as process:
        log = place / "runs/talk/logs/a.0.log"
        wait_until(lambda: process.poll() is not None or log.exists(), "the run goes on")
        with begun(place, "logs", "-f", "runs/talk", "--format", "json") as follower:
            assert follower.stdout is not None
            rows = [json.loads(line) for line in follower.stdout]
            assert follower.wait(DEADLINE_SECONDS) == 0
        process.wait(DEADLINE_SECONDS)
    lines = [row["text"] for row in rows if "text" in row]
    assert [line for line in lines if not line.startswith("[tstorm]")] == ["begun", "again", "end"]
    found = [row["event"]["kind"] if "event" in row else row["text"] for row in rows]
    # When the last line was written, which nothing ends, is known or not: its place may differ.
    words = [one for one in found if one != "end" and not one.startswith("[tstorm]")]
    assert words == ["join", "begun", "again", "exit", "quit"]
    assert found.index("end") > found.index("again")
    asked = tstorm(place, "logs", "-f", "runs/talk", "--around", "1s", code=2)
    assert "leave out --around" in asked.stderr


def test_a_run_of_elsewhere_is_told_and_forgotten_when_asked(place: Path) -> None:
    process = {"pid": 7, "start": 7}
    there = {"machine": "m", "boot": "b", "pids": "4:1", "clock": "", "host": "box"}
    record = {"version": 2, "run_id": "far", "directory": "/far", "socket": "/far.sock"}
    record |= {"tstorm": process, "keeper": process, "place": there, "locked": True}
    active = place / "state/tstorm/active"
    active.mkdir(parents=True, mode=0o700)
    (active / "far.json").write_text(json.dumps(record))
    where = "on another machine (or in another container), host name box"
    for arguments in (["inspect", "far"], ["exec", "far", "a.0", "true"], ["destroy", "far"]):
        refused = tstorm(place, *arguments, code=1)
        assert f"run far is {where}" in refused.stderr
        assert "tstorm destroy far --forget" in refused.stderr
    told = tstorm(place, "destroy", "--all")
    assert "left alone" in told.stdout
    assert f"nothing was done about far: it is {where}" in told.stderr
    (row,) = json.loads(tstorm(place, "destroy", "--all", "--format", "json").stdout)
    assert (row["elsewhere"], row["forgotten"], row["was_running"]) == (where, False, False)
    assert "needs the name" in tstorm(place, "destroy", "--all", "--forget", code=2).stderr
    assert "forgotten" in tstorm(place, "destroy", "far", "--forget").stdout
    assert tstorm(place, "destroy", "--all").stderr == "nothing to destroy\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_cleanly_with_130(
    place: Path, going_on: subprocess.Popen[str], number: int
) -> None:
    going_on.send_signal(number)
    stdout, _ = going_on.communicate(timeout=DEADLINE_SECONDS)
    assert going_on.returncode == 130
    assert Path(stdout.strip()) == (place / "runs/long").resolve()
    summary = json.loads((place / "runs/long/summary.json").read_text(encoding="utf-8"))
    assert summary["outcome"] == "interrupted"


def test_no_other_plan_than_its_own_is_there_while_a_run_goes_on(
    place: Path, going_on: subprocess.Popen[str]
) -> None:
    assert going_on.poll() is None
    assert list(place.rglob("plan.json")) == [place / "runs/long/plan/plan.json"]


@pytest.mark.ordinary
def test_a_run_over_hosts_is_recorded_and_replayed_as_one(place: Path) -> None:
    """The options of hosts are recorded like the others, and a replay may say otherwise."""
    hosts = ("--hosts", "2", "--clock-budget", "50ms", "--allow-spoofing", "--engine-threads", "2")
    tstorm(place, "run", "two.tdl", *hosts, "--out", "r")
    recorded = json.loads((place / "r/manifest.json").read_text())
    assert recorded["options"]["hosts"] == 2
    assert recorded["options"]["clock_budget_ns"] == 50_000_000
    assert recorded["options"]["allow_spoofing"] is True
    assert [host["name"] for host in recorded["hosts"]] == ["host0", "host1"]
    done = tstorm(place, "replay", "r", "--check", "--hosts", "3", "--out", "again")
    assert "the same events, on the same targets, in the same order" in done.stderr
    again = json.loads((place / "again/manifest.json").read_text())
    assert (len(again["hosts"]), again["options"]["clock_budget_ns"]) == (3, 50_000_000)
    assert again["options"]["allow_spoofing"] is True
    assert recorded["options"]["engine_threads"] == again["options"]["engine_threads"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--hosts", "65"], 1, "give --hosts 1 to 64"),
        (["--hosts", "-1"], 2, "-1 is not in the range"),
        (["--datapath", "kernel"], 2, "add --hosts 1"),
        (["--max-lateness", "0s"], 2, "exactly on time"),
        (["--datapath", "kernel", "--hosts", "0"], 2, "add --hosts 1"),
        (["--clock-budget", "1ms"], 2, "is for runs with --hosts"),
        (["--on-agent-loss", "close"], 2, "is for runs with --hosts"),
        (["--engine-threads", "0"], 2, "neither auto nor 1 to 16"),
        (["--engine-threads", "2", "--time", "virtual"], 1, "the engine has one thread"),
        (["--engine-threads", "2", "--hosts", "1", "--datapath", "kernel"], 1, "has none"),
    ],
)
def test_options_of_hosts_that_make_no_sense(
    place: Path, arguments: list[str], code: int, words: str
) -> None:
    done = tstorm(place, "run", "two.tdl", *arguments, "--out", "r", code=code)
    assert words in done.stderr
    assert not (place / "r").exists()


@pytest.mark.ordinary
def test_doctor_says_what_works(place: Path) -> None:
    done = tstorm(place, "doctor", "--format", "json", code=None)
    checks = {check["name"]: check["status"] for check in json.loads(done.stdout)}
    assert checks["kernel"] == "ok"
    assert done.returncode == (3 if "fail" in checks.values() else 0)
