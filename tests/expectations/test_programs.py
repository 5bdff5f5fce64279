"""What logs, ends of programs, commands and the verdict say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.parts.expectations import (
    EXIT,
    LOG,
    NO_LOG,
    RUN,
    VALID,
    PlannedExpectation,
)
from runtime.expectations import line_matching
from runtime.expectations.line_matching import TooLongError
from runtime.launch import conclude
from runtime.options import RunOptions
from runtime.results.loglines import LINE_BYTES, LogRecord
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from tests.certify.scene import SECOND, TDL, Scene
from tests.expectations.support import expecting, finding, findings, happened, logged

TWO = TDL.replace("service b img=x", "service b img=x replicas=2")


def _log_scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(1, "starting"), (12, "a vote"), (45, "leader elected, term 2")])
    logged(scene, "b.1", [(2, "starting"), (41, "leader elected, term 1"), (50, "PANIC: x")])
    return scene


def _log(scene: Scene, kind: str, pattern: str, from_s: float, to_s: float) -> PlannedExpectation:
    when = {"from_ns": int(from_s * SECOND), "to_ns": int(to_s * SECOND)}
    return expecting(scene, kind, "b.0", "b.1", pattern=pattern, **when)


def test_the_first_instance_that_writes_the_line_is_told(tmp_path: Path) -> None:
    scene = _log_scene(tmp_path)
    found = finding(scene, _log(scene, LOG, r"leader elected, term \d", 40, 60))
    assert (found["state"], found["subject"]) == ("passed", "b.1")
    assert 40.8 * SECOND < found["at_ns"] <= 41 * SECOND
    assert found["message"] == "b.1 wrote at 40.9 s: leader elected, term 1"
    assert found["log"][0]["line"] == "leader elected, term 1"


def test_a_line_that_is_missing_and_where_there_is_one(tmp_path: Path) -> None:
    scene = _log_scene(tmp_path)
    found = finding(scene, _log(scene, LOG, "leader", 10, 44))
    assert (found["state"], found["subject"]) == ("passed", "b.1")
    found = finding(scene, _log(scene, LOG, "term 2", 10, 40))
    said = "no line of b.0 has 'term 2' in it from 10 s to 40 s; it wrote one at 44.9 s"
    assert found["message"] == f"{said} (2 of 2 failed)"
    found = finding(scene, _log(scene, LOG, "leader", 10, 20))
    assert "(2 of 2 failed)" in found["message"]
    assert [line["line"] for line in found["log"]] == ["a vote"]


def test_a_line_that_should_not_be_there(tmp_path: Path) -> None:
    scene = _log_scene(tmp_path)
    found = finding(scene, _log(scene, NO_LOG, "(?i)panic", 0, 60))
    assert (found["state"], found["subject"]) == ("failed", "b.1")
    assert found["message"] == "b.1 wrote at 49.9 s: PANIC: x (1 of 2 failed)"
    assert finding(scene, _log(scene, NO_LOG, "PANIC", 0, 49))["state"] == "passed"


def test_a_line_whose_time_is_not_known_well_enough(tmp_path: Path) -> None:
    scene = _log_scene(tmp_path)
    for kind, pattern in ((LOG, "term 2"), (NO_LOG, "term 2")):
        found = finding(scene, _log(scene, kind, pattern, 44.95, 50))
        assert found["state"] == "not_measured"
        assert "after 44.9 s and before 45 s" in found["message"]


def test_lines_of_the_run_itself_do_not_count(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(5, "[tstorm] 5.000000000 s: setup panic"), (6, "fine")])
    assert finding(scene, _log(scene, NO_LOG, "panic", 0, 60))["state"] == "passed"


def test_a_log_that_may_lack_lines_proves_nothing_by_what_it_has_not(tmp_path: Path) -> None:
    """In a cluster: a line that is there counts all the same."""

    def states(name: str, **facts: Any) -> list[str]:
        scene = Scene(tmp_path / name, TWO, options=RunOptions(backend="k8s"), facts=facts)
        logged(scene, "b.0", [(1, "starting"), (45, "leader elected")])
        logged(scene, "b.1", [(2, "starting"), (50, "PANIC: x")])
        wanted = [(NO_LOG, "lost"), (LOG, "lost"), (NO_LOG, "PANIC"), (LOG, "leader")]
        found = [finding(scene, _log(scene, *one, 0, 60)) for one in wanted]
        messages.append(found[0]["message"])
        return [one["state"] for one in found]

    messages: list[str] = []
    sure = ["failed", "passed"]
    assert states("whole", logs_incomplete={}) == ["passed", "failed", *sure]
    why = {"b.0": "the API server was away"}
    assert states("one", logs_incomplete=why) == ["not_measured", "not_measured", *sure]
    assert messages[1] == (
        "lines may be missing in the log of b.0: the API server was away (1 of 2 not measured)"
    )
    assert states("unsaid") == ["not_measured", "not_measured", *sure]
    (tmp_path / "whole/logs/b.0.log").unlink()
    scene = Scene(
        tmp_path / "whole", TWO, options=RunOptions(backend="k8s"), facts={"logs_incomplete": {}}
    )
    found = [finding(scene, _log(scene, NO_LOG, text, 0, 60)) for text in ("lost", "PANIC")]
    assert [one["state"] for one in found] == ["not_measured", "failed"]
    assert "there is no log of b.0" in found[0]["message"]


def test_a_pattern_that_takes_years_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_matching, "BATCH_SECONDS", 0.3)
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(5, "a" * 64 + "!")])
    found = finding(scene, _log(scene, LOG, "(a+)+$", 0, 60))
    assert (found["state"], "took longer" in found["message"]) == ("not_measured", True)
    with pytest.raises(TooLongError):
        list(line_matching.matched("(a|aa)+$", [LogRecord(0, 1, "b.0", "a" * 64 + "!")]))


def test_long_logs_are_searched_in_pieces() -> None:
    lines = [
        LogRecord(0, number, "b.0", f"line {number}")
        for number in range(2 * line_matching.BATCH_LINES)
    ]
    found = list(line_matching.matched("^line [0-9]*99$", lines))
    assert [one.line.until_ns for one in found] == list(range(99, len(lines), 100))


@pytest.mark.parametrize("pattern", ["PANIC", "PANI[C]"])
def test_what_was_cut_off_a_line_is_not_measured(tmp_path: Path, pattern: str) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(5, "x" * 9000 + " PANIC"), (6, "fine")])
    logged(scene, "b.1", [(5, "x" * LINE_BYTES + " PANIC"), (6, "fine")])
    assert finding(scene, _log(scene, LOG, pattern, 0, 60))["subject"] == "b.0"
    assert finding(scene, _log(scene, NO_LOG, pattern, 0, 60))["subject"] == "b.0"
    for kind, text in ((NO_LOG, "ANIC x"), (LOG, "ANIC x"), (NO_LOG, "xx$"), (LOG, "xx$")):
        found = finding(scene, _log(scene, kind, text, 0, 60))
        assert (found["state"], found["subject"]) == ("not_measured", "b.1")
        said = "a line of b.1 at 5 s has more than 65,536 bytes: the 6 that follow were not looked"
        assert found["message"].startswith(f"{said} at")
    assert finding(scene, _log(scene, NO_LOG, "ANIC x", 5.5, 60))["state"] == "passed"
    assert finding(scene, _log(scene, LOG, "xx", 0, 60))["state"] == "passed"
    (tmp_path / "logs/b.1.log").write_bytes(b"\xff" * LINE_BYTES + b" PANIC\nfine\n")
    found = finding(scene, _log(scene, NO_LOG, "ANIC x", 0, 60))
    assert found["message"].startswith(f"{said} at")


def test_a_log_that_was_cut_or_removed_proves_nothing_by_what_it_has_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(5, "PANIC"), (6, "fine")])
    log = tmp_path / "logs/b.0.log"
    assert finding(scene, _log(scene, NO_LOG, "PANIC", 0, 60))["state"] == "failed"
    log.write_text("fine\n")
    found = finding(scene, _log(scene, NO_LOG, "PANIC", 0, 60))
    assert found["message"] == "the log of b.0 has become shorter (1 of 2 not measured)"
    assert finding(scene, _log(scene, LOG, "fine", 0, 60))["state"] == "passed"
    logged(scene, "b.0", [(7, "fine"), (8, "longer than it was before")])
    found = finding(scene, _log(scene, NO_LOG, "PANIC", 0, 60))
    assert found["message"] == "the log of b.0 has become shorter (1 of 2 not measured)"
    log.unlink()
    found = finding(scene, _log(scene, NO_LOG, "PANIC", 0, 60))
    assert found["message"] == "the log of b.0 has been removed (1 of 2 not measured)"


def test_a_pattern_of_a_plan_that_was_edited(tmp_path: Path) -> None:
    scene = _log_scene(tmp_path)
    found = finding(scene, _log(scene, LOG, "(", 0, 60))
    assert found["state"] == "not_measured"


def _ended(name: str, at_s: int, status: int, **more: Any) -> dict[str, Any]:
    record = {"kind": "exit", "target": name, "applied_ns": at_s * SECOND, "signal": 0}
    return {**record, "status": status, "asked": False, **more}


def _began(name: str, at_s: int) -> dict[str, Any]:
    at_ns = at_s * SECOND
    return {"kind": "start", "target": name, "applied_ns": at_ns, "started_ns": at_ns}


def test_how_programs_ended(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    happened(scene, *(_began(name, 1) for name in ("a.0", "b.0", "b.1")))
    happened(scene, _ended("a.0", 5, 0), _ended("b.0", 6, 3))
    happened(scene, _ended("b.1", 60, 0, asked=True))
    wanted = [
        expecting(scene, EXIT, "a.0"),
        expecting(scene, EXIT, "b.0", value=3),
        expecting(scene, EXIT, "b.0"),
        expecting(scene, EXIT, "b.1"),
        expecting(scene, EXIT, "a.0", "b.0"),
    ]
    found = findings(scene, *wanted)
    states = [one["state"] for one in found]
    assert states == ["passed", "passed", "failed", "failed", "failed"]
    assert (found[2]["figure"], found[2]["threshold"], found[2]["at_ns"]) == (3, 0, 6 * SECOND)
    assert "still ran at the end" in found[3]["message"]
    assert "1 of 2 failed" in found[4]["message"]


def test_what_the_timeline_ends_or_a_short_run_leaves_is_not_measured(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO, options=RunOptions(until_ns=20 * SECOND))
    happened(scene, *(_began(name, 1) for name in ("a.0", "b.0", "b.1")))
    happened(scene, {"kind": "crash", "target": "a.0", "applied_ns": 7 * SECOND})
    happened(scene, _ended("b.0", 6, 0), _began("b.0", 9), _ended("b.0", 9, 1))
    wanted = [expecting(scene, EXIT, name) for name in ("a.0", "b.0", "b.1")]
    found = findings(scene, *wanted)
    assert [one["state"] for one in found] == ["not_measured", "failed", "not_measured"]
    assert "still ran: the run ended at 20 s" in found[2]["message"]
    assert "(crash) at 7 s" in found[0]["message"]


def test_what_became_of_a_command(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    command = {"argv": ("probe", "x"), "from_ns": SECOND, "to_ns": 3 * SECOND}
    wanted = [expecting(scene, RUN, "b.0", line=number, **command) for number in range(4)]
    ran = {"kind": "expect_run", "target": "b.0", "applied_ns": 2 * SECOND, "tries": 3}
    said = ["trying", "no answer"]
    happened(scene, {**ran, "expectation": 0, "status": 0, "output": []})
    happened(scene, {**ran, "expectation": 1, "status": 7, "output": said})
    away = {"error": "no way in", "unavailable": True, "output": []}
    happened(scene, {**ran, "expectation": 2, **away})
    found = findings(scene, *wanted)
    states = [one["state"] for one in found]
    assert states == ["passed", "failed", "not_measured", "not_measured"]
    assert found[1]["message"] == (
        "probe in b.0 ended with status 7 at 2 s (3 attempts): no answer"
    )
    assert [line["line"] for line in found[1]["log"]] == said
    assert (found[1]["figure"], found[1]["at_ns"]) == (7, 2 * SECOND)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("valid", "passed"),
        ("degraded", "failed"),
        ("invalid", "failed"),
        ("unknown", "not_measured"),
    ],
)
def test_the_verdict(tmp_path: Path, state: str, expected: str) -> None:
    scene = Scene(tmp_path)
    reasons = [{"text": "it was late", "subject": "x", "at_ns": SECOND}]
    given = {"state": state, "reasons": reasons if state in ("degraded", "invalid") else []}
    found = finding(scene, expecting(scene, VALID), verdict={**given, "unmeasured": ""})
    assert found["state"] == expected


def test_outcomes_stand_in_the_log_of_events(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    held = HeldDirectory.hold(tmp_path.resolve())
    found = findings(scene, expecting(scene, VALID), expecting(scene, NO_LOG, "a.0", pattern="x"))
    conclude.append_expectations(held, found)
    last = list(read_events(held))[-2:]
    assert [one["state"] for one in last] == [one["state"] for one in found]
    assert [one["text"] for one in last] == ["expect valid", "expect no_log"]
    events = tmp_path / "events.jsonl"
    events.write_bytes(events.read_bytes() + b'{"kind":"ex')
    conclude.append_expectations(held, found)
    assert events.read_bytes().endswith(b'{"kind":"ex')
    assert json.dumps(found)
