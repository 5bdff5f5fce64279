"""Runs storms: each in a place of its own, which goes when it is known what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.errors import RunError
from runtime.launch.launch import run
from runtime.options import INTERRUPTED
from runtime.rundir import rundir
from runtime.rundir.runfiles import HUNT_PLACE
from runtime.schedule import Schedule
from tdl.diagnostics import TdlError
from tstorm.campaign.results import ExpectationOutcomes
from tstorm.hunt import novelty, storms
from tstorm.hunt.hunt_results import FAILED, PASSED, SILENT, FailedAt, StormResult
from tstorm.shrink import failures
from tstorm.shrink.trials import doubt

if TYPE_CHECKING:
    from compiler.expect.storm_space import StormSpace
    from compiler.plan.reader import Plan
    from compiler.sources import Sources
    from runtime.launch.run_result import RunResult
    from runtime.options import RunOptions
    from tstorm.hunt.storms import Fault, Storm


@dataclass(frozen=True, slots=True)
class HuntRequest:
    """What is hunted in: `source` is the file, `base` its text, which ends at `end_ns`. `repeat`:
    runs that a text has to fail when it is shrunk; `attempts`: texts that are tried for a find."""

    source: str
    base: str
    sources: Sources
    params: Mapping[str, str]
    options: RunOptions
    name: str
    space: StormSpace
    end_ns: int
    repeat: int
    attempts: int

    def text(self, faults: Sequence[Fault]) -> str:
        return storms.text(self.base, faults, self.space.instances)

    def plan(self, storm: Storm) -> Plan:
        """TdlError."""
        from compiler.pipeline import compile_source

        return compile_source(
            self.text(storm.faults),
            seed=storm.seed,
            sources=self.sources,
            params=self.params,
            doubts=False,
        ).plan

    def refused(self, storm: Storm) -> str:
        """Why the storm is no experiment; '' if it is one."""
        try:
            self.plan(storm)
        except TdlError as error:
            return error.diagnostics[0].message
        return ""


def carried_out(asked: HuntRequest, storm: Storm) -> StormResult | None:
    """None if somebody stopped it."""
    plan = asked.plan(storm)
    try:
        with _result(asked, plan) as result:
            if result.outcome == INTERRUPTED:
                return None
            if why := doubt(result):
                return StormResult(storm, SILENT, message=why)
            return _judged(asked, storm, plan, result)
    except RunError as error:
        return StormResult(storm, SILENT, message=error.message)


@contextmanager
def _result(asked: HuntRequest, plan: Plan) -> Iterator[RunResult]:
    """RunError."""
    from tstorm.command_support import passing_places

    with passing_places(HUNT_PLACE, asked.source, asked.name) as places:
        yield run(plan, asked.options, places)


def _judged(asked: HuntRequest, storm: Storm, plan: Plan, result: RunResult) -> StormResult:
    found = failures.of(result.summary, asked.options, plan)
    failed = tuple(
        FailedAt(one.what, one.name, one.by_end, -1 if at_ns is None else at_ns)
        for one, at_ns in sorted(found.items())
    )
    recorded = rundir.recorded(result.directory)
    reached = novelty.reached(recorded, plan, Schedule(plan, asked.options))
    came = ExpectationOutcomes.of(result.summary)
    outcome = FAILED if failed else PASSED
    return StormResult(storm, outcome, failed, reached, happened=came.happened, never=came.never)
