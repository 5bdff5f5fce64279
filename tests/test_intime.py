"""tests.intime: what is wrong is a failure if the machine had time, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.intime import MS, Attempt, exactly, in_time


def run_with(folder: Path, name: str, late_ms: float, overruns: int = 0) -> Path:
    run = folder / name
    run.mkdir()
    engine = {"late_p99_ns": round(late_ms * MS), "late_max_ns": round(late_ms * MS)}
    loop = {"overruns": overruns, "late_max_ns": 0}
    record = {"engine": engine, "hosts": [{"name": "host0", "loop": loop}]}
    (run / "summary.json").write_text(json.dumps(record))
    return run


@pytest.fixture(autouse=True)
def _no_sleeper(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may be busy as well."""
    monkeypatch.setattr("tests.intime.SLEEPER_NS", 1 << 62)
    monkeypatch.setattr("tests.intime.SLEEPER_SUM_PERCENT", 1 << 62)


def test_what_is_wrong_in_time_is_wrong(tmp_path: Path) -> None:
    seen = []

    def trial(attempt: Attempt) -> None:
        seen.append(attempt.saw(run_with(tmp_path, attempt.name("run"), 0.1)))
        raise AssertionError("wrong")

    with pytest.raises(AssertionError, match="wrong"):
        in_time(trial)
    assert [run.name for run in seen] == ["run"]


@pytest.mark.parametrize(("late_ms", "overruns"), [(30.0, 0), (0.0, 1)])
def test_what_was_late_is_tried_again(tmp_path: Path, late_ms: float, overruns: int) -> None:
    seen = []

    def trial(attempt: Attempt) -> None:
        seen.append(attempt.saw(run_with(tmp_path, attempt.name("run"), late_ms, overruns)))
        assert len(seen) == 2

    in_time(trial)
    assert [run.name for run in seen] == ["run", "run1"]


def test_a_machine_that_is_always_late_skips(tmp_path: Path) -> None:
    def trial(attempt: Attempt) -> None:
        attempt.saw(run_with(tmp_path, attempt.name("run"), 30.0))
        raise AssertionError("wrong")

    with pytest.raises(pytest.skip.Exception, match=r"too busy 3 times: packets were late"):
        in_time(trial)


def test_a_late_machine_that_was_right_is_right(tmp_path: Path) -> None:
    in_time(lambda attempt: attempt.saw(run_with(tmp_path, "run", 30.0)))


def test_a_thread_that_sleeps_knows_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = Attempt(0)
    monkeypatch.setattr("tests.intime.SLEEPER_NS", -1)
    with attempt.watching():
        pass
    assert "a sleeping thread woke up" in attempt.why_late()


def test_in_virtual_time_what_is_wrong_is_wrong_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.intime.kernel", lambda: tmp_path)
    seen = []

    def trial(attempt: Attempt) -> None:
        seen.append(attempt.saw(run_with(tmp_path, attempt.name("run"), 30.0)))
        assert attempt.options == {"time": "virtual"}
        assert attempt.flags == ["--time", "virtual"]
        raise AssertionError("wrong")

    with pytest.raises(AssertionError, match="wrong"):
        exactly(trial)
    assert len(seen) == 1


def test_without_the_kernel_for_it_time_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.intime.kernel", lambda: None)
    seen = []

    def trial(attempt: Attempt) -> None:
        seen.append(attempt.saw(run_with(tmp_path, attempt.name("run"), 30.0)))
        assert (attempt.options, attempt.flags) == ({}, [])
        assert len(seen) == 2

    exactly(trial)
