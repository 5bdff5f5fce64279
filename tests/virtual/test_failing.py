"""What a TCP client sees of each way to fail (docs/tdl.md, Ways to fail), exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import failing

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


def test_each_way_to_fail_is_what_the_page_says(tmp_path: Path) -> None:
    failing.lay_out(tmp_path)
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    failing.check(tmp_path / "run", exact=True)
    done = tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")
    assert "everything is the same" in done.stderr


def test_a_kill_is_no_failure_of_its_program_and_an_end_of_it(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(
        'service srv exec="sleep 1000" expect=success\n'
        'service other exec="sleep 1000"\n'
        "bridge s\nlink srv--s latency=1ms\nlink other--s latency=1ms\n"
        "at 2s srv kill\nquit when srv exits\nexpect exit srv 0\nat 60s quit\n"
    )
    options = ("--time", "virtual", "--quiet", "--fail-on-exit", "--out", "run")
    tstorm(tmp_path, "run", "exp.tdl", *options)
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["outcome"], summary["failures"]) == ("completed", [])
    [one] = summary["expectations"]
    assert (one["state"], "(kill) at 2" in one["message"]) == ("not_measured", True)
    events = (tmp_path / "run/events.jsonl").read_text().splitlines()
    [quit_] = [json.loads(line) for line in events if '"kind":"quit"' in line]
    assert quit_["reason"] == "the programs of srv have ended"
    assert quit_["planned_ns"] < 3_000_000_000
