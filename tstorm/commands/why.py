"""`tstorm why RUN`: when a failure was decided, and what happened then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import INTERRUPTED, CommandError
from tstorm.options import option_types

EVEN = 1000  # moments beside those at which something is known to have happened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.plan.reader import Plan
    from runtime.options import RunOptions
    from runtime.rundir.rundir import RunDirectory
    from runtime.schedule import Schedule
    from tdl.diagnostics import Diagnostic
    from tstorm.shrink.failures import Failure
    from tstorm.why.decision import Decision
    from tstorm.why.decision_search import Estimate
    from tstorm.why.happenings import Happening


@click.command()
@click.argument("run", metavar="RUN", type=option_types.TextType())
@click.option(
    "--branches",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    default=100,
    show_default=True,
    help="Judge by N runs at most.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    help="Carry out N of them at a time.  [default: one for each processor]",
)
@click.option(
    "-o",
    "--output",
    "page",
    metavar="F",
    type=option_types.TextType(),
    help="Write the page of RUN there, with the probability below its timeline.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
def command(
    run: str, branches: int, jobs: int | None, page: str | None, quiet: bool, form: str
) -> None:
    """Find the moment at which the failure of the recorded run RUN was decided.

    RUN is carried out again and again in virtual time, each time the same as it was until some
    moment, and with other draws from then on (--reseed): of programs' random bytes, of losses and
    jitter, of orders (--scatter) and of drawn targets. Before the decision some of these branches
    pass; after it all of them fail. The moment is looked for by bisection, and what happened then
    is printed: events, lines of logs, packets. Earlier moments at which the failure became more
    likely are told, too.

    A moment counts as decided if eight branches in a row fail there (sixteen at the one that is
    printed): with a failure that is likely anyway this may be chance; the intervals say how well
    each probability is known. A failure that does not depend on any draw is decided by the plan:
    'tstorm shrink' is the tool for that.

    The same RUN gives the same answer each time.

    \b
    Examples:
      tstorm why runs/bank/seed-7
      tstorm why runs/bank/seed-7 -o why.html
      tstorm why runs/bank/seed-7 --branches 200 --format json
    """
    from tstorm.command_support import errors_shown

    with errors_shown():
        answer = _answered(run, branches, jobs, quiet)
        if page is not None:
            _write_page(page, answer)
    with output.product_kept_going():
        if form == "json":
            output.emit_json(answer.to_json())
        else:
            for line in answer.text():
                output.line(line)
    if answer.stopped:
        raise CommandError(code=INTERRUPTED)


def _write_page(target: str, found: Decision) -> None:
    """RunError."""
    from runtime.page import page_data, page_file
    from runtime.rundir import rundir
    from tstorm.reporting import output_files

    run = rundir.recorded(found.run)
    data = page_data.gather(run, run.manifest(), run.summary())
    text = page_file.page({**data, "decision": found.to_json()})
    output_files.put_file(target, [text.encode("utf-8")])


def _answered(path: str, most: int, many: int | None, quiet: bool) -> Decision:
    """RunError."""
    from runtime.options import decode
    from runtime.rundir import rundir
    from runtime.schedule import Schedule
    from tstorm.shrink.trials import InterruptedTrialError
    from tstorm.why import decision
    from tstorm.why.branches import BranchRunner
    from tstorm.why.decision_search import Search

    run = rundir.recorded(path)
    manifest, plan = run.manifest(), rundir.plan_in(run)
    options = decode(manifest["options"], "options")
    wanted = _wanted(path, run, options, plan)
    schedule = Schedule(plan, options)
    failed_ns = _failed_ns(run, wanted, schedule)
    runner = BranchRunner(path, options, str(manifest["plan_digest"]), wanted, many, set())
    happened = _happened(path, run, options, runner.told)
    first_ns = max(options.start_at_ns, 1)
    even = range(first_ns, failed_ns, max((failed_ns - first_ns) // EVEN, 1))
    moments = {first_ns, *even, *(one.at_ns for one in happened)}
    within = sorted(one for one in moments if first_ns <= one < failed_ns) or [first_ns]

    def tell(one: Estimate) -> None:
        if not quiet:
            output.note(decision.row(one))

    search = Search(within, runner.branches, most, tell)
    stopped = False
    try:
        search.carry_out()
    except InterruptedTrialError:
        stopped = True
    return decision.Decision(path, sorted(wanted), failed_ns, search, happened, stopped)


def _wanted(
    path: str, run: RunDirectory, options: RunOptions, plan: Plan
) -> Mapping[Failure, int | None]:
    from runtime.errors import RunError
    from runtime.rundir import eventlog
    from tstorm.command_support import check_repeats
    from tstorm.shrink import failures

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
    from runtime.results import failed

    names = {one.name for one in wanted if one.what == "program" and not one.by_end}
    ends = failed.ends(run.summary()) or ()
    moments = [schedule.clock.plan_time(at_ns) for name, at_ns in ends if name in names]
    moments += [at_ns for at_ns in wanted.values() if at_ns is not None]
    return min(moments, default=schedule.end_ns)


def _happened(
    path: str, run: RunDirectory, options: RunOptions, told: set[Diagnostic]
) -> list[Happening]:
    """In the run; one that has not kept its packets is carried out again with them. RunError."""
    from runtime.errors import RunError
    from runtime.results.parting import part
    from runtime.rundir import rundir
    from runtime.rundir.runfiles import PACKETS
    from runtime.schedule import Schedule
    from tstorm.why import branches, happenings

    if run.has(PACKETS):
        plan = rundir.plan_in(run)
        return happenings.of(run, plan, Schedule(plan, options))
    found = branches.again(path, told)
    with branches.carried_out(path, found, replace(options, packets=True)) as result:
        again = rundir.recorded(result.directory)
        parts = part(run, again).earliest
        if parts is not None:
            raise RunError(
                f"{path} is another run when it is carried out again: {parts.subject} differs",
                "programs, files or this version are others than they were then",
            )
        plan = rundir.plan_in(again)
        return happenings.of(again, plan, Schedule(plan, options))
