"""What a campaign says at its end: counts, and the command for each point that failed."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

from runtime.options import DEFAULTS, NEVER, RunOptions
from tstorm.campaign import shown
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.points import Grid, Point
from tstorm.campaign.results import ExpectationOutcomes, PointResult, never_happened
from tstorm.command_support import options_of
from tstorm.commands.run import command as run_command
from tstorm.exit_codes import CommandError
from tstorm.text import optiontext

PARAMS = (("rtt", "20 ms; rm -rf ~"),)
RECORD = CampaignRecord(
    "bank", "my bank.tdl", "", Grid(range(1, 4)), replace(DEFAULTS, until_ns=5 * 10**9)
)
EXPECTED = ExpectationOutcomes(2, ("at 5s expect rtt a b < 1ms",), 0)


def test_a_point_that_ran_is_replayed_from_its_directory() -> None:
    found = PointResult(Point(3, PARAMS), 5, "completed", ran=True)
    words = shlex.split(shown.command(Path("runs/my bank"), RECORD, found))
    assert words == ["tstorm", "replay", f"runs/my bank/{Point(3, PARAMS).name}"]


def test_a_point_that_never_ran_is_begun_with_all_that_was_said() -> None:
    found = PointResult(Point(3, PARAMS), 3, "failed")
    words = shlex.split(shown.command(Path("c"), RECORD, found))
    assert words == [
        *("tstorm", "run", "my bank.tdl", "--seed", "3", "--param", "rtt=20 ms; rm -rf ~"),
        *("--until", "5s"),
    ]


def test_failed_expectations_count_as_failures() -> None:
    rows = [
        PointResult(Point(1), 0, "completed"),
        PointResult(Point(2), 0, "completed", expected=EXPECTED),
    ]
    again, rest, last = shown.closing(Path("c"), RECORD, rows)
    assert again == "seed 2 again: tstorm run 'my bank.tdl' --seed 2 --until 5s"
    assert rest == "the rest: tstorm run 'my bank.tdl' --seeds 1..3 --until 5s --out c"
    assert last == "2 of 3 seeds ran; 1 with failures: 2"
    assert rows[1].exit_code == 5
    assert shown.line(rows[1]).endswith("failed: at 5s expect rtt a b < 1ms")


def test_what_was_interrupted_has_not_failed() -> None:
    """Half of a run says nothing about what it would have come to."""
    stopped = PointResult(
        Point(2), 130, "interrupted", failed=("a.0",), expected=EXPECTED, ran=True
    )
    rows = [PointResult(Point(1), 0, "completed", ran=True), stopped]
    rest, last = shown.closing(Path("my place"), RECORD, rows)
    assert shlex.split(rest)[-2:] == ["--out", "my place"]
    assert last == "1 of 3 seeds ran; none with failures"
    assert shown.line(stopped) == "seed 2: interrupted"


def test_why_a_point_did_not_run_is_one_line() -> None:
    error = CommandError("error: reading bank.tdl: gone\nhint: name another")
    assert error.in_one_line == "reading bank.tdl: gone (name another)"


def test_groups_of_parameters_are_told_apart() -> None:
    rows = [PointResult(Point(seed, PARAMS), 5, "completed") for seed in (1, 2, 3)]
    assert shown.summary(rows, 3).endswith("3 with failures: rtt=20 ms; rm -rf ~ seeds 1..3")


SAID: dict[str, Any] = {
    "until_ns": 7 * 10**9,
    "start_at_ns": 10**9,
    "pace": 3,
    "time": "virtual",
    "on_spin": "creep",
    "spin_limit_ns": 2 * 10**9,
    "clock_start_ns": 951_782_400_123_456_000,
    "cpu_ppb": 250_000_000,
    "scatter_ns": 100_000,
    "preempt_ns": 200_000,
    "reseeds": {"5000000000": 7, "1500000000": 0},
    "datapath": "user",
    "hosts": 2,
    "images": NEVER,
    "clock_budget_ns": 10**6,
    "on_agent_loss": "close",
    "allow_spoofing": True,
    "probes": False,
    "packets": True,
    "max_lateness_ns": 10**6,
    "require": "valid",
    "thresholds": {"path_late": 2_000_000, "steal": 20_000, "path_loss": 10**7, "swapped": 4096},
    "fail_on_exit": True,
    "fail_fast": True,
    "discard_instances": True,
    "engine_threads": 2,
    "backend": "k8s",
    "nodes": "pool=lab",
}
APART = [
    {"engine_threads", "packets"},
    {"time", "on_spin", "spin_limit_ns", "clock_start_ns", "cpu_ppb", "scatter_ns"},
    {"time", "reseeds"},
    {"time", "preempt_ns"},
    {"hosts", "datapath", "clock_budget_ns", "on_agent_loss"},
    {"backend", "nodes"},
]
TOGETHER = SAID.keys() - set().union(*APART)


@pytest.mark.parametrize("names", [TOGETHER, *APART], ids=min)
def test_options_are_said_as_the_command_line_reads_them(names: set[str]) -> None:
    options = replace(DEFAULTS, **{name: SAID[name] for name in names})
    words = ["x.tdl", *optiontext.arguments(options)]
    given = run_command.make_context("run", words, resilient_parsing=False).params
    known = {field.name for field in fields(RunOptions)}
    asked = {name: value for name, value in given.items() if name in known and value is not None}
    assert options_of(asked) == options


def test_every_option_can_be_said() -> None:
    assert {field.name for field in fields(RunOptions)} == SAID.keys() | optiontext.UNSAID
    options = {one for one in run_command.params if isinstance(one, click.Option)}
    assert {one.name for one in options} >= SAID.keys()


def test_figures_have_a_column_each(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        PointResult(Point(1), 0, "completed", figures={"lost of a.0": "12"}),
        PointResult(Point(2), 0, "x"),
    ]
    shown.table(Path("c"), RECORD, {row.point: row for row in rows})
    head, first, second = capsys.readouterr().out.splitlines()[-3:]
    assert head.split("  ")[-2:] == ["lost of a.0", "WHAT FAILED"]
    assert first.split()[-2:] == ["12", "-"]
    assert second.split()[-2:] == ["-", "-"]


def _came(seed: int, outcome: str = "completed", **what: Any) -> PointResult:
    return PointResult(Point(seed), 0, outcome, expected=ExpectationOutcomes(1, **what), ran=True)


def test_what_never_happened_in_any_run_is_told_first() -> None:
    rows = [_came(1, never=("x", "y", "z")), _came(2, never=("y", "x"), happened=("z",))]
    first, second, *_, last = shown.closing(
        Path("c"), replace(RECORD, grid=Grid(range(1, 3))), rows
    )
    assert [first, second] == [
        "never happened in any of 2 runs: x", "never happened in any of 2 runs: y"
    ]  # fmt: skip
    assert last == "2 seeds ran; none with failures; 2 things never happened"
    assert next(shown.never(rows, 5)) == "never happened in any of 2 runs of 5: x"
    assert list(shown.never([_came(1, never=("x",))], 1)) == ["never happened in the one run: x"]


def test_of_a_run_that_was_stopped_only_what_happened_counts() -> None:
    rows = [_came(1, never=("x", "y")), _came(2, "interrupted", never=("z",), happened=("x",))]
    assert never_happened(rows) == ["y"]
    assert never_happened(rows[1:]) == []


def test_as_many_names_are_shown_as_anybody_reads() -> None:
    row = _came(1, never=tuple(f"x{number:03}" for number in range(shown.MOST_NEVER + 7)))
    *_, last = shown.never([row], 1)
    assert last == "never happened in the one run: … and 7 more"
