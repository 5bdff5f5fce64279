"""A run as its command knows it, wherever it is carried out: what its driver has said so far, and
what comes of that.

On this machine the driver is a process beside the command (runtime.launch.launch), in a cluster it
is in a Job (tstorm.k8s.clusterrun).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan
from runtime.driver.driver_messages import RunStarted, Said
from runtime.driver.progress import Progress, Reporter
from runtime.errors import MachineError, RunError
from runtime.judge.run_end import RunEnd
from runtime.launch import conclude
from runtime.launch.run_result import RunResult
from runtime.options import FAILED, RunOptions
from runtime.results.summary import programs_failed
from runtime.rundir.rundir import RunDirectory, plan_in
from runtime.rundir.runfiles import PLANNED
from runtime.schedule import Schedule


@dataclass(slots=True)
class Session:
    """One run, from its directory to its result."""

    run_id: str
    plan: Plan
    schedule: Schedule
    options: RunOptions
    directory: RunDirectory
    reporter: Reporter
    latest: Progress | None = None  # that the driver has said
    started: bool = False  # time 0 is known
    t0_ns: int = 0  # of the driver's CLOCK_MONOTONIC, where it has one that we share
    end: RunEnd | None = None  # the driver's last word
    began_ns: int = field(default_factory=time.monotonic_ns)

    def hear(self, said: Said) -> None:
        """Takes what the driver says."""
        match said:
            case Progress():
                self.latest = replace(said, directory=str(self.directory.path))
                self.reporter(self.latest)
            case RunStarted(facts):
                self.started = True
                t0_ns = facts.get("start_monotonic_ns")
                self.t0_ns = t0_ns if type(t0_ns) is int else 0
                setup_ns = time.monotonic_ns() - self.began_ns
                self.directory.update_manifest(**{**facts, "setup_ns": setup_ns})
            case RunEnd():
                self.end = said

    def fail(self, why: str) -> None:
        """The run did not get as far as to an end of its own: it has an outcome all the same."""
        with suppress(OSError, RunError):
            self.directory.close_manifest(FAILED, why)

    def results(self, end: RunEnd) -> Mapping[str, Any]:
        """Writes what comes of the run, and returns its summary. RunError (conclude.results)."""
        if self.directory.has(PLANNED):
            self._follow()
        return conclude.results(self.directory, self.plan, self.schedule, self.options, end)

    def _follow(self) -> None:
        """A run that was steered is judged by what was in force. RunError."""
        try:
            self.plan = plan_in(self.directory)
            self.schedule = Schedule(self.plan, self.options)
            self.directory.update_manifest(plan_digest=self.plan.digest)
        except (OSError, PlanError) as error:
            why = f"the plan of the run cannot be read any more: {error}"
            self.fail(why)
            raise RunError(why) from error

    def result(self, end: RunEnd, summary: Mapping[str, Any]) -> RunResult:
        """MachineError if the run has been refused what it needs."""
        if end.refused:
            raise MachineError(end.message)
        failed = programs_failed(summary, self.options, ended_by_programs=end.programs_failed)
        return RunResult(
            outcome=end.outcome,
            run_id=self.run_id,
            directory=self.directory.path,
            message=end.message,
            summary=summary,
            programs_failed=failed,
            options=self.options,
        )
