"""Branches of a recorded run: the same until a moment, drawn anew from then on."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

from runtime.errors import RunError
from runtime.launch.launch import run
from runtime.options import INTERRUPTED
from runtime.rundir.runfiles import WHY_PLACE
from tstorm.campaign import jobs
from tstorm.exit_codes import CommandError
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure
from tstorm.shrink.trials import InterruptedTrialError, doubt
from tstorm.why.drawn_events import Planned, planned

if TYPE_CHECKING:
    from runtime.launch.run_result import RunResult
    from runtime.options import RunOptions
    from tstorm.loading import PlanToRun

SEEDS = 1 << 31
IMPOSSIBLE = 20  # seeds in a row with which a branch cannot be carried out


class Branch(NamedTuple):
    """The `number`-th of those that part from the run at this moment, ns of the plan."""

    at_ns: int
    number: int


class BranchEnd(NamedTuple):
    """`impossible`: with its seed other instances would join, which are made before the start, or
    it does not compile."""

    fails: bool = False
    impossible: str = ""
    error: str = ""
    remedy: str = ""
    stopped: bool = False


@dataclass
class BranchRunner:
    """`source` is the run, which has failed as in `wanted`. Seeds of branches are made of its
    digest, the moment and the number: the same ones each time. `many` run at a time."""

    source: str
    options: RunOptions
    digest: str
    wanted: Collection[Failure]
    many: int | None
    ends: dict[Branch, BranchEnd] = field(default_factory=dict)

    def branches(self, at_ns: int, first: int) -> Iterator[bool]:
        """Whether each fails, in their order; those that are not possible are left out. RunError,
        InterruptedTrialError."""
        return (end.fails for end in islice(self._possible(at_ns), first, None))

    def planned(self, at_ns: int, most: int) -> Iterator[frozenset[Planned]]:
        """What is in the plans of the first branches of a moment, of those that compile."""
        for number in range(most):
            branch = Branch(at_ns, number)
            with suppress(RunError, CommandError):
                yield planned(again(self.source, self._reseeds(branch)).plan.events)

    def _possible(self, at_ns: int) -> Iterator[BranchEnd]:
        refused = 0
        for number in count():
            end = self._ended(Branch(at_ns, number))
            refused = refused + 1 if end.impossible else 0
            if refused == IMPOSSIBLE:
                raise RunError(f"no branch at {at_ns / 1e9:.9f} s is possible", end.impossible)
            if not end.impossible:
                yield end

    def _ended(self, wanted: Branch) -> BranchEnd:
        """Others of the same moment are carried out beside it: most are asked for next."""
        if wanted not in self.ends:
            shares = jobs.shares(self.many, IMPOSSIBLE, virtual=True)
            batch = [Branch(wanted.at_ns, wanted.number + more) for more in range(len(shares))]
            for job in jobs.carry_out(self._one, batch, shares):
                self.ends[job.point] = _checked(job)
        if wanted not in self.ends:  # nobody begins what was to be stopped
            raise InterruptedTrialError
        return self.ends[wanted]

    def _one(self, branch: Branch) -> BranchEnd:
        """In a process of its own."""
        reseeds = self._reseeds(branch)
        options = replace(self.options, reseeds=reseeds, packets=False)
        try:
            found = again(self.source, reseeds)
        except RunError as error:
            return BranchEnd(impossible=error.message)
        except CommandError as error:  # its message is empty where diagnostics have said all
            return BranchEnd(impossible=error.in_one_line or "it does not compile")
        try:
            with carried_out(self.source, found, options) as result:
                return self._judged(result, found, options)
        except RunError as error:
            return BranchEnd(error=error.message, remedy=error.remedy)

    def _judged(self, result: RunResult, found: PlanToRun, options: RunOptions) -> BranchEnd:
        if result.outcome == INTERRUPTED:
            return BranchEnd(stopped=True)
        if why := doubt(result):
            return BranchEnd(error=f"a branch says nothing: {why}")
        failed = failures.of(result.summary, options, found.plan)
        return BranchEnd(not frozenset(self.wanted).isdisjoint(failed))

    def _reseeds(self, branch: Branch) -> dict[str, int]:
        kept = {at: seed for at, seed in self.options.reseeds.items() if int(at) < branch.at_ns}
        return {**kept, str(branch.at_ns): self.seed(branch)}

    def seed(self, branch: Branch) -> int:
        text = f"{self.digest} {branch.at_ns} {branch.number}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8]) % SEEDS


def _checked(job: jobs.JobEnd[Branch, BranchEnd]) -> BranchEnd:
    """RunError, InterruptedTrialError."""
    at_s = job.point.at_ns / 1e9
    if job.said is None:
        raise RunError(f"a branch at {at_s:.9f} s came to nothing: {job.why}")
    if job.said.stopped:
        raise InterruptedTrialError
    if job.said.error:
        raise RunError(f"a branch at {at_s:.9f} s: {job.said.error}", job.said.remedy)
    return job.said


def again(source: str, reseeds: Mapping[str, int] | None = None) -> PlanToRun:
    """The run's plan as it began with it: what its `when` saw is seen again, or something else is.
    Without the warnings of compiling, which have nothing to do with when it was decided.
    RunError, CommandError."""
    from tstorm.loading import plan_to_run

    return plan_to_run(source, None, again=True, reseeds=reseeds, warn=False)


@contextmanager
def carried_out(source: str, found: PlanToRun, options: RunOptions) -> Iterator[RunResult]:
    """A run in a place of its own, which goes afterwards. RunError."""
    from tstorm.command_support import passing_places

    with passing_places(WHY_PLACE, source, found.name) as places:
        yield run(found.plan, options, places)
