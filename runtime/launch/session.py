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
from runtime.driver.progress import Progress, Reporter, from_record
from runtime.errors import MachineError, RunError
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
    final: dict[str, Any] | None = None  # the driver's last word
    began_ns: int = field(default_factory=time.monotonic_ns)

    def hear(self, message: Mapping[str, Any]) -> None:
        """Takes progress, the start and the end, as the driver says them. KeyError, TypeError or
        ValueError if one of them makes no sense."""
        if "progress" in message:
            shown = from_record(message["progress"])
            self.latest = replace(shown, directory=str(self.directory.path))
            self.reporter(self.latest)
        elif "started" in message:
            self.started = True
            self.t0_ns = int(message["started"].get("start_monotonic_ns", 0))
            setup_ns = time.monotonic_ns() - self.began_ns
            self.directory.update_manifest(**message["started"], setup_ns=setup_ns)
        elif "final" in message:
            self.final = dict(message["final"])

    def fail(self, why: str) -> None:
        """The run did not get as far as to an end of its own: it has an outcome all the same."""
        with suppress(OSError, RunError):
            self.directory.close_manifest(FAILED, why)

    def results(self, final: Mapping[str, Any]) -> Mapping[str, Any]:
        """Writes what comes of the run, and returns its summary. RunError (conclude.results)."""
        if self.directory.has(PLANNED):
            self._follow()
        return conclude.results(self.directory, self.plan, self.schedule, self.options, final)

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

    def result(self, final: Mapping[str, Any], summary: Mapping[str, Any]) -> RunResult:
        """MachineError if the run has been refused what it needs."""
        if final["refused"]:
            raise MachineError(str(final["message"]))
        return RunResult(
            outcome=str(final["outcome"]),
            run_id=self.run_id,
            directory=self.directory.path,
            message=str(final["message"]),
            summary=summary,
            programs_failed=programs_failed(summary, final, self.options),
            options=self.options,
        )
