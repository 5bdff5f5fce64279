"""`tstorm events PLAN|EXP.tdl`: the timeline, a primitive event a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import output, units
from tstorm.notes import arguments, record
from tstorm.options.shared import params, seed, source, table_or_json

if TYPE_CHECKING:
    from compiler.plan.types import Event


def _line(event: Event) -> str:
    """`8`, in an included file `net.tdl:8`, and `-` where nobody wrote it."""
    if not event.line:
        return "-"
    return f"{event.file}:{event.line}" if event.file else str(event.line)


@click.command()
@source
@seed
@params
@table_or_json
def command(source: str, seed: int | None, params: dict[str, str], form: str) -> None:
    """List every event of a plan, a run or a TDL file: when, what, to which instance or link.

    JSON is an array of {"seq", "at_ns", "kind", "target", "args", "line", "file"}. "line" is the
    statement's line in the source, 0 for a join that is in no statement; "file" is the included
    file that it is in, "" for the source itself.

    \b
    Examples:
      tstorm events quickstart.tdl
      tstorm events quickstart.tdl --seed 7 --format json | jq '.[] | select(.kind=="crash")'
    """
    from tstorm.loading import load_plan, plan_errors_shown

    with plan_errors_shown(source):
        events = load_plan(source, seed, params).events
    if form == "json":
        output.emit_json_rows(map(record, events))
        return
    output.emit_table(
        ("SEQ", "AT", "KIND", "TARGET", "ARGS", "LINE"),
        (
            (
                str(event.seq),
                units.duration(event.at_ns),
                event.kind,
                event.target,
                arguments(event),
                _line(event),
            )
            for event in events
        ),
        right=(0, 1, 5),
    )
