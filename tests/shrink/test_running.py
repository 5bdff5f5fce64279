"""What a run of an attempt says: which failure it shows, whether its end decides, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from runtime.launch.run_result import RunResult
from runtime.options import COMPLETED, DEFAULTS, FAILED, RunOptions, RunPlaces
from tstorm.shrink import failures, trials
from tstorm.shrink.failures import Failure
from tstorm.shrink.search import Shrunk, search
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import Attempt, Bounds, SilentRunError, TrialRunner, Trials

SECOND = 10**9
HEAD = """\
service a img=x
service b img=x
bridge s
link a--s latency=1ms
link b--s latency=1ms
"""
TIMELINE = "at 5s b--s set latency=9ms\nat 10s b crash\n"
TEXT = HEAD + TIMELINE + "at 60s quit\nexpect exit a 0\n"
Carry = Callable[[Plan], Mapping[str, Any]]  # what it comes to, as far as that is not fine


def row(text: str, figure: int | None, at_ns: int) -> dict[str, Any]:
    return {"text": text, "state": "failed", "figure": figure, "at_ns": at_ns}


def unmet(text: str, figure: int | None, at_s: int) -> list[Failure]:
    plan = compile_source(f"{HEAD}at 60s quit\n{text}\n").plan
    found = row(plan.expectations[0].text, figure, at_s * SECOND)
    return list(failures.of({"expectations": [found]}, DEFAULTS, plan))


@pytest.mark.parametrize(
    ("text", "figure", "at_s", "by_end"),
    [
        ("expect exit a 0", 1, 20, False),
        ("expect exit a 0", None, 20, False),  # killed
        ("expect exit a 0", None, 60, True),  # it still ran
        ('expect log a "done"', None, 60, True),
        ('expect log a "done" within 5s after 20s', None, 25, False),
        ('expect no log a "panic"', None, 20, False),
        ("expect rtt a b < 5ms", 9_000_000, 20, True),
        ("expect rtt a b < 5ms from 10s to 30s", 9_000_000, 20, False),
        ("expect rtt max a b < 5ms", 9_000_000, 20, False),
        ("expect rtt max a b < 5ms", None, 0, True),  # all probes were lost
        ("expect rtt max a b > 5ms", 1_000_000, 20, True),
        ("expect throughput a b > 5Mb", 1_000_000, 0, True),
        ("expect loss a b < 1% from 10s", 20_000_000, 20, True),
        ("expect unreachable a b from 10s", 1, 20, False),
        ('expect run "true" ok on a.0', 1, 59, True),
        ('expect run "true" ok on a.0 at 20s', 1, 20, False),
        ("expect valid", None, 20, True),
    ],
)
def test_the_end_decides_what_a_run_that_ends_earlier_would_judge_otherwise(
    text: str, figure: int | None, at_s: int, by_end: bool
) -> None:
    [found] = unmet(text, figure, at_s)
    assert found.by_end is by_end
    assert ("end of the run" in found.words) is by_end


def test_a_program_that_still_ran_is_another_failure_than_one_that_ended() -> None:
    plan = compile_source(TEXT).plan
    ended = {"target": "a.0", "expect": "success", "status": 1}
    ran = {"target": "a.0", "expect": "success", "still_running": True}
    first, second = (failures.of({"failures": [one]}, DEFAULTS, plan) for one in (ended, ran))
    assert list(first) == [Failure("program", "a.0")]
    assert list(second) == [Failure("program", "a.0", by_end=True)]


def runner(
    monkeypatch: pytest.MonkeyPatch, carry: Carry, text: str = TEXT, options: RunOptions = DEFAULTS
) -> TrialRunner:
    def run(plan: Plan, asked: RunOptions, places: RunPlaces) -> RunResult:
        assert places.out is not None
        said: dict[str, Any] = {"outcome": COMPLETED, "programs_failed": True, **carry(plan)}
        fine = {"verdict": {"state": "valid"}, "expectations": said.pop("rows", [])}
        summary = {**fine, **said.pop("summary", {})}
        return RunResult(run_id="r", directory=places.out, summary=summary, options=asked, **said)

    monkeypatch.setattr(trials, "run", run)
    reading = TextMeaning()
    plan = reading.plan(text)
    assert plan is not None
    return TrialRunner("x.tdl", reading, options, "x", plan.end_ns)


def shrunk(
    run: TrialRunner, *wanted: Failure, decided_ns: int | None = None
) -> tuple[Shrunk, Trials]:
    seen: list[Attempt] = []
    trials = Trials(run, wanted, Bounds(100), lambda: 0.0, seen.append)
    return search(run.reading.script(TEXT), trials, run.reading, decided_ns), trials


def exits(plan: Plan) -> Mapping[str, Any]:
    """The program ends with 1 at 20 s because of the crash at 10 s, else with 0 at 30 s."""
    crashes = any(one.kind == "crash" for one in plan.events)
    if plan.end_ns < (20 if crashes else 30) * SECOND:
        return {"rows": [row("expect exit a 0", None, plan.end_ns)]}
    return {"rows": [row("expect exit a 0", 1, 20 * SECOND)] if crashes else []}


def test_an_end_before_the_failure_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("expectation", "expect exit a 0")
    found, _ = shrunk(runner(monkeypatch, exits), failure, decided_ns=20 * SECOND)
    assert (found.confirmed, found.stopped) == (True, "")
    assert found.end_ns == 20 * SECOND + SECOND // 10
    assert found.text == f"{HEAD}at 10s b crash\nat 20.1s quit\nexpect exit a 0\n"


def test_the_end_stays_where_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise any program still runs."""

    def hangs(plan: Plan) -> Mapping[str, Any]:
        crashes = any(one.kind == "crash" for one in plan.events)
        still = crashes or plan.end_ns < 30 * SECOND
        return {"rows": [row("expect exit a 0", None, plan.end_ns)] if still else []}

    failure = Failure("expectation", "expect exit a 0", by_end=True)
    found, trials = shrunk(runner(monkeypatch, hangs), failure)
    assert found.text == f"{HEAD}at 10s b crash\nat 60s quit\nexpect exit a 0\n"
    assert not any("an end" in one.what for one in trials.attempts)


