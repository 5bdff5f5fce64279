"""`tstorm replay RUN|PLAN|EXP.tdl`: run a recorded experiment again, and compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tstorm.exit_codes import (
    FAILED,
    OK,
    TOO_LATE,
    CommandError,
)
from tstorm.options import option_types
from tstorm.options.run_options import running
from tstorm.options.shared import params, seed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from compiler.plan.reader import Plan
    from runtime.options import RunOptions
    from tstorm.text.checktext import ReplayComparison

    Compare = Callable[[Path], ReplayComparison]


def _compared(source: str, recorded: Mapping[str, Any], plan: Plan, options: RunOptions) -> Compare:
    """How the run that comes is compared with the one at `source`; that one is read now, so that a
    damaged one is told before anything runs."""
    from runtime.options import VIRTUAL, decode
    from runtime.results import event_comparison, everything
    from runtime.rundir import rundir
    from tstorm.text.checktext import COMPUTING_DIFFERS, ReplayComparison

    before = event_comparison.load(source)
    both = options, decode(recorded["options"], "options")
    virtual = all(one.time == VIRTUAL for one in both)
    charged = virtual and any(one.cpu_ppb for one in both)
    first_plan = _planned_digest(source) if _is_found_out_again(recorded, options) else ""
    if not virtual or charged or plan.digest not in (recorded["plan_digest"], first_plan):
        why = COMPUTING_DIFFERS if charged else ""
        return lambda path: ReplayComparison(
            event_comparison.differ(before, event_comparison.load(path)), why_no_more=why
        )
    first = rundir.recorded(source)
    everything.read(first)

    def whole(path: Path) -> ReplayComparison:
        events = event_comparison.differ(before, event_comparison.load(path))
        found, compared = everything.differ(first, rundir.recorded(path), plan)
        return ReplayComparison([one for one in events if one.what == "start"], found, compared)

    return whole


def _is_found_out_again(recorded: Mapping[str, Any], options: RunOptions) -> bool:
    """Whether what a `when` saw is seen again, at the same instant, and what somebody did by hand
    comes again, where both are in virtual time. Elsewhere it is done at the moments at which it
    was."""
    from runtime.options import VIRTUAL, decode

    return decode(recorded["options"], "options").time == VIRTUAL == options.time


def _planned_digest(source: str) -> str:
    from pathlib import Path

    from compiler.plan.reader import read_plan
    from runtime.rundir.runfiles import PLANNED

    path = Path(source) / PLANNED
    return read_plan(path, lazy=True).digest if path.is_dir() else ""


def _tell_what_is_missing(source: str) -> None:
    from runtime.rundir import rundir
    from runtime.rundir.eventlog import actions_beyond
    from tstorm import output

    directory = rundir.recorded(source)
    if missing := actions_beyond(directory, rundir.plan_in(directory)):
        which = ", ".join(map(str, missing[:5])) + (" …" if len(missing) > 5 else "")
        output.note(
            f"warning: {source} was killed before its plan had all that it did: actions {which} of"
            " its events.jsonl are not done again"
        )


@click.command()
@click.argument("source", metavar="RUN|PLAN|EXP.tdl", type=option_types.INPUT)
@seed
@params
@click.option(
    "--check", is_flag=True, help="Compare with the recorded run; end with 1 if it differs."
)
@running
def command(
    source: str,
    seed: int | None,
    params: dict[str, str],
    check: bool,
    asked: dict[str, Any],
    cluster: dict[str, Any],
    out: str | None,
    quiet: bool,
    form: str,
) -> None:
    """Run a recorded experiment again.

    RUN is a run directory. Without --seed the same plan is carried out; with --seed the
    recorded source is compiled with that seed. A run is replayed with the options it had (--until,
    --start-at, --pace, --backend, --nodes, --hosts, --datapath, …), where the command line does not
    say otherwise.

    --check compares the new run's events with the recorded ones: same kinds, targets, arguments and
    planned times, in the same order. It prints the differences and ends with 1. So it
    does when a program could not start in one of the runs, or in both. Programs that ended by
    themselves in one of the runs only are printed too, but do not fail the check.

    What a `when` has done is done again at the same moments. In virtual time it is looked for
    again, and happens at the same instants; what `tstorm do` has done comes again at the moments at
    which it came.

    In virtual time (--time virtual, in both runs) --check compares everything: events with their
    times, counters, the digest of every link's packets, logs, files and exit statuses. Each
    difference is printed with its first moment, the link or the instance. Where computing takes
    time (--cpu model=FACTOR, in one of them) no two runs are the same, and events alone are
    compared.

    Relative paths of programs mean the same as in the recorded run. --hosts 0 replays a run over
    hosts on one engine that models every link; --backend replays it in a cluster, or here.

    \b
    Examples:
      tstorm replay runs/quickstart-20260301T120000Z --check
      tstorm replay runs/quickstart-20260301T120000Z --seed 8
      tstorm replay quickstart.plan --quiet
      tstorm replay runs/quickstart-20260301T120000Z --backend k8s --check
    """
    from runtime.options import COMPLETED
    from tstorm import output
    from tstorm.command_support import (
        carry_out,
        errors_shown,
        options_of,
        places_of,
        recorded_run,
    )
    from tstorm.live import steer
    from tstorm.live.publishing import left_out
    from tstorm.loading import plan_to_run, show_in_cluster
    from tstorm.text.checktext import ReplayComparison
    from tstorm.text.ending_text import report

    with errors_shown():
        recorded = recorded_run(source)
        if check and recorded is None:
            raise click.UsageError(f"--check needs a run to compare with, and {source} is none")
        options = options_of(asked, recorded)
        again = recorded is not None and _is_found_out_again(recorded, options)
        reseeds = asked.get("reseeds")
        found = plan_to_run(source, seed, params=params, again=again, reseeds=reseeds)
        compare = _compared(source, recorded, found.plan, options) if check and recorded else None
        if not options.on_this_machine:
            show_in_cluster(found.plan, source, refuse=True)
        if recorded:
            _tell_what_is_missing(source)
        if note := left_out(found.plan.topology, "in a replay"):
            output.note(note)
        places = places_of(source, out, recorded["experiment"] if recorded else found.name)
        by_hand = steer.repetition(steer.entered(source)) if again else None
        result = carry_out(found, options, places, cluster, quiet=quiet, again=by_hand)
        checked = compare(result.directory) if compare and result.outcome == COMPLETED else None
    more = (checked or ReplayComparison()).records() if check else {}
    report(result, form, quiet=quiet, **more)
    if checked is not None:
        checked.tell(form)
    if checked is not None and not checked.holds and result.exit_code != TOO_LATE:
        raise CommandError(code=FAILED)  # one that is too late says nothing
    if result.exit_code != OK:
        raise CommandError(code=result.exit_code)
