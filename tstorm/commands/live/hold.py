"""`tstorm hold RUN`: planned events wait, or time does."""

from __future__ import annotations

import json

import click

from tstorm import output, units
from tstorm.commands.live.do import JSON, carry_out
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument


@click.command()
@run_argument(required=True)
@click.option(
    "--time",
    "of_time",
    is_flag=True,
    help="In virtual time: everything stands still, programs and packets too.",
)
@in_cluster
@JSON
def command(run: str, *, of_time: bool, cluster: Where | None, as_json: bool) -> None:
    """Hold what is planned in RUN, a running experiment, until `tstorm go`.

    Events of the plan wait from then on, the end of the run too; programs and packets do not. What
    `tstorm do` does now is done now, and what it plans for later waits as well. It takes up to 2 s
    where planned events are close. A run whose expectations name times, or whose links follow
    traces, is not held.

    With --time, in virtual time, no program and no packet goes on either, and nothing in the run
    notices: it ends as it would have ended without. Meanwhile `tstorm do` changes it, at that
    moment.

    \b
    Examples:
      tstorm hold runs/a
      tstorm hold runs/v --time
    """
    from tstorm.command_support import errors_shown
    from tstorm.live import steer

    if not of_time:
        carry_out(lambda: steer.hold(run, cluster), "hold", "", as_json=as_json)
        return
    with errors_shown():
        held_ns = steer.hold_time(run, cluster)
    if as_json:
        output.line(json.dumps({"ok": {"time_held_ns": held_ns}}))
    else:
        output.line(f"time is held at {units.duration(held_ns)}")
