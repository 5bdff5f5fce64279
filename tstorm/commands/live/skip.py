"""`tstorm skip RUN --to T|next`: planned events happen at once."""

from __future__ import annotations

import click

from tstorm.commands.live.do import JSON, carry_out
from tstorm.options import option_types
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument

NEXT = "next"


class _To(click.ParamType[object]):
    """A time of the text, or `next`."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        return value if value == NEXT else option_types.DURATION.convert(value, param, ctx)


@click.command()
@run_argument(required=True)
@click.option(
    "--to",
    "to",
    metavar="T|next",
    type=_To(),
    required=True,
    help="A time of the experiment's text, such as 30s, or `next`: the next event.",
)
@in_cluster
@JSON
def command(run: str, to: object, *, cluster: Where | None, as_json: bool) -> None:
    """Have what is planned in RUN, a running experiment, up to T happen at once.

    All of it happens at one moment, in its order; what is planned later comes earlier by as much.
    In a run that is held, the rest is held again. No instance may join twice in what is skipped.

    \b
    Examples:
      tstorm skip runs/a --to next
      tstorm skip runs/a --to 2m
    """
    from tstorm.live.steer import skip

    to_ns = to if isinstance(to, int) else None
    carry_out(lambda: skip(run, to_ns, cluster), "skip", "", as_json=as_json)
