"""`tstorm compare RUN… | CAMPAIGN…`: what differs, how far, and how sure that is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import FAILED, CommandError
from tstorm.options import option_types

if TYPE_CHECKING:
    from runtime.results.filetree import RunDifference


@click.command()
@click.argument("paths", metavar="RUN|CAMPAIGN...", nargs=-1, required=True)
@click.option(
    "--by",
    metavar="NAME",
    help="Compare the values of this parameter in one campaign: the first with each other one.",
)
@click.option("--check", is_flag=True, help="End with 1 if something differs significantly.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "html"]),
    default="table",
    show_default=True,
    help="How to print; html is a page of its own with pictures of the intervals.",
)
@click.option(
    "--limit",
    "most",
    metavar="N",
    type=option_types.WholeNumber(min=0),
    default=40,
    show_default=True,
    help="Show at most N figures for each two sides, those that differ first; 0 shows all.",
)
@click.option(
    "--first",
    "where_they_part",
    is_flag=True,
    help="Tell the first event, packet or line of a log at which two runs in virtual time part.",
)
def command(
    paths: tuple[str, ...],
    by: str | None,
    check: bool,
    form: str,
    most: int,
    where_they_part: bool,
) -> None:
    """Compare runs or campaigns: the first one given with each of the others.

    Compared are, for each two instances, round-trip time (median and p99), loss and throughput;
    what expectations measured; the figures that programs gave (`figure` statements); and how often
    expectations and programs failed and verdicts were not VALID. Of campaigns (tstorm run --seeds)
    these are the medians over their runs, with 95 % confidence intervals, and it is said which
    differences are more than chance. Two single runs are compared by their probes, which says
    nothing about other seeds.

    \b
    Examples:
      tstorm compare runs/v1 runs/v2
      tstorm compare campaigns/v1 campaigns/v2 --check
      tstorm compare campaigns/grid --by rtt
      tstorm compare runs/seed7 runs/seed8 --first
      tstorm compare campaigns/v1 campaigns/v2 --format html > compared.html
    """
    from tstorm.command_support import errors_shown
    from tstorm.comparing import comparison_page, comparison_text

    if where_they_part:
        if len(paths) != 2 or by is not None or form == "html":
            raise click.UsageError("--first is for two runs, as a table or json, without --by.")
        parted = _tell_parting(paths[0], paths[1], form)
        if check and parted:
            raise CommandError(code=FAILED)
        return
    if by is not None and len(paths) != 1:
        raise click.UsageError("--by is for the values of a parameter in one campaign: name one.")
    if by is None and len(paths) < 2:
        raise click.UsageError("name two runs or two campaigns, or more.")
    with errors_shown():
        found = comparison_text.compare(paths, by)
    with output.kept_going(sys.stderr):
        for one in found.doubts:
            output.note(f"warning: {one}")
        for one in found.notes:
            output.note(f"note: {one}")
    if form == "json":
        output.emit_json(comparison_text.to_json(found))
    elif form == "html":
        click.echo(comparison_page.render(found), nl=False)
    else:
        comparison_text.table(found, most)
    if check and found.differing:
        raise CommandError(code=FAILED)


def _tell_difference(which: str, one: RunDifference, first: str, second: str) -> None:
    at = "at the latest at" if one.what == "log" else "at"
    output.line(f"{which}: {one.what} {one.subject} {at} {(one.at_ns or 0) / 1e9:.9f} s")
    output.line(f"  {first}: {output.visible(one.first) or 'nothing'}")
    output.line(f"  {second}: {output.visible(one.second) or 'nothing'}")


def _tell_parting(first: str, second: str, form: str) -> bool:
    """Whether a difference was found."""
    from runtime.errors import RunError
    from runtime.options import VIRTUAL, decode
    from runtime.results.parting import part
    from runtime.rundir import rundir
    from tstorm.command_support import errors_shown

    with errors_shown():
        runs = [rundir.recorded(path) for path in (first, second)]
        for path, run in zip((first, second), runs, strict=True):
            if decode(run.manifest()["options"], "options").time != VIRTUAL:
                raise RunError(
                    f"{path} is a run in real time, in which no two runs have the same moments",
                    "run it with --time virtual, or compare the runs without --first",
                )
        found = part(*runs)
    one = found.earliest
    if form == "json":
        said = None
        if one is not None:
            said = {"what": one.what, "subject": one.subject, "at_ns": one.at_ns}
            said |= {"first": one.first, "second": one.second}
        maybe = [line.to_record() for line in found.maybe_earlier]
        record = {"is_first": found.is_first, "difference": said, "maybe_earlier": maybe}
        output.emit_json(record | {"not_compared": list(found.not_compared)})
        return one is not None
    if one is None:
        output.line("What was compared is the same in both runs.")
    else:
        which = "first" if found.is_first else "first among what was compared"
        _tell_difference(which, one, first, second)
    for one in found.maybe_earlier:
        _tell_difference("perhaps earlier", one, first, second)
    for words in found.not_compared:
        output.line(f"not compared: {words}")
    return one is not None
