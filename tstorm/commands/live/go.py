"""`tstorm go RUN`: planned events go on."""

from __future__ import annotations

import click

from tstorm.commands.live.do import JSON, carry_out
from tstorm.options.shared import run_argument


@click.command()
@run_argument(required=True)
@JSON
def command(run: str, *, as_json: bool) -> None:
    """Let what is planned in RUN go on, which `tstorm hold` holds.

    All of it is later by as long as it was held.

    \b
    Example:
      tstorm go runs/a
    """
    from tstorm.live.steer import go

    carry_out(lambda: go(run), "go", "", as_json=as_json)
