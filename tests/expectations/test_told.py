"""What is said of expectations: at a run's end, by its exit code, by `inspect`, on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from runtime.errors import RunError
from runtime.launch.run_result import RunResult
from runtime.options import COMPLETED, DEFAULTS, FAILED
from runtime.page.page_file import render
from runtime.results.summary import programs_failed
from runtime.rundir import rundir
from tests.comparing.made import figure
from tests.runtime import recorded
from tstorm import output
from tstorm.commands import inspect
from tstorm.text.ending_text import SHOWN_EXPECTATIONS
from tstorm.text.ending_text import report as tell

VERDICT = {"state": "unknown", "reasons": [], "judged": [], "unmeasured": "", "too_late": False}
LINE = {"instance": "a.0", "at_ns": 2 * 10**9, "line": "<b>no answer</b>"}


def one(state: str, **more: Any) -> dict[str, Any]:
    figures = {"figure": None, "threshold": None, "unit": "", "at_ns": None, "subject": ""}
    statement = {"text": f"expect {state}", "line": 4, "file": "", "kind": "valid"}
    said = {"state": state, "message": f"it was {state}", "log": []}
    return {**statement, **said, **figures, **more}


FOUND = [
    one("passed"),
    one("failed", log=[LINE], file="more.tdl", subject="a.0"),
    one("not_measured"),
]


def result(found: list[dict[str, Any]], outcome: str = COMPLETED) -> RunResult:
    summary = {**recorded.SUMMARY, "verdict": VERDICT, "outcome": outcome, "expectations": found}
    return RunResult(
        outcome, "a", Path("/run"), "", summary, programs_failed(summary, DEFAULTS), DEFAULTS
    )


def test_a_failed_expectation_makes_a_completed_run_end_with_5() -> None:
    assert result(FOUND).exit_code == 5
    assert result([FOUND[0], FOUND[2]]).exit_code == 0
    assert result(FOUND, FAILED).exit_code == 1


def test_the_end_of_a_run_says_first_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    tell(result([*FOUND, *FOUND[:1]]), "text")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: failed: expect failed (more.tdl:4): it was failed"
    assert lines[1].startswith("UNKNOWN")
    assert lines[2:4] == [
        "warning: not measured: expect not_measured (line 4): it was not_measured",
        "expectations: 2 passed, 1 failed, 1 not measured",
    ]
    tell(result(FOUND[:1]), "text", quiet=True)
    assert capsys.readouterr().err == ""
    tell(result(FOUND[1:2] * 50), "text")
    shown = capsys.readouterr().err
    assert shown.count("error: failed: expect failed") == SHOWN_EXPECTATIONS
    assert "error: failed: … and 30 more in summary.json" in shown


def test_what_failed_is_red_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "colour", lambda _: True)
    tell(result(FOUND), "text")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("\x1b[31merror: failed: ")
    assert not any(line.startswith("\x1b") for line in lines[1:])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = recorded.make(tmp_path / "run")
    summary = {**recorded.SUMMARY, "verdict": VERDICT, "expectations": FOUND}
    (directory / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return directory


def test_inspect_and_the_page_show_them(run: Path) -> None:
    shown = CliRunner().invoke(inspect.command, [str(run)])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0] == (
        "failed: expect failed: it was failed; last log line: a.0 2.000 s: <b>no answer</b>"
    )
    place = lines.index("expectations: 1 passed, 1 failed, 1 not measured")
    assert lines[place + 2 : place + 4] == [
        "  failed: expect failed (more.tdl:4): it was failed",
        "    a.0 2.000 s: <b>no answer</b>",
    ]
    held = rundir.recorded(run)
    page = render(held, held.manifest(), held.summary())
    assert page.count("it was ") >= 3
    assert "<b>no answer" not in page


@pytest.mark.parametrize(
    "wrong", [{"state": "perhaps"}, {"line": "4"}, {"log": [{"instance": 1}]}, {"figure": "x"}]
)
def test_a_summary_that_was_edited_is_refused(run: Path, wrong: dict[str, Any]) -> None:
    summary = {**recorded.SUMMARY, "verdict": VERDICT, "expectations": [{**FOUND[0], **wrong}]}
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(RunError, match=r"expectations\[0\]"):
        rundir.recorded(run).summary()


def test_the_end_of_a_run_tells_figures(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(FOUND[:1])
    summary = {**found.summary, "figures": [figure("lost", "360"), figure("p99", None)]}
    summary["figures"][1]["message"] = "no line of a.0 has it"
    tell(replace(found, summary=summary), "text")
    assert capsys.readouterr().err.splitlines()[-3:-1] == [
        "warning: p99 of a.0: not measured: no line of a.0 has it",
        "figure lost of a.0: 360",
    ]
    many = [*(figure(f"n{at}", "1") for at in range(30)), summary["figures"][1]]
    quiet = replace(found, summary={**summary, "figures": many})
    tell(quiet, "text", quiet=True)
    assert "warning: p99 of a.0: not measured" in capsys.readouterr().err
