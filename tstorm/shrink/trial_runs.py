"""Runs a text as the run did that failed: same seed, options, files and programs. A run that failed
by itself, or is not what the options require, says nothing about its text."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import unwritten
from runtime.launch.launch import run
from runtime.launch.run_result import EXIT_CODES, PROGRAMS_FAILED, TOO_LATE
from runtime.options import COMPLETED, INTERRUPTED
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure
from tstorm.shrink.trials import InterruptedTrialError, SilentRunError

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.launch.run_result import RunResult
    from runtime.options import RunOptions
    from tstorm.shrink.text_meaning import TextMeaning

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
        doubt = _doubt(result)
        if doubt:
            raise SilentRunError(f"a run says nothing about its text: {doubt}", _REMEDY)
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
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            return self._run_in(plan, self.keep / f"run-{self.count}")
        place = Path(tempfile.mkdtemp(prefix="tstorm-shrink-"))
        try:
            return self._run_in(plan, place / "run")
        finally:
            with suppress(OSError):
                shutil.rmtree(place)

    def _run_in(self, plan: Plan, place: Path) -> RunResult:
        from tstorm.command_support import places_of

        result = run(plan, self.options, places_of(self.source, str(place), self.name))
        if result.outcome == INTERRUPTED:
            raise InterruptedTrialError
        return result


def _doubt(result: RunResult) -> str:
    """Why the run says nothing about its text; '' if it does. One that programs have ended does."""
    if result.exit_code in (EXIT_CODES[COMPLETED], PROGRAMS_FAILED):
        return ""
    if result.exit_code != TOO_LATE:
        return f"it failed: {result.message}"
    if result.not_as_required:
        state = result.summary["verdict"]["state"]
        return f"its verdict is {state}, and --require {result.options.require} asks for another"
    return "something was later than --max-lateness allows"
