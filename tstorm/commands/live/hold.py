"""`tstorm hold RUN`: planned events wait."""

from __future__ import annotations

import click

from tstorm.commands.live.do import JSON, carry_out
from tstorm.options.shared import run_argument


@click.command()
@run_argument(required=True)
@JSON
def command(run: str, *, as_json: bool) -> None:
    """Hold what is planned in RUN, a running experiment, until `tstorm go`.

    Events of the plan wait from then on, the end of the run too; programs and packets do not. What
    `tstorm do` does now is done now, and what it plans for later waits as well. It takes up to 2 s
    where planned events are close. A run whose expectations name times, or whose links follow
    traces, is not held.

    \b
    Example:
      tstorm hold runs/a
    """
    from tstorm.live.steer import hold

    carry_out(lambda: hold(run), "hold", "", as_json=as_json)
