"""What is left of an experiment of which a part fails, and of one that is interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import BenchError
from bench.papers import __main__ as runner
from bench.papers import rows
from bench.papers.catalogue import Experiment
from bench.papers.children import finished
from bench.papers.context import Context
from bench.papers.rows import failed, row
from bench.tables import Record


def partly(context: Context) -> list[Record]:
    """Three places, of which the second one fails."""
    made: list[Record] = []
    for place in ("hop-exact", "hosts 2", "rootless"):
        with context.attempt(made, "x", place):
            if place == "hosts 2":
                raise BenchError("the agent ended")
            made.append(row("x", place, "ms", 1.0, 1.0))
    return made


def test_a_part_that_fails_is_a_missed_row_and_the_others_are_measured(tmp_path: Path) -> None:
    experiment = Experiment("An experiment", partly)
    assert runner.play(["rates"], tmp_path, True, "real", lambda _name: experiment) == ["rates"]
    found = json.loads((tmp_path / "rates.json").read_text())["results"]["rows"]
    assert [one["ours"] for one in found] == [1.0, None, 1.0]
    assert rows.missed(found) == ["x, hosts 2: it failed: the agent ended"]
    [table] = rows.TABLES
    assert "**missed**: it failed: the agent ended" in table(found)
    assert runner.chosen(tmp_path, ["rates"], True) == ["rates"]  # to be tried again


def test_a_failure_in_virtual_time_is_a_row_of_its_own() -> None:
    good, bad = row("x", "hop-exact", "ms", 1.0, 1.0), failed("x", "virtual", "no")
    assert rows.fold([good, bad], "hop-exact") == [good, bad]
    good, bad = row("x", "virtual", "ms", 1.0, 1.0), failed("x", "hop-exact", "no")
    assert rows.fold([bad, good], "hop-exact") == [bad, good]


def test_an_interrupt_is_not_a_failure(tmp_path: Path) -> None:
    made: list[Record] = []
    with pytest.raises(KeyboardInterrupt), Context(tmp_path, True, "real").attempt(made, "x", "y"):
        raise KeyboardInterrupt
    assert made == []


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("raise SystemExit('there is no netem')", "there is no netem"),
        ("print('[]')", "list index out of range"),
        ("print('nonsense')", "Expecting value"),
        ("pass", "list index out of range"),
    ],
)
def test_a_peer_that_cannot_is_noted(script: str, why: str, tmp_path: Path) -> None:
    context = Context(tmp_path, True, "real")
    got = context.other("netem", [sys.executable, "-c", script], lambda said: float(said[0]))
    assert got is None
    assert why in context.cannot["netem"]


def test_a_peer_that_takes_too_long_is_told_without_paths(tmp_path: Path) -> None:
    context = Context(tmp_path, True, "real")
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert context.other("u32", argv, len, 1.0) is None
    assert context.cannot["u32"] == "it takes more than 1 s here"


def test_a_program_that_takes_too_long_is_asked_to_end(tmp_path: Path) -> None:
    script = "trap 'echo ended > said; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    with pytest.raises(subprocess.TimeoutExpired):
        finished(["sh", "-c", script], tmp_path, 1.0)
    assert (tmp_path / "said").read_text() == "ended\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