def test_an_earlier_end_shows_only_what_was_decided_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two failures, one of which any earlier end would show."""

    def both(plan: Plan) -> Mapping[str, Any]:
        still = {"target": "b.0", "expect": "success", "still_running": True}
        return {**exits(plan), "summary": {"failures": [still]}}

    wanted = Failure("expectation", "expect exit a 0"), Failure("program", "b.0", by_end=True)
    run = runner(monkeypatch, both)
    plan = run.reading.plan(TEXT.replace("60s quit", "25s quit"))
    assert plan is not None
    assert set(run(TEXT) or ()) == set(wanted)
    assert set(run(plan.source.decode()) or ()) == {wanted[0]}


@pytest.mark.parametrize(("more", "there"), [("", False), ("quit when a exits\n", True)])
def test_without_quit_the_last_statement_may_be_the_end(
    monkeypatch: pytest.MonkeyPatch, more: str, there: bool
) -> None:
    text = HEAD + TIMELINE + more
    still = {"target": "b.0", "expect": "success", "still_running": True}
    run = runner(monkeypatch, lambda _plan: {"summary": {"failures": [still]}}, text)
    assert len(run(text) or ()) == 1
    assert bool(run(text.replace("at 10s b crash\n", ""))) is there


STRICT = RunOptions(require="valid", max_lateness_ns=1_000_000)
FAILING = {"rows": [row("expect exit a 0", 1, 20 * SECOND)]}
SILENT: list[tuple[Mapping[str, Any], str]] = [
    ({**FAILING, "summary": {"verdict": {"state": "invalid"}}}, "its verdict is invalid"),
    ({**FAILING, "summary": {"verdict": {"state": "valid", "too_late": True}}}, "--max-lateness"),
    (
        {**FAILING, "outcome": FAILED, "programs_failed": False, "message": "no memory is left"},
        "it failed: no memory is left",
    ),
]


def one_after_the_other(results: Sequence[Mapping[str, Any]]) -> Carry:
    left = iter(results)
    return lambda _plan: next(left)


@pytest.mark.parametrize(("silent", "_why"), SILENT)
def test_a_run_that_says_nothing_does_not_count_and_is_made_again(
    monkeypatch: pytest.MonkeyPatch, silent: Mapping[str, Any], _why: str
) -> None:
    run = runner(monkeypatch, one_after_the_other([silent, {}]), options=STRICT)
    found, trials = shrunk(run, Failure("expectation", "expect exit a 0"))
    assert not found.confirmed
    assert [(one.runs, one.fails) for one in trials.attempts] == [(1, 0)]


@pytest.mark.parametrize(("silent", "why"), SILENT)
def test_two_runs_that_say_nothing_end_the_search(
    monkeypatch: pytest.MonkeyPatch, silent: Mapping[str, Any], why: str
) -> None:
    run = runner(monkeypatch, one_after_the_other([FAILING, silent, silent]), options=STRICT)
    found, trials = shrunk(run, Failure("expectation", "expect exit a 0"))
    assert isinstance(found.error, SilentRunError)
    assert why in found.stopped
    assert (found.confirmed, found.text, len(trials.attempts)) == (True, TEXT, 1)


def test_a_run_that_programs_have_ended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runner(monkeypatch, lambda _plan: {**FAILING, "outcome": FAILED})
    assert list(run(TEXT) or ()) == [Failure("expectation", "expect exit a 0")]
