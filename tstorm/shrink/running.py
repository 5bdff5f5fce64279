"""Runs a text as the run did that failed: same seed, options, files and programs."""

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
from runtime.options import INTERRUPTED
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure
from tstorm.shrink.trials import InterruptedTrialError

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.options import RunOptions
    from tstorm.shrink.reading import Reading


@dataclass(slots=True)
class Runner:
    """`source` is the run or the text that is shrunk; `keep` where runs stay, None: they go."""

    source: str
    reading: Reading
    options: RunOptions
    name: str
    keep: Path | None = None
    count: int = 0

    def __call__(self, text: str) -> Mapping[Failure, int | None] | None:
        plan = self.reading.plan(text)
        if plan is None:
            return None
        self.count += 1
        try:
            return self._in_a_place(plan)
        except OSError as error:
            raise unwritten(error) from error

    def _in_a_place(self, plan: Plan) -> Mapping[Failure, int | None]:
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            return self._run(plan, self.keep / f"run-{self.count}")
        place = Path(tempfile.mkdtemp(prefix="tstorm-shrink-"))
        try:
            return self._run(plan, place / "run")
        finally:
            with suppress(OSError):
                shutil.rmtree(place)

    def _run(self, plan: Plan, place: Path) -> Mapping[Failure, int | None]:
        """RunError where the machine cannot do it: that says nothing about the text."""
        from tstorm.running import places_of

        places = places_of(self.source, str(place), self.name)
        result = run(plan, self.options, places)
        if result.outcome == INTERRUPTED:
            raise InterruptedTrialError
        return failures.of(result.summary, self.options, str(place))
