"""`tstorm go RUN`: time goes on, or planned events do."""

from __future__ import annotations

import json

import click

from tstorm import output
from tstorm.commands.live.do import JSON, carry_out
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument

_TIME_GOES_ON = "time goes on; what is planned, if it is held too, waits for another `tstorm go`"


@click.command()
@run_argument(required=True)
@in_cluster
@JSON
def command(run: str, *, cluster: Where | None, as_json: bool) -> None:
    """Let what is planned in RUN go on, which `tstorm hold` holds.

    All of it is later by as long as it was held. Where `tstorm hold --time` holds time itself, that
    goes on, and nothing is later; what is planned and held as well takes another `tstorm go`.

    \b
    Example:
      tstorm go runs/a
    """
    from tstorm.command_support import errors_shown
    from tstorm.live import steer

    with errors_shown():
        went = steer.let_time_go(run, cluster)
    if not went:
        carry_out(lambda: steer.go(run, cluster), "go", "", as_json=as_json)
    else:
        output.line(json.dumps({"ok": {"time_held_ns": None}}) if as_json else _TIME_GOES_ON)
