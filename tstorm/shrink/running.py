"""Runs a text as the run did that failed: same seed, options, files and programs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.launch.launch import run
from runtime.options import INTERRUPTED
from tdl.diagnostics import TdlError
from tstorm.exits import CommandError
from tstorm.loading import plan_errors_shown
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure
from tstorm.shrink.trials import InterruptedTrialError

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.sources import Sources
    from runtime.options import RunOptions


@dataclass(slots=True)
class Runner:
    """`source` is the run or the text that is shrunk; `keep` where runs stay, None: they go."""

    source: str
    seed: int
    params: Mapping[str, str]
    options: RunOptions
    sources: Sources
    name: str
    keep: Path | None = None
    count: int = 0

    def __call__(self, text: str) -> Mapping[Failure, int | None] | None:
        plan = self.compiled(text)
        if plan is None:
            return None
        self.count += 1
        if self.keep is not None:
            return self._run(plan, self.keep / f"run-{self.count}")
        place = Path(tempfile.mkdtemp(prefix="tstorm-shrink-"))
        try:
            return self._run(plan, place / "run")
        finally:
            with suppress(OSError):
                shutil.rmtree(place)

    def compiled(self, text: str) -> Plan | None:
        """None if there is an error in it: warnings are those of the text that is shrunk."""
        from compiler.pipeline import compile_source

        try:
            with plan_errors_shown():
                raw = text.encode("utf-8")
                made = compile_source(raw, seed=self.seed, sources=self.sources, params=self.params)
                return made.plan
        except (TdlError, CommandError):  # wrong, or with other files than the recorded ones
            return None

    def _run(self, plan: Plan, place: Path) -> Mapping[Failure, int | None]:
        """RunError where the machine cannot do it: that says nothing about the text."""
        from tstorm.running import places_of

        places = places_of(self.source, str(place), self.name)
        result = run(plan, self.options, places)
        if result.outcome == INTERRUPTED:
            raise InterruptedTrialError
        return failures.of(result.summary, self.options, str(place))
