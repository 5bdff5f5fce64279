"""`tstorm logs RUN [INSTANCE…]`: what programs wrote and what happened, by time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.options import option_types
from tstorm.options.shared import run_argument, table_or_json

if TYPE_CHECKING:
    from runtime.results.loglines import LogRecord, Merger
    from runtime.rundir.rundir import RunDirectory

NEAR_NS = 10**9  # an interval in which a line was written that is as good as a moment
PART_SECONDS = 0.1


@click.command()
@run_argument(required=True)
@click.argument("instances", metavar="[INSTANCE...]", nargs=-1)
@click.option(
    "--around",
    metavar="T±D",
    type=option_types.AROUND,
    help="Only what may have been written or happened from T-D to T+D since time 0, such as 45s±3s "
    "(or 45s+-3s). T alone means T±1s.",
)
@click.option(
    "--follow", "-f", is_flag=True, help="Go on with what is written, until the run has ended."
)
@table_or_json
def command(
    run: str, instances: tuple[str, ...], around: tuple[int, int] | None, follow: bool, form: str
) -> None:
    """Show logs and events of RUN in one list, by time.

    RUN is a run's directory, or the name of one that goes on. INSTANCE is one such as server.0,
    or a service or machine, which means all its instances; without any, all are shown.

    Programs write their logs by themselves, so what is known of a line is an interval in which it
    was written, of mostly 0.1 s: '~45.1 s' is its beginning. '<45.1 s' is the end of one that may
    be long, '?' stands where nothing is known. Events have their moment. JSON rows are {"from_ns",
    "until_ns", "instance", "text"}, those of events have "event" instead of "text". A line is cut
    to 64 KiB, and says how many bytes follow ("cut").

    With --follow a line comes 0.1 s after it was written, so those of two programs that were
    written at the same time may come in another order than without; JSON is a row a line then.

    \b
    Examples:
      tstorm logs runs/quickstart-20260301T120000Z
      tstorm logs runs/db db.0 client --around 45s±3s
      tstorm logs runs/db --around 45s --format json | jq -r '.[].text'
      tstorm logs -f runs/db db.0
    """
    from tstorm.command_support import errors_shown

    if follow and around is not None:
        raise click.UsageError("--follow shows what is written from now on: leave out --around")
    with errors_shown():
        from runtime.launch.run_status import directory_of
        from runtime.results.loglines import Merger

        directory = directory_of(run)
        merger = Merger(directory)
        chosen = _chosen(merger, instances)
        if follow:
            _follow(directory, merger, chosen, form)
            return
        found = merger.merged(chosen, _wanted(around))
        if form == "json":
            output.emit_json_rows(map(_record, found))
        else:
            _show(found, max(map(len, chosen), default=0))


def _follow(directory: RunDirectory, merger: Merger, chosen: list[str], form: str) -> None:
    from runtime.launch.run_status import goes_on
    from runtime.results.logfollow import Follower

    follower = Follower(directory, chosen, merger.instances())
    width = max(map(len, chosen), default=0)
    over = False
    while not over:
        going_on = goes_on(directory)
        over = not going_on
        found = follower.part(last=over)
        if form == "json":
            for line in found:
                output.emit_json(_record(line))
        else:
            _show(found, width)
        sys.stdout.flush()
        time.sleep(0.0 if over else PART_SECONDS)
    if going_on is None:
        output.note(
            "whether this run of another user goes on cannot be seen here: this is all so far"
        )


def _chosen(merger: Merger, asked: Sequence[str]) -> list[str]:
    from tstorm.instance_names import stands_for

    known = merger.instances()
    if not asked:
        return known
    found = [name for name in known if any(stands_for(one, name) for one in asked)]
    missing = [one for one in asked if not any(stands_for(one, name) for name in known)]
    if missing:
        there = ", ".join(known[:20]) or "none"
        raise CommandError(f"error: no log of {missing[0]!r}\nhint: there are: {there}")
    return found


def _wanted(around: tuple[int, int] | None) -> Callable[[LogRecord], bool]:
    if around is None:
        return lambda _line: True
    at_ns, reach_ns = around
    return lambda line: line.may_be_within(at_ns - reach_ns, at_ns + reach_ns)


def _record(line: LogRecord) -> dict[str, Any]:
    what = {"text": line.text} if line.record is None else {"event": dict(line.record)}
    bounds = {"from_ns": line.from_ns, "until_ns": line.until_ns}
    cut = {"cut": line.cut} if line.cut else {}
    return {**bounds, "instance": line.instance, **what, **cut}


def _show(found: Iterable[LogRecord], width: int) -> None:
    for line in found:
        what = line.text if line.record is None else f"*** {_event(line.record)}"
        if line.cut:
            what += f"… ({line.cut:,} more bytes)"
        output.line(f"{_when(line):>14}  {line.instance:{width}}  {what}".rstrip())


def _when(line: LogRecord) -> str:
    if line.until_ns is None:
        return "?"
    text = f"{line.until_ns / 1e9:.3f} s"
    if line.from_ns == line.until_ns:
        return text
    if line.from_ns is not None and line.until_ns - line.from_ns <= NEAR_NS:
        return f"~{line.from_ns / 1e9:.3f} s"
    return f"<{text}"


def _event(record: Mapping[str, Any]) -> str:
    from runtime.results.failed import details

    return f"{record.get('kind', '')} {details(record)}".rstrip()
