"""Shrinking with a made-up runner: bounds, repeats, interruptions, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import MachineError
from tdl.preprocess.includes import NO_TEXTS
from tstorm.shrink import shrink_messages
from tstorm.shrink.failures import Failure
from tstorm.shrink.script import read
from tstorm.shrink.search import Shrunk, minimise, search
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import Attempt, Bounds, InterruptedTrialError, SilentRunError, Trials

SECOND = 10**9
WANTED = Failure("expectation", "at 7s expect rtt a b < 5ms")
OTHER = Failure("expectation", "another one")
STATEMENTS = [f"at {n}s a--s set latency={n}ms" for n in range(1, 9)]
TEXT = "\n".join(
    ["service a img=x", "bridge s", "link a--s latency=1ms", *STATEMENTS, "at 60s quit", ""]
)
SCRIPT = read(TEXT.encode(), NO_TEXTS)
Failing = Callable[[str], Collection[Failure] | None]


def needs(text: str) -> Collection[Failure] | None:
    """The second and the seventh statement, and time until 7.5 s."""
    if STATEMENTS[1] in text and STATEMENTS[6] in text and not quits_before(text, 7.5):
        return {WANTED}
    return {OTHER}


def quits_before(text: str, seconds: float) -> bool:
    (line,) = (line for line in text.splitlines() if line.endswith("quit"))
    return float(line.split()[1].removesuffix("s").replace("1m", "60")) < seconds


def shrunk(
    run: Failing, bounds: Bounds | None = None, decided_ns: int | None = None
) -> tuple[Shrunk, Trials, list[Attempt]]:
    seen: list[Attempt] = []
    ticks = count()
    bounds = bounds or Bounds(100)
    trials = Trials(run, {WANTED}, bounds, lambda: float(next(ticks)), seen.append)
    return search(SCRIPT, trials, TextMeaning(), decided_ns), trials, seen


def left(found: Shrunk) -> list[str]:
    return [line for line in found.text.splitlines() if line in STATEMENTS]


def test_what_the_failure_needs_is_left() -> None:
    found, trials, seen = shrunk(needs, decided_ns=7 * SECOND + 500_000_000)
    assert left(found) == [STATEMENTS[1], STATEMENTS[6]]
    assert needs(found.text) == {WANTED}
    assert found.end_ns is not None
    assert 7.5 * SECOND <= found.end_ns <= 8.3 * SECOND
    assert (found.confirmed, found.stopped) == (True, "")
    assert seen == trials.attempts
    assert len({one.text for one in seen}) == len(seen)
    assert len(seen) < 40


def test_another_failure_is_not_this_one() -> None:
    found, _, seen = shrunk(lambda _text: {OTHER})
    assert (found.confirmed, len(seen)) == (False, 1)
    assert found.text == TEXT


def test_what_does_not_compile_does_not_fail() -> None:
    """Here, what has the second statement without the first."""

    def run(text: str) -> Collection[Failure] | None:
        if STATEMENTS[1] in text and STATEMENTS[0] not in text:
            return None
        return needs(text)

    found, _, seen = shrunk(run)
    assert left(found) == [STATEMENTS[0], STATEMENTS[1], STATEMENTS[6]]
    assert any(not one.runs for one in seen)
    assert any(shrink_messages.attempt(one).endswith("does not compile") for one in seen)


def test_a_link_is_not_closed_from_the_beginning_on() -> None:
    """Where the first thing that is done with a link is a join, it is down until then: the leave
    would go, and its join would be the cause."""
    text = TEXT.replace(STATEMENTS[1], "at 2s a--s leave").replace(STATEMENTS[6], "at 7s a--s join")

    def run(tried: str) -> Collection[Failure] | None:
        return {WANTED} if "at 2s a--s leave" in tried or "at 7s a--s join" in tried else set()

    trials = Trials(run, {WANTED}, Bounds(100), lambda: 0.0, lambda _attempt: None)
    found = search(read(text.encode(), NO_TEXTS), trials, TextMeaning())
    assert "at 2s a--s leave" in found.text
    assert "join" not in found.text


def test_attempts_are_bounded_and_the_best_so_far_is_given() -> None:
    found, trials, _ = shrunk(needs, Bounds(12))
    assert "12 attempts" in found.stopped
    assert len(trials.attempts) == 12
    assert len(left(found)) < 8
    assert needs(found.text) == {WANTED}


def test_no_run_begins_when_the_time_is_over() -> None:
    found, trials, _ = shrunk(needs, Bounds(100, until=9.0))
    assert "--budget" in found.stopped
    assert sum(one.runs for one in trials.attempts) == 9
    assert needs(found.text) == {WANTED}


def test_an_interruption_keeps_the_best_so_far() -> None:
    runs = count()

    def run(text: str) -> Collection[Failure] | None:
        if next(runs) == 15:
            raise InterruptedTrialError
        return needs(text)

    found, _, _ = shrunk(run)
    assert (found.confirmed, found.stopped) == (True, "interrupted")
    assert len(left(found)) < 8


def test_what_the_machine_cannot_do_leaves_the_best_so_far() -> None:
    runs = count()

    def run(text: str) -> Collection[Failure] | None:
        if next(runs) == 15:
            raise MachineError("no space is left")
        return needs(text)

    found, trials, _ = shrunk(run)
    assert (found.confirmed, found.stopped) == (True, "no space is left")
    assert isinstance(found.error, MachineError)
    assert len(left(found)) < 8
    assert any(
        "no space is left" in line for line in shrink_messages.closing(found, trials, TextMeaning())
    )


@pytest.mark.parametrize(
    ("pattern", "bounds", "confirmed", "runs"),
    [
        ("101", Bounds(1, 2, 3), True, 3),
        ("11", Bounds(1, 2, 3), True, 2),
        ("00", Bounds(1, 2, 3), False, 2),
        ("01", Bounds(1, 1, 3), True, 2),
        ("10", Bounds(1, 3, 3), False, 2),
    ],
)
def test_so_many_of_so_many_runs_must_fail_and_no_more_are_made(
    pattern: str, bounds: Bounds, confirmed: bool, runs: int
) -> None:
    answers = iter(pattern)
    found, _, seen = shrunk(lambda _text: {WANTED} if next(answers) == "1" else set(), bounds)
    assert found.confirmed is confirmed
    assert seen[0].runs == runs


def test_no_run_is_repeated_when_the_time_is_over() -> None:
    def run(_text: str) -> Collection[Failure] | None:
        raise SilentRunError("the machine was busy")

    found, trials, _ = shrunk(run, Bounds(100, until=1.0))
    assert "--budget" in found.stopped
    assert (found.error, trials.attempts) == (None, [])


# Delta debugging finds what a failure needs, and does not ask more than it must.


@pytest.mark.parametrize("needed", [set(), {3}, {0, 7}, {1, 2, 3}, {0, 4, 8}, set(range(9))])
def test_what_is_needed_is_what_is_left(needed: set[int]) -> None:
    assert minimise(range(9), lambda part: needed <= set(part)) == sorted(needed)


@given(st.integers(1, 24), st.randoms(use_true_random=False))
def test_nothing_single_can_be_left_out_of_what_is_left(count: int, draw: object) -> None:
    """Also where failures come and go as more is taken out."""
    answers: dict[tuple[int, ...], bool] = {tuple(range(count)): True}

    def fails(part: Sequence[int]) -> bool:
        return answers.setdefault(tuple(part), draw.random() < 0.3)  # type: ignore[attr-defined]

    left = minimise(range(count), fails)
    assert answers[tuple(left)]
    if len(left) > 1:
        for item in left:
            assert not answers[tuple(one for one in left if one != item)]


def test_one_cause_among_many_takes_few_tests() -> None:
    asked: list[int] = []

    def fails(part: Sequence[int]) -> bool:
        asked.append(len(part))
        return 77 in part

    assert minimise(range(128), fails) == [77]
    assert len(asked) <= 2 * 7 + 1
