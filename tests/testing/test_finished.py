"""What a finished run says, read from a directory that was made by hand or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import recorded
from tstorm.testing import ExpectationsError, ExperimentError, NotTrustedError, Run

PASSED: dict[str, Any] = {
    "text": "expect rtt a b < 60ms",
    "line": 9,
    "file": "exp.tdl",
    "kind": "rtt",
    "state": "passed",
    "message": "at most 31ms",
    "figure": 31_000_000,
    "threshold": 60_000_000,
    "unit": "ns",
    "at_ns": 5,
    "subject": "a.0 -> b.0",
    "log": [],
}
FAILED = {
    **PASSED,
    "state": "failed",
    "message": "90ms at 5s",
    "log": [{"instance": "a.0", "at_ns": None, "line": "too slow"}],
}
UNMEASURED = {**PASSED, "state": "not_measured", "message": "no probes", "figure": None}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return recorded.make(tmp_path / "run")


def rewrite(directory: Path, name: str, **more: object) -> None:
    found = json.loads((directory / name).read_text())
    (directory / name).write_text(json.dumps({**found, **more}))


def test_outcome_events_and_programs(directory: Path) -> None:
    run = Run(directory)
    assert (run.outcome, run.message, run.seed) == ("completed", "", 0)
    assert [one["kind"] for one in run.events] == ["join", "exit", "exit", "quit"]
    assert run.page == directory / "report.html"
    assert run.replay == f"tstorm replay {directory}"
    assert run.failures == []
    run.assert_programs()
    rewrite(
        directory, "summary.json", failures=[{"target": "a.0", "last_log_line": "", "error": "no"}]
    )
    with pytest.raises(ExpectationsError, match=r"a\.0: could not start: no"):
        Run(directory).assert_programs()
    rewrite(directory, "summary.json", failures=[{"target": "a.0", "last_log_line": ""}])
    with pytest.raises(ExpectationsError, match=r"a\.0: ended by itself with status unknown"):
        Run(directory).assert_programs()


def test_a_run_without_a_verdict_is_unknown_and_not_valid(directory: Path) -> None:
    run = Run(directory)
    assert run.verdict.state == "unknown"
    with pytest.raises(NotTrustedError, match=r"not to be trusted: UNKNOWN(.|\n)*report\.html"):
        run.assert_valid()


def test_a_degraded_run_may_be_enough(directory: Path) -> None:
    reasons = [{"text": "packets were late"}]
    rewrite(directory, "summary.json", verdict={"state": "degraded", "reasons": reasons})
    run = Run(directory)
    run.assert_valid("degraded")
    with pytest.raises(NotTrustedError, match="DEGRADED: packets were late"):
        run.assert_valid()
    with pytest.raises(ValueError, match="degraded or valid"):
        run.assert_valid("good")


def test_expectations_that_passed(directory: Path) -> None:
    rewrite(directory, "summary.json", expectations=[PASSED])
    run = Run(directory)
    run.assert_expectations()
    [found] = run.expectations
    assert (found.figure, found.threshold, found.unit) == (31_000_000, 60_000_000, "ns")
    assert str(found) == "exp.tdl:9: expect rtt a b < 60ms: passed: at most 31ms"


def test_a_failed_expectation_is_told_with_its_log(directory: Path) -> None:
    rewrite(directory, "summary.json", expectations=[PASSED, FAILED])
    with pytest.raises(ExpectationsError) as error:
        Run(directory).assert_expectations()
    said = str(error.value)
    assert "1 of 2 expectations did not pass; verdict: UNKNOWN" in said
    assert "exp.tdl:9: expect rtt a b < 60ms: failed: 90ms at 5s" in said
    assert "a.0: too slow" in said


def test_what_was_not_measured_has_not_passed(directory: Path) -> None:
    rewrite(directory, "summary.json", expectations=[PASSED, UNMEASURED])
    with pytest.raises(ExpectationsError, match="not measured: no probes"):
        Run(directory).assert_expectations()
    Run(directory).assert_expectations(allow_unmeasured=True)


def test_an_experiment_that_expects_nothing_has_not_passed(directory: Path) -> None:
    assert Run(directory).expectations == []
    with pytest.raises(ExpectationsError, match="no `expect`"):
        Run(directory).assert_expectations()


@pytest.mark.parametrize(
    "expectations",
    [7, [7], [{}], [{**PASSED, "line": "9"}], [{**PASSED, "log": [{"instance": 1}]}]],
)
def test_damaged_expectations_are_named(directory: Path, expectations: object) -> None:
    rewrite(directory, "summary.json", expectations=expectations)
    with pytest.raises(ExperimentError, match="expectations"):
        Run(directory).expectations  # noqa: B018 (it is read when it is asked for)


def test_a_log_without_the_marks_of_the_run(directory: Path) -> None:
    (directory / "logs").mkdir()
    text = "one\n[tstorm] 1.000000000 s: crash\ntw\u00f6"
    (directory / "logs/a.0.log").write_text(text, encoding="utf-8")
    run = Run(directory)
    assert run.log("a.0") == "one\ntw\u00f6"
    for name in ("b.0", "../manifest", "a.0.log"):
        with pytest.raises(ExperimentError, match=r"no log of .*; there are a\.0"):
            run.log(name)


def test_a_run_that_goes_on_is_none(directory: Path) -> None:
    (directory / "manifest.json").write_text(json.dumps(recorded.BEGUN))
    with pytest.raises(ExperimentError, match="has not ended"):
        Run(directory)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="not the directory of a run"):
        Run(tmp_path)
    with pytest.raises(ExperimentError, match="No such file"):
        Run(tmp_path / "gone")
