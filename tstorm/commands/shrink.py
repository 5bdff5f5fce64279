"""`tstorm shrink RUN|EXP.tdl`: the shortest experiment found that still fails as it does."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import FAILED, INTERRUPTED, CommandError
from tstorm.options import option_types
from tstorm.options.cluster import only_in_cluster
from tstorm.options.run_options import running
from tstorm.options.shared import params, seed

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.options import RunOptions
    from tstorm.loading import PlanToRun
    from tstorm.shrink.failures import Failure
    from tstorm.shrink.search import Shrunk
    from tstorm.shrink.text_meaning import TextMeaning
    from tstorm.shrink.trials import TrialRunner, Trials

MOST_REPEATS = 100
_REPEAT = re.compile(r"(?:([1-9][0-9]{0,2})/)?([1-9][0-9]{0,2})")


class RepeatType(click.ParamType[tuple[int, int]]):
    """`K` or `M/K`: so many of so many runs must fail."""

    name = "number of runs"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = _REPEAT.fullmatch(value)
        if found is None:
            self.fail(f"{value!r:.60} is neither K nor M/K, such as 3 or 2/5", param, ctx)
        whole = int(found[2])
        needed = int(found[1] or whole)
        if needed > whole or whole > MOST_REPEATS:
            words = f"{value}: M is at most K, and K at most {MOST_REPEATS}"
            self.fail(words, param, ctx)
        return needed, whole


@click.command()
@click.argument("source", metavar="RUN|EXP.tdl", type=option_types.INPUT)
@seed
@params
@click.option(
    "-o", "--output", "target", metavar="FILE", help="Write the text there.  [default: stdout]"
)
@click.option(
    "--attempts",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    default=100,
    show_default=True,
    help="Try at most N texts.",
)
@click.option(
    "--budget",
    "budget_ns",
    metavar="T",
    type=option_types.DURATION,
    help="Begin no run after so much time.  [default: no limit]",
)
@click.option(
    "--repeat",
    metavar="K|M/K",
    type=RepeatType(),
    default="1",
    show_default=True,
    help="Run a text up to K times; it fails if M of them do (K: all).",
)
@running
def command(
    source: str,
    seed: int | None,
    params: dict[str, str],
    target: str | None,
    attempts: int,
    budget_ns: int | None,
    repeat: tuple[int, int],
    asked: dict[str, Any],
    cluster: dict[str, Any],
    out: str | None,
    quiet: bool,
    form: str,
) -> None:
    """Find the shortest timeline with which an experiment still fails.

    Statements of the timeline are taken out of the text as long as one of the expectations (or
    programs) that failed in RUN still fails; then the end is moved forward; then what is left of
    the statements is made smaller: fewer rounds of a loop, fewer targets, single occurrences,
    shorter intervals. Each attempt is a run, with the seed and the options of RUN where the command
    line does not say otherwise. In real time failures may come and go: --repeat 2/3 takes a text to
    fail if two of three runs do. In virtual time one run is enough.

    The text goes to standard output or FILE; it is always one that has failed here. With Ctrl-C,
    and when attempts or time are used up, it is the shortest so far. --out DIR keeps all runs.
    Programs and files with relative names are looked for beside FILE, so write it beside the text.

    \b
    Examples:
      tstorm shrink runs/bank/seed-7 -o smaller.tdl
      tstorm shrink bank.tdl --seed 7 --time virtual --attempts 40
      tstorm shrink runs/bank/seed-7 --repeat 2/3 --budget 30m
    """
    from tstorm.command_support import errors_shown, options_of, recorded_run
    from tstorm.loading import plan_to_run

    only_in_cluster(cluster)
    _check_place(target)
    with errors_shown():
        recorded = recorded_run(source)
        options = options_of(asked, recorded)
        if not options.on_this_machine:
            raise click.UsageError("shrink runs on this machine: add --backend local.")
        found = plan_to_run(source, seed, params=params, reseeds=asked.get("reseeds"))
        bounds = (attempts, budget_ns, *repeat)
        runner = _runner(source, found, options, out)
        shrunk, trials, wanted = _shrink(source, found, runner, recorded, bounds, quiet)
    again = _said(found, options, target)
    _tell(shrunk, trials, runner.reading, wanted, target, again, form)
    if shrunk.stopped == "interrupted":
        raise CommandError(code=INTERRUPTED)
    with errors_shown():
        if shrunk.error is not None:
            raise shrunk.error
    if not shrunk.confirmed:
        raise CommandError(code=FAILED)


def _shrink(
    source: str,
    found: PlanToRun,
    runner: TrialRunner,
    recorded: Mapping[str, Any] | None,
    bounds: tuple[int, int | None, int, int],
    quiet: bool,
) -> tuple[Shrunk, Trials, Mapping[Failure, int | None]]:
    from tstorm.shrink import script, search, shrink_messages
    from tstorm.shrink.trials import Attempt, Bounds, Trials

    def tell(attempt: Attempt) -> None:
        if not quiet:
            _note(shrink_messages.attempt(attempt))

    attempts, budget_ns, needed, whole = bounds
    begun = time.monotonic()
    until = None if budget_ns is None else begun + budget_ns / 1e9
    reading = runner.reading
    text = script.read(found.plan.source, reading.sources, reading.params)
    wanted = _wanted(source, runner, found.plan, recorded)
    for one in sorted(wanted):
        _note(f"failed: {one.words}")
    limits = Bounds(attempts, needed, whole, until)
    trials = Trials(runner, wanted, limits, time.monotonic, tell)
    decided = [at_ns for one, at_ns in wanted.items() if at_ns is not None and not one.by_end]
    shrunk = search.search(text, trials, reading, max(decided, default=None))
    return shrunk, trials, wanted


def _runner(source: str, found: PlanToRun, options: RunOptions, out: str | None) -> TrialRunner:
    from compiler.sources import RecordedFiles
    from tstorm.loading import recorded_plan, sources_beside
    from tstorm.shrink.text_meaning import TextMeaning
    from tstorm.shrink.trials import TrialRunner

    kept = Path(out) if out else None
    if kept is not None and os.path.lexists(kept):
        raise CommandError(f"error: --out {out}: it is there already; name a new directory")
    fresh = recorded_plan(source) is None
    sources = sources_beside(source) if fresh else RecordedFiles(found.plan)
    reading = TextMeaning(sources, found.plan.params, found.plan.seed)
    name = f"{found.name}-shrink"
    return TrialRunner(source, reading, options, name, found.plan.end_ns, kept)


def _wanted(
    source: str, runner: TrialRunner, plan: Plan, recorded: Mapping[str, Any] | None
) -> Mapping[Failure, int | None]:
    """What must go on failing: what failed in the run, or does in a first one of the text."""
    from runtime.rundir import rundir
    from tstorm.shrink import failures
    from tstorm.shrink.trials import InterruptedTrialError

    if recorded is not None:
        summary = rundir.recorded(source).summary()
        found: Mapping[Failure, int | None]
        found = failures.of(summary, runner.options, plan)
    else:
        try:
            found = runner(plan.source.decode("utf-8")) or {}
        except InterruptedTrialError:
            raise CommandError(code=INTERRUPTED) from None
    if not found:
        raise CommandError(
            f"error: nothing failed in {source}: no expectation, and no program of which it is"
            " known what is right\nhint: give a run that failed (exit code 5), or another --seed"
        )
    return found


def _said(found: PlanToRun, options: RunOptions, target: str | None) -> str:
    from tstorm.shrink import shrink_messages

    return shrink_messages.command(target or "FILE", found.plan.seed, found.plan.params, options)


def _tell(
    shrunk: Shrunk,
    trials: Trials,
    reading: TextMeaning,
    wanted: Mapping[Failure, int | None],
    target: str | None,
    again: str,
    form: str,
) -> None:
    from tstorm.shrink import shrink_messages

    for line in shrink_messages.closing(shrunk, trials, reading):
        _note(line)
    if shrunk.confirmed:
        if target is not None:
            _write(target, shrunk.text)
        _note(f"again: {again}")
    with output.product_kept_going():
        if form == "json":
            output.emit_json(shrink_messages.to_json(shrunk, trials, reading, wanted, again))
        elif shrunk.confirmed and target is None:
            click.echo(shrunk.text.encode("utf-8"), nl=False)


def _check_place(target: str | None) -> None:
    """Before hours go into what cannot be written there."""
    if target is None:
        return
    path = Path(os.path.realpath(target))
    if path.is_dir():
        raise CommandError(f"error: {target} is a directory; name a file")
    if not path.parent.is_dir():
        raise CommandError(f"error: writing {target}: there is no directory {path.parent}")


def _write(target: str, text: str) -> None:
    """Whole or not at all."""
    from runtime.rundir.held_directory import HeldDirectory

    path = Path(os.path.realpath(target))
    try:
        HeldDirectory.hold(path.parent).write(path.name, text.encode("utf-8"))
    except OSError as error:
        click.echo(text.encode("utf-8"), nl=False)  # hours may have gone into it
        raise CommandError(f"error: writing {target}: {error.strerror}") from error


def _note(text: str) -> None:
    with output.kept_going(sys.stderr):
        output.note(text)
