"""`tstorm replay RUN|PLAN|EXP.tdl`: run a recorded experiment again, and compare."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tstorm import output, parameters
from tstorm.exits import FAILED, OK, TOO_LATE, CommandError

if TYPE_CHECKING:
    from runtime.results.compare import EventDifference


SHOWN_NAMES = 20


def _record(difference: EventDifference) -> dict[str, Any]:
    return {
        "what": difference.what,
        "seq": difference.seq,
        "recorded": difference.first,
        "replayed": difference.second,
    }


def _tell(differences: list[EventDifference], form: str) -> bool:
    """Prints differences; returns whether the check holds: the events (which the plan decides) are
    the same, and every program that was to start did so in both runs.

    Programs that ended by themselves in only one of the runs are told, but decide nothing: the
    plan fixes what is done to programs, not what they make of it.
    """
    events = [difference for difference in differences if difference.what == "event"]
    starts = [difference for difference in differences if difference.what == "start"]
    if form == "text":
        with output.product_kept_going():
            _list(differences)
    with output.kept_going(sys.stderr):
        _sum_up(events, starts)
    return not events and not starts


def _list(differences: list[EventDifference]) -> None:
    for difference in differences:
        before = difference.first or "nothing"
        after = difference.second or "nothing"
        place = f"event {difference.seq}" if difference.what == "event" else "program"
        output.line(f"{place}: recorded: {before}; replayed: {after}")


def _sum_up(events: list[EventDifference], starts: list[EventDifference]) -> None:
    if not events and not starts:
        output.note("check: the same events, on the same targets, in the same order")
    if events:
        output.note(f"check: {len(events)} events differ")
    if starts:
        names = [difference.target for difference in starts]
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        output.note(
            f"check: programs that could not start in one of the runs or in both prove nothing:"
            f" {', '.join(names[:SHOWN_NAMES])}{more}"
        )


@click.command()
@click.argument("source", metavar="RUN|PLAN|EXP.tdl", type=parameters.INPUT)
@parameters.seed
@click.option(
    "--check", is_flag=True, help="Compare with the recorded run; end with 1 if it differs."
)
@parameters.running
def command(
    source: str,
    seed: int | None,
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

    Relative paths of programs mean the same as in the recorded run. --hosts 0 replays a run over
    hosts on one engine that models every link; --backend replays it in a cluster, or here.

    \b
    Examples:
      tstorm replay runs/quickstart-20260301T120000Z --check
      tstorm replay runs/quickstart-20260301T120000Z --seed 8
      tstorm replay quickstart.plan --quiet
      tstorm replay runs/quickstart-20260301T120000Z --backend k8s --check
    """
    from runtime.options import COMPLETED, K8S
    from tstorm.loading import plan_to_run, show_rejoins
    from tstorm.outcome import report
    from tstorm.running import carry_out, errors_shown, options_of, places_of, recorded_run

    with errors_shown():
        from runtime.results import compare

        recorded = recorded_run(source)
        if check and recorded is None:
            raise click.UsageError(f"--check needs a run to compare with, and {source} is none")
        before = compare.load(source) if check else None  # so that a damaged one is told now
        options = options_of(asked, recorded)
        found = plan_to_run(source, seed)
        if options.backend == K8S:
            show_rejoins(found.plan, source, refuse=True)
        places = places_of(source, out, recorded["experiment"] if recorded else found.name)
        result = carry_out(found, options, places, cluster, quiet=quiet)
        differences: list[EventDifference] = []
        if before is not None and result.outcome == COMPLETED:
            differences = compare.differ(before, compare.load(result.directory))
    more = {"differences": [_record(one) for one in differences]} if check else {}
    report(result, form, **more)
    holds = not check or result.outcome != COMPLETED or _tell(differences, form)
    if not holds and result.exit_code != TOO_LATE:  # then the comparison is not to be trusted
        raise CommandError(code=FAILED)
    if result.exit_code != OK:
        raise CommandError(code=result.exit_code)
