"""A run in virtual time is held, changed by hand and let go on: at moments that are told, so that
all of it comes again to the last byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import read_plan
from runtime.errors import RunError
from tests.cli.process import begun, tstorm
from tests.waiting import wait_until
from tstorm.live import steer

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]
MS = 1_000_000

EXPERIMENT = """
seed 3
service server replicas=3 exec="tprobe serve"
service client exec="tprobe rtt server.0 --count 60 --interval 50ms --each"
bridge s1
link server--s1 latency=1ms
link client--s1 latency=1ms
when log client "seq.:50," once { server.1 pause }
at 200ms server.2 pause
at 300ms server.2 resume
at 3s quit
"""


def _succeeds(act: Callable[[], object]) -> Callable[[], bool]:
    """Whether the run is there. Its time is held at 0 s if that has not come yet."""

    def tried() -> bool:
        try:
            act()
        except RunError:
            return False
        return True

    return tried


def _all(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]


def _answers_at_once_after(place: Path, entered_ns: int) -> None:
    """Where an action by hand is still under way, and just after it: there a command has no time
    to look at a clock."""
    told = []
    for after_ns in (1, 10_000, MS):
        at = f"{(entered_ns + after_ns) / MS:.6f}ms"
        there = tstorm(place, "at", "first", at, "client.0", "--", "date", "+%s%N")
        assert int(there.stdout) > 0
        told.append("what was due by" in there.stderr)
    assert told[0]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs in here are found by the test, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    return tmp_path


def test_what_is_done_by_hand_comes_again_to_the_last_byte(place: Path, kernel: list[str]) -> None:
    run = str(place / "first")
    with begun(place, "run", "exp.tdl", "--time", "virtual", "--out", "first") as process:
        wait_until(_succeeds(lambda: steer.hold_time(run)), "time 0")
        first = steer.do(run, "client--s1 set latency=30ms\nat +400ms server crash 1")
        with pytest.raises(steer.ActionError):
            steer.do(run, "nobody crash")
        with pytest.raises(RunError, match="held already"):
            steer.hold_time(run)
        steer.hold(run)  # so that the end waits for what is done next
        assert steer.let_time_go(run)
        held_ns = steer.hold_time(run)
        tstorm(place, "do", "first", "server.2--s1 set loss=100%")
        steer.go(run)
        assert "time goes on" in tstorm(place, "go", "first").stdout
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "time is held at" in said

    events = _all(place / "first")
    done = [one for one in events if one["kind"] == "do"]
    assert [one["action"] for one in done if one["entered_ns"] < held_ns] == [1, 2]
    # The `when` is an action, too; on a busy machine time has come to it before time is held again.
    assert [one["action"] for one in done[2:]] in ([3, 4], [4, 5])
    assert 0 <= done[2]["entered_ns"] - held_ns <= done[3]["entered_ns"] - held_ns < 2 * MS
    assert done[0]["planned_ns"] == first.told["planned_ns"]
    for one in done:
        assert 0 < one["applied_ns"] - one["entered_ns"] < 2 * MS
        assert 0 <= one["planned_ns"] - one["entered_ns"] - 10 * MS < 3 * MS
    made = [one for one in events if one.get("origin") == "manual" and "seq" in one]
    assert {one["kind"] for one in made} >= {"set", "crash"}
    assert all(0 <= one["lag_ns"] < MS for one in events if "seq" in one)
    assert [one["target"] for one in events if one["kind"] == "when"] == ["client.0"]
    manifest = json.loads((place / "first/manifest.json").read_text(encoding="utf-8"))
    assert "talked_to" not in manifest
    summary = json.loads((place / "first/summary.json").read_text(encoding="utf-8"))
    assert summary["plan_digest"] == read_plan(place / "first/plan").digest
    assert summary["verdict"]["state"] == "valid"

    again = tstorm(place, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in again.stderr
    at = (made[0]["applied_ns"] + 200 * MS) // MS
    log = ("sh", "-c", "grep -c 'rtt_us.:6' /run/tstorm/run/logs/client.0.log")
    there = tstorm(place, "at", "first", f"{at}ms", "client.0", "--", *log)
    assert 0 < int(there.stdout) < 5
    _answers_at_once_after(place, done[0]["entered_ns"])
    tstorm(place, "record", "first", "-o", "steered.tdl")
    tstorm(place, "check", "steered.tdl")


def test_nothing_comes_before_what_was_done_where_time_stands_still(
    place: Path, kernel: list[str]
) -> None:
    run = str(place / "first")
    with begun(place, "run", "exp.tdl", "--time", "virtual", "--out", "first") as process:
        wait_until(_succeeds(lambda: steer.hold_time(run)), "time 0")
        done = [
            steer.do(run, "client--s1 set latency=30ms\nat +100ms server.0--s1 leave"),
            steer.hold(run),
            steer.skip(run, None),
            steer.do(run, "server.1--s1 set loss=30%"),
            steer.go(run),
            steer.do(run, "server.1--s1 set loss=0%"),
        ]
        assert steer.let_time_go(run)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    moments = [one.told["planned_ns"] for one in done]
    assert moments == sorted(moments)
    told = [one for one in _all(place / "first") if one["kind"] == "do"]
    assert [one["planned_ns"] for one in told] == moments
    again = tstorm(place, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in again.stderr


def test_what_is_planned_for_a_moment_has_happened_there(place: Path, kernel: list[str]) -> None:
    tstorm(place, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "plain")
    stopped = ("sh", "-c", "cat /proc/[0-9]*/status | grep '^State:.T' | wc -l")
    for at, least in (("199.9ms", 0), ("200ms", 1), ("299.9ms", 1), ("300ms", 0)):
        there = tstorm(place, "at", "plain", at, "server.2", "--", *stopped)
        assert min(int(there.stdout), 1) == least, at


def test_a_run_whose_time_was_held_is_as_one_that_was_not(place: Path, kernel: list[str]) -> None:
    run = str(place / "held")
    with begun(place, "run", "exp.tdl", "--time", "virtual", "--out", "held") as process:
        wait_until(_succeeds(lambda: steer.hold_time(run)), "time 0")
        with pytest.raises(steer.ActionError):
            steer.do(run, "nobody crash")
        assert "time goes on" in tstorm(place, "go", "held").stdout
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    again = tstorm(place, "replay", "held", "--check", "--quiet", "--out", "left-alone")
    assert "everything is the same" in again.stderr
    assert not any(one["kind"] == "do" for one in _all(place / "held"))


def test_agents_of_hosts_do_what_is_done_and_what_a_when_does(
    place: Path, kernel: list[str]
) -> None:
    # In the last second agents have been asked for the end already.
    (place / "exp.tdl").write_text(EXPERIMENT.replace("seq.:50", "seq.:10"), encoding="utf-8")
    run = str(place / "over")
    options = ("--time", "virtual", "--hosts", "2", "--out", "over")
    with begun(place, "run", "exp.tdl", *options) as process:
        wait_until(_succeeds(lambda: steer.hold_time(run)), "time 0")
        steer.do(run, "client--s1 set latency=30ms\nat +500ms server.2 crash")
        assert steer.let_time_go(run)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    events = _all(place / "over")
    made = [one["kind"] for one in events if one.get("origin") == "manual" and "seq" in one]
    assert sorted(made) == ["crash", "set", "set"]
    (fired,) = (one for one in events if one["kind"] == "when")
    (paused,) = (one for one in events if one.get("origin") == "condition" and "seq" in one)
    assert paused["target"] == "server.1"
    assert fired["late_ns"] >= 8 * MS  # agents have to hear of it
    assert 0 <= paused["applied_ns"] - fired["planned_ns"] < MS
    again = tstorm(place, "replay", "over", "--check", "--quiet", "--out", "again")
    assert "everything is the same" in again.stderr
