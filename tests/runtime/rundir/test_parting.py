"""Two runs part at the earliest moment that either has and the other has not."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from runtime.results.parting import FirstDifference, part
from runtime.rundir import rundir
from tests.runtime import recorded
from tstorm.commands import compare
from tstorm.exit_codes import CommandError


def parted(first: Path, second: Path) -> FirstDifference:
    return part(rundir.recorded(first), rundir.recorded(second))


def test_equal_runs_have_no_parting_but_say_what_was_left_out(tmp_path: Path) -> None:
    found = parted(recorded.make(tmp_path / "a"), recorded.make(tmp_path / "b"))
    assert found.earliest is None
    assert not found.is_first
    for said in ("packets: not both runs have recorded them", "measurements of probes"):
        assert said in found.not_compared


def test_an_event_at_another_moment_is_not_claimed_to_be_the_first(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    events = json.loads(json.dumps(recorded.EVENTS))
    was = events[1]["applied_ns"]
    events[1]["applied_ns"] += 1
    (runs[1] / "events.jsonl").write_bytes(recorded.lines(events))
    found = parted(*runs)
    assert found.earliest is not None
    assert (found.earliest.what, found.earliest.at_ns) == ("event", was)
    assert not found.is_first


def with_logs(run: Path, text: str) -> None:
    (run / "logs").mkdir()
    (run / "logs" / "a.0.log").write_text(text)
    grown = [("one\n", 10), ("one\ntwo\n", 30)]
    rows = [
        {"from_ns": at - 10, "elapsed_ns": at, "bytes": {"a.0": len(lines)}} for lines, at in grown
    ]
    (run / "logs.jsonl").write_bytes(recorded.lines(rows))


def test_a_line_of_a_log_is_where_they_part_if_nothing_differs_before(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    for run, second in zip(runs, ("two", "TWO"), strict=True):
        with_logs(run, f"one\n{second}\nthree\n")
    found = parted(*runs)
    one = found.earliest
    assert one is not None
    assert (one.what, one.subject, one.at_ns) == ("log", "a.0", 30)
    assert (one.first, one.second) == ("two", "TWO")
    assert not found.maybe_earlier


def test_a_line_without_a_moment_is_named_by_what_one_of_them_has(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    for run, more in zip(runs, ("", "more\n"), strict=True):
        with_logs(run, f"one\ntwo\n{more}")
    assert "the log of a.0, whose line 'more' has no moment" in parted(*runs).not_compared


def test_a_line_that_may_be_earlier_than_what_differs_first_is_named(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    for run, second, at_ns in zip(runs, ("two", "TWO"), (25, 26), strict=True):
        with_logs(run, f"one\n{second}\n")
        events = json.loads(json.dumps(recorded.EVENTS))
        events[1]["applied_ns"] = at_ns
        (run / "events.jsonl").write_bytes(recorded.lines(events))
    found = parted(*runs)
    assert found.earliest is not None
    assert (found.earliest.what, found.earliest.at_ns) == ("event", 25)
    assert [one.subject for one in found.maybe_earlier] == ["a.0"]


def test_the_command_says_what_it_did_not_compare_and_refuses_real_time(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    asked = [*map(str, runs), "--first", "--format", "json"]
    refused = CliRunner().invoke(compare.command, asked)
    assert isinstance(refused.exception, CommandError)
    assert "real time" in refused.exception.message
    for run in runs:
        manifest = json.loads((run / "manifest.json").read_bytes())
        manifest["options"]["time"] = "virtual"
        (run / "manifest.json").write_text(json.dumps(manifest))
    told = json.loads(CliRunner().invoke(compare.command, asked).stdout)
    assert told["difference"] is None
    assert told["is_first"] is False
    assert "files of instances" in told["not_compared"]


def test_an_event_without_a_moment_that_only_one_has_is_named(tmp_path: Path) -> None:
    runs = [recorded.make(tmp_path / name) for name in "ab"]
    told = {"kind": "exit", "target": "a.0", "status": 0, "signal": 0}
    (runs[1] / "events.jsonl").write_bytes(recorded.lines([*recorded.EVENTS, told]))
    assert "events without a moment: exit a.0 (1)" in parted(*runs).not_compared
