"""`tstorm hunt EXP.tdl`: storms within the bounds of an experiment, and what they find."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import INTERRUPTED, PROGRAMS_FAILED, CommandError
from tstorm.options import option_types
from tstorm.options.cluster import only_in_cluster
from tstorm.options.run_options import running
from tstorm.options.shared import params, seed

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from runtime.options import RunOptions
    from tstorm.hunt.hunt_directory import HuntDirectory, HuntRecord
    from tstorm.hunt.hunt_results import FindResult, StormResult
    from tstorm.hunt.storm_runs import HuntRequest


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line says of the hunt itself."""

    budget_ns: int | None
    storms: int | None
    many: int | None
    repeat: int
    attempts: int
    branches: int
    beside: str | None
    quiet: bool
    form: str


@click.command()
@click.argument("source", metavar="EXP.tdl", type=option_types.INPUT)
@seed
@params
@click.option(
    "--budget",
    "budget_ns",
    metavar="T",
    type=option_types.DURATION,
    help="Begin no storm after so much time.  [default: no limit; Ctrl-C ends it, too]",
)
@click.option(
    "--storms",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    help="Draw N storms at most, those of before included.  [default: no limit]",
)
@click.option(
    "--jobs",
    "many",
    metavar="N",
    type=option_types.WholeNumber(min=1, max=8),
    help="Carry out N runs at a time, 8 at most.  [default: one for each processor]",
)
@click.option(
    "--repeat",
    metavar="K",
    type=option_types.WholeNumber(min=1, max=100),
    default=3,
    show_default=True,
    help="When a find is shrunk, a text fails if one of K runs does, each with another seed.",
)
@click.option(
    "--attempts",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    default=60,
    show_default=True,
    help="Try at most N texts for a find.",
)
@click.option(
    "--branches",
    metavar="N",
    type=option_types.WholeNumber(min=0),
    default=40,
    show_default=True,
    help="Explain each find by N branches at most, as 'tstorm why' does; 0: do not.",
)
@click.option(
    "--beside",
    metavar="DIR",
    type=option_types.DIRECTORY,
    help="Say what is new and gone beside the hunt in DIR.",
)
@running
def command(
    source: str,
    seed: int | None,
    params: dict[str, str],
    budget_ns: int | None,
    storms: int | None,
    many: int | None,
    repeat: int,
    attempts: int,
    branches: int,
    beside: str | None,
    asked: dict[str, Any],
    cluster: dict[str, Any],
    out: str | None,
    quiet: bool,
    form: str,
) -> None:
    """Look for a storm with which an experiment fails.

    EXP.tdl bounds storms by its 'hunt': which faults may happen to whom, how long, how many.
    Storms are drawn within these bounds and carried out in virtual time, each with a seed of its
    own; the experiment's expectations, and what its services expect of their programs, say which
    fail.

    Each failure is shrunk to the faults that it takes, run once more, explained where that can be
    done, and kept in a folder with its text, run, page and command. Failures that come to the same
    are one find. Ctrl-C, kill -9 or a full disk end the hunt at any time: the same command with the
    same --out goes on with it. The result ends with 5 if there is a find.

    \b
    Examples:
      tstorm hunt register.tdl --budget 30m --out hunts/register
      tstorm hunt register.tdl --storms 200 --jobs 2 --out hunts/new --beside hunts/register
      tstorm hunt register.tdl --budget 2h --scatter 100us --seed 7
    """
    from tstorm.command_support import errors_shown

    only_in_cluster(cluster)
    wanted = _Asked(budget_ns, storms, many, repeat, attempts, branches, beside, quiet, form)
    with errors_shown():
        request, record = _requested(source, seed, params, asked, wanted)
        if beside is not None:
            _earlier(beside)  # before hours go into what it is to stand beside
        place = Path(out) if out else _new_place(record.experiment)
        summary, interrupted = _hunted(request, record, wanted, place)
    _show(place, summary, form)
    if interrupted:
        raise CommandError(code=INTERRUPTED)
    if summary["finds"]:
        raise CommandError(code=PROGRAMS_FAILED)


def _requested(
    source: str, seed: int | None, params: dict[str, str], asked: dict[str, Any], wanted: _Asked
) -> tuple[HuntRequest, HuntRecord]:
    """CommandError where the experiment does not compile, or has no hunt."""
    from runtime.options import VIRTUAL
    from tstorm.campaign.campaign_record import source_digest
    from tstorm.command_support import options_of
    from tstorm.hunt import hunt_directory
    from tstorm.hunt.hunt_directory import HuntRecord
    from tstorm.hunt.storm_runs import HuntRequest
    from tstorm.hunt.storms import without_hunt
    from tstorm.loading import STDIN, compile_text, is_run, read_source, sources_beside

    if source == STDIN or is_run(source):
        raise click.UsageError("hunt draws from the text of an experiment: name its file.")
    if asked.get("time", VIRTUAL) != VIRTUAL or asked.get("cpu_ppb"):
        message = "storms run in virtual time in which computing takes none: what they find is "
        raise click.UsageError(f"{message}to come again.")
    if asked.get("reseeds"):
        raise click.UsageError("--reseed is for one run: each storm has a seed of its own.")
    raw = read_source(source)
    compiled = compile_text(raw, source, None, params=params)
    space = compiled.hunt
    if space is None:
        raise CommandError(
            f"error: {source} does not say what to draw: it has no hunt\n"
            "hint: hunt { partition any 1; crash SERVICE.*; latency 0..200ms }"
        )
    options = _options(options_of({**asked, "time": VIRTUAL}), compiled, asked)
    base = without_hunt(raw.decode("utf-8"))
    plan = compiled.plan
    name = Path(source).stem
    request = HuntRequest(
        source, base, sources_beside(source), params, options, name, space, plan.end_ns,
        wanted.repeat, wanted.attempts,
    )  # fmt: skip
    record = HuntRecord(
        hunt_directory.FORMAT, hunt_directory.VERSION, name, source, source_digest(plan),
        0 if seed is None else seed, wanted.repeat, wanted.attempts, params,
        options.to_record(),
    )  # fmt: skip
    return request, record


