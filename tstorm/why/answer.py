"""When the failure of a recorded run was decided: everything that `tstorm why` finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from runtime.errors import RunError
from runtime.options import decode
from runtime.page import page_data, page_file
from runtime.results import failed
from runtime.results.parting import part
from runtime.rundir import eventlog, rundir
from runtime.rundir.runfiles import PACKETS
from runtime.schedule import Schedule
from tstorm.command_support import check_repeats
from tstorm.shrink import failures
from tstorm.shrink.trials import InterruptedTrialError
from tstorm.why import branches, decision, drawn_events, happenings
from tstorm.why.branches import BranchRunner
from tstorm.why.decision_search import Estimate, Search

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.options import RunOptions
    from runtime.rundir.rundir import RunDirectory
    from tstorm.shrink.failures import Failure
    from tstorm.why.decision import Decision
    from tstorm.why.happenings import Happening

EVEN = 1000  # moments beside those at which something is known to have happened


def page(found: Decision) -> str:
    """The page of its run, with the probability below the timeline. RunError."""
    run = rundir.recorded(found.run)
    data = page_data.gather(run, run.manifest(), run.summary())
    return page_file.page({**data, "decision": found.to_json()})


def answered(path: str, most: int, many: int | None, tell: Callable[[Estimate], None]) -> Decision:
    """Of the run at `path`, by `most` branches, `many` at a time. RunError."""
    run = rundir.recorded(path)
    manifest, plan = run.manifest(), rundir.plan_in(run)
    options = decode(manifest["options"], "options")
    wanted = _wanted(path, run, options, plan)
    schedule = Schedule(plan, options)
    failed_ns = _failed_ns(run, wanted, schedule)
    runner = BranchRunner(path, options, str(manifest["plan_digest"]), wanted, many)
    happened, knows_packets = _happened(path, run, options)
    first_ns = max(options.start_at_ns, 1)
    even = range(first_ns, failed_ns, max((failed_ns - first_ns) // EVEN, 1))
    moments = {first_ns, *even, *(one.at_ns for one in happened)}
    within = sorted(one for one in moments if first_ns <= one < failed_ns) or [first_ns]

    search = Search(within, runner.branches, most, tell)
    stopped = False
    try:
        search.carry_out()
    except InterruptedTrialError:
        stopped = True
    events = drawn_events.planned(plan.events)
    drawn = {
        jump.before.at_ns: drawn_events.decided_in(jump, failed_ns, events, runner.planned)
        for jump in search.jumps()
    }
    return decision.Decision(
        path, sorted(wanted), failed_ns, search, happened, stopped, drawn, knows_packets
    )


def _wanted(
    path: str, run: RunDirectory, options: RunOptions, plan: Plan
) -> Mapping[Failure, int | None]:

    if eventlog.entered(run):
        raise RunError(
            f"{path} was changed by hand while it went on, which branches would be without",
            f"write what it became as an experiment, and run that: tstorm record {path} -o F.tdl",
        )
    check_repeats(path, options, may_have_hosts=False)
    found = failures.of(run.summary(), options, plan)
    if not found:
        raise RunError(
            f"nothing failed in {path}: no expectation, and no program of which it is known what "
            "is right",
            "give a run that failed (exit code 5)",
        )
    return found


def _failed_ns(run: RunDirectory, wanted: Mapping[Failure, int | None], schedule: Schedule) -> int:
    """When the first of them had happened: a program when it ended, else when it was judged."""
    names = {one.name for one in wanted if one.what == "program" and not one.by_end}
    ends = failed.ends(run.summary()) or ()
    moments = [schedule.clock.plan_time(at_ns) for name, at_ns in ends if name in names]
    moments += [at_ns for at_ns in wanted.values() if at_ns is not None]
    return min(moments, default=schedule.end_ns)


def _happened(path: str, run: RunDirectory, options: RunOptions) -> tuple[list[Happening], bool]:
    """In the run, and whether packets are among it. One that has not kept its packets is carried
    out again with them. To record them may take a look at the clock, after which orders and stops
    are drawn otherwise: then nobody knows them. RunError."""
    plan = rundir.plan_in(run)
    if run.has(PACKETS):
        return happenings.of(run, plan, Schedule(plan, options)), True
    found, other = branches.again(path), ""
    for kept in (True, False):
        with branches.carried_out(path, found, replace(options, packets=kept)) as result:
            again = rundir.recorded(result.directory)
            parts = part(run, again).earliest
            if parts is None:
                schedule = Schedule(rundir.plan_in(again), options)
                return happenings.of(again, plan, schedule, packets=kept), kept
            other = parts.subject
    raise RunError(
        f"{path} is another run when it is carried out again: {other} differs",
        "programs, files or this version are others than they were then",
    )
