"""Tries texts out, within bounds: the same text once, and not more of them than was allowed.

Input: what runs a text once, and what must fail. A text fails if so many of its runs fail that way;
no more of them are made than it takes to know. One that does not compile does not fail. A run that
says nothing about its text does not count, and is made once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from runtime.errors import RunError, unwritten
from runtime.launch.launch import run
from runtime.launch.run_result import EXIT_CODES, PROGRAMS_FAILED, TOO_LATE
from runtime.options import COMPLETED, INTERRUPTED
from runtime.rundir.runfiles import SHRINK_PLACE
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.launch.run_result import RunResult
    from runtime.options import RunOptions, RunPlaces
    from tstorm.shrink.text_meaning import TextMeaning


class SpentError(Exception):
    """There may be no further attempt; the text says why."""


class InterruptedTrialError(Exception):
    """Somebody stopped a run."""


class SilentRunError(RunError):
    """A run says nothing about its text."""


class Runs(Protocol):
    def __call__(self, text: str, /) -> Collection[Failure] | None:
        """What failed in a run of the text; None if it does not compile. InterruptedTrialError,
        SilentRunError."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`needed` of `repeat` runs must fail. `until` is a time of the clock, None: there is none."""

    attempts: int
    needed: int = 1
    repeat: int = 1
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """`fails` of `runs` failed; no runs: it does not compile."""

    number: int
    text: str
    what: str
    runs: int
    fails: int
    failed: bool


class Trials:
    def __init__(
        self,
        run: Runs,
        wanted: Collection[Failure],
        bounds: Bounds,
        clock: Callable[[], float],
        tell: Callable[[Attempt], None],
    ) -> None:
        self.attempts: list[Attempt] = []
        self.remembered = 0  # texts that were asked for again
        self._run = run
        self._wanted = frozenset(wanted)
        self._bounds = bounds
        self._clock = clock
        self._tell = tell
        self._known: dict[bytes, bool] = {}

    @property
    def may_end_earlier(self) -> bool:
        """Whether an earlier end could show what must fail."""
        return not all(one.by_end for one in self._wanted)

    def fails(self, text: str, what: str) -> bool:
        """`what` says what the text is, for people. SpentError, InterruptedTrialError, and
        SilentRunError if two runs in a row were silent."""
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        if digest in self._known:
            self.remembered += 1
            return self._known[digest]
        if len(self.attempts) >= self._bounds.attempts:
            raise SpentError(f"{self._bounds.attempts} attempts were made (--attempts)")
        attempt = self._attempt(text, what)
        self.attempts.append(attempt)
        self._known[digest] = attempt.failed
        self._tell(attempt)
        return attempt.failed

    def _attempt(self, text: str, what: str) -> Attempt:
        bounds, runs, fails = self._bounds, 0, 0
        while fails < bounds.needed and runs - fails <= bounds.repeat - bounds.needed:
            found = self._found(text)
            if found is None:
                break
            runs += 1
            fails += not self._wanted.isdisjoint(found)
        number = len(self.attempts) + 1
        return Attempt(number, text, what, runs, fails, fails >= bounds.needed)

    def _found(self, text: str, *, again: bool = True) -> Collection[Failure] | None:
        if self._bounds.until is not None and self._clock() >= self._bounds.until:
            raise SpentError("the time for it is over (--budget)")
        try:
            return self._run(text)
        except SilentRunError:
            if not again:
                raise
        return self._found(text, again=False)


# Runs a text as the run did that failed: same seed, options, files and programs. A run that failed
# by itself, or is not what the options require, says nothing about its text.

_REMEDY = "give this machine less to do meanwhile, or try it in virtual time"


@dataclass(slots=True)
class TrialRunner:
    """`source` is the run or the text that is shrunk, which ends at `end_ns`; `keep` where runs
    stay, None: they go."""

    source: str
    reading: TextMeaning
    options: RunOptions
    name: str
    end_ns: int
    keep: Path | None = None
    count: int = 0

    def __call__(self, text: str) -> Mapping[Failure, int | None] | None:
        """RunError where the machine cannot do it: that says nothing about the text."""
        plan = self.reading.plan(text)
        if plan is None:
            return None
        result = self._run(plan)
        why_silent = doubt(result)
        if why_silent:
            raise SilentRunError(f"a run says nothing about its text: {why_silent}", _REMEDY)
        found = failures.of(result.summary, self.options, plan)
        if self._ends_earlier(plan):  # what only the end decides would be another failure there
            return {one: at_ns for one, at_ns in found.items() if not one.by_end}
        return found

    def _ends_earlier(self, plan: Plan) -> bool:
        """A run without `quit` that programs end does so where it did, whatever its plan has."""
        quits = bool(plan.events) and plan.events[-1].kind == "quit"
        return plan.end_ns < self.end_ns and (quits or not plan.topology.quit_when)

    def _run(self, plan: Plan) -> RunResult:
        self.count += 1
        try:
            return self._in_a_place(plan)
        except OSError as error:
            raise unwritten(error) from error

    def _in_a_place(self, plan: Plan) -> RunResult:
        from tstorm.command_support import passing_places, places_of

        if self.keep is None:
            with passing_places(SHRINK_PLACE, self.source, self.name) as places:
                return self._run_in(plan, places)
        self.keep.mkdir(parents=True, exist_ok=True)
        place = self.keep / f"run-{self.count}"
        return self._run_in(plan, places_of(self.source, str(place), self.name))

    def _run_in(self, plan: Plan, places: RunPlaces) -> RunResult:
        result = run(plan, self.options, places)
        if result.outcome == INTERRUPTED:
            raise InterruptedTrialError
        return result


def doubt(result: RunResult) -> str:
    """Why the run says nothing about its text; '' if it does. One that programs have ended does."""
    if result.exit_code in (EXIT_CODES[COMPLETED], PROGRAMS_FAILED):
        return ""
    if result.exit_code != TOO_LATE:
        return f"it failed: {result.message}"
    if result.not_as_required:
        state = result.summary["verdict"]["state"]
        return f"its verdict is {state}, and --require {result.options.require} asks for another"
    return "something was later than --max-lateness allows"
