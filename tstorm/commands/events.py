"""`tstorm events PLAN|EXP.tdl`: the timeline, a primitive event a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tstorm import output, parameters, units
from tstorm.notes import arguments

if TYPE_CHECKING:
    from compiler.plan.types import Event


def _record(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at_ns": event.at_ns,
        "kind": event.kind,
        "target": event.target,
        "args": dict(event.args),
        "line": event.line,
    }


@click.command()
@parameters.source
@parameters.seed
@parameters.table_or_json
def command(source: str, seed: int | None, form: str) -> None:
    """List every event of a plan, a run or a TDL file: when, what, to which instance or link.

    JSON is an array of {"seq", "at_ns", "kind", "target", "args", "line"}. "line" is the
    statement's line in the source, 0 for a join that nobody wrote.

    \b
    Examples:
      tstorm events quickstart.tdl
      tstorm events quickstart.tdl --seed 7 --format json | jq '.[] | select(.kind=="crash")'
    """
    from tstorm.loading import load_plan, plan_errors_shown

    with plan_errors_shown(source):
        events = load_plan(source, seed).events
    if form == "json":
        output.emit_json_rows(_record(event) for event in events)
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
                str(event.line) if event.line else "-",
            )
            for event in events
        ),
        right=(0, 1, 5),
    )
