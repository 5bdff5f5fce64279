"""`tstorm events PLAN|EXP.tdl`: the timeline, a primitive event a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tstorm import options, output, units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compiler.plan.types import Event

_SHOW: Mapping[str, Callable[[int], str]] = {
    "rate_bps": units.rate,
    "delay_ns": units.duration,
    "jitter_ns": units.duration,
    "loss_ppb": units.probability,
}


def _record(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at_ns": event.at_ns,
        "kind": event.kind,
        "target": event.target,
        "args": dict(event.args),
        "line": event.line,
    }


def _arguments(event: Event) -> str:
    """`rate=50Mb delay=10ms`: for people; the JSON form has the integers."""
    parts = []
    for key, value in sorted(event.args.items()):
        name = key.removesuffix("_" + key.rpartition("_")[2]) if key in _SHOW else key
        shown = _SHOW[key](value) if key in _SHOW and isinstance(value, int) else str(value)
        if event.kind == "background" and value == 0:
            shown = "none"
        parts.append(f"{name}={shown}")
    return " ".join(parts)


@click.command()
@options.source
@options.seed
@options.table_or_json
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

    with plan_errors_shown():
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
                _arguments(event),
                str(event.line) if event.line else "-",
            )
            for event in events
        ),
        right=(0, 1, 5),
    )