def _options(options: RunOptions, compiled: Compilation, asked: Mapping[str, Any]) -> RunOptions:
    """No pages; packets, which say what was reached; probes only where they are judged."""
    from compiler.plan.parts.expectations import OF_PAIRS, VALID

    plan = compiled.plan
    judged = any(one.kind in (*OF_PAIRS, VALID) for one in plan.expectations)
    probes = asked.get("probes", judged or bool(options.require))
    packets = asked.get("packets", True)
    return replace(options, page=False, probes=probes, packets=packets)


def _new_place(name: str) -> Path:
    from tstorm.campaign import campaign_directory

    return campaign_directory.new_place(f"{name}-hunt")


def _earlier(path: str) -> tuple[Mapping[int, StormResult], Mapping[int, FindResult]]:
    from tstorm.hunt import hunt_directory

    _, storms, finds = hunt_directory.load(path)
    return storms, finds


def _hunted(
    request: HuntRequest, record: HuntRecord, wanted: _Asked, place: Path
) -> tuple[dict[str, Any], bool]:
    """The summary, and whether somebody stopped it. RunError."""
    from runtime.launch import cleanup
    from tstorm.campaign import jobs
    from tstorm.hunt import hunt_directory, hunt_page, hunt_summary

    with hunt_directory.opened(place, record) as hunt:
        cleanup.sweep()  # nothing of a storm that was killed goes on
        if hunt.storms:
            _note(f"{len(hunt.storms)} storms are known already", wanted)
        shares = jobs.shares(wanted.many, 8, virtual=True)
        interrupted = _carry_out(request, record, wanted, hunt, shares)
        if not interrupted and wanted.branches:
            interrupted = _explained(hunt, wanted)
        earlier = None if wanted.beside is None else _earlier(wanted.beside)
        summary = hunt_summary.gathered(hunt.path, record, hunt.storms, hunt.finds, earlier)
        hunt.write_summary(summary, hunt_page.render(summary, hunt.storms))
    return summary, interrupted


def _carry_out(
    request: HuntRequest,
    record: HuntRecord,
    wanted: _Asked,
    hunt: HuntDirectory,
    shares: list[list[int]],
) -> bool:
    from runtime.errors import RunError
    from tstorm.hunt import hunt_summary
    from tstorm.hunt.hunting import Hunting
    from tstorm.hunt.storms import NoStormError, drawn

    hunting = Hunting(
        hunt,
        lambda number: drawn(request.space, record.seed, number, request.refused),
        _Worker(request),
        _bounds(wanted),
        lambda one: _note(hunt_summary.row(one), wanted),
    )
    try:
        hunting.carry_out(shares)
    except NoStormError as error:
        raise RunError(
            f"hardly any storm within these bounds is an experiment; the last one: {error}",
            "make the bounds wider, or what the text itself does at these times less",
        ) from error
    return hunting.interrupted


@dataclass(frozen=True, slots=True)
class _Worker:
    request: HuntRequest

    def storm(self, storm: Any) -> StormResult | None:
        from tstorm.hunt import storm_runs

        return storm_runs.carried_out(self.request, storm)

    def find(self, found: StormResult, draft: Path) -> FindResult | None:
        from tstorm.hunt import storm_finds

        return storm_finds.made(self.request, found, draft)


def _bounds(wanted: _Asked) -> Callable[[int], bool]:
    until = None if wanted.budget_ns is None else time.monotonic() + wanted.budget_ns / 1e9

    def is_over(number: int) -> bool:
        late = until is not None and time.monotonic() >= until
        return late or (wanted.storms is not None and number >= wanted.storms)

    return is_over


def _explained(hunt: HuntDirectory, wanted: _Asked) -> bool:
    """Finds of which nobody has said when they were decided. Whether somebody stopped it."""
    from tstorm.hunt import storm_finds

    for one in sorted(hunt.finds.values(), key=lambda one: one.find):
        if one.is_first and not storm_finds.is_explained(hunt.folder(one.find)):
            _note(f"find {one.find}: when was it decided?", wanted)
            if storm_finds.explain(hunt.folder(one.find), wanted.branches, wanted.many):
                return True
    return False


def _show(place: Path, summary: Mapping[str, Any], form: str) -> None:
    from tstorm.hunt import hunt_summary

    with output.product_kept_going():
        if form == "json":
            output.emit_json(summary)
        else:
            for line in hunt_summary.text(summary):
                output.line(line)
            output.line("")
            output.path(place)


def _note(text: str, wanted: _Asked) -> None:
    if text and not wanted.quiet:
        with output.kept_going(sys.stderr):
            output.note(text)
