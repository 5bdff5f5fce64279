"""`tstorm predict PLAN|EXP.tdl --flows F.csv|F.tdl`: what flows would get, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.options import option_types
from tstorm.options.shared import params, seed, source, table_or_json

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from tstorm.predicting.fluid_rates import PredictedRates


@click.command()
@source
@click.option(
    "--flows",
    "file",
    metavar="F.csv|F.tdl",
    type=option_types.TextType(),
    required=True,
    help="The flows. CSV: a first line from,to,start,end,rate,weight,flow, of which from and to "
    "are needed, then a line for each. TDL: `at` and `from … to …` with `a->b background RATE`.",
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="F",
    type=option_types.TextType(),
    help="Also draw the rates over time: F.svg or F.png.",
)
@seed
@params
@table_or_json
def command(
    source: str,
    file: str,
    target: str | None,
    seed: int | None,
    params: dict[str, str],
    form: str,
) -> None:
    """Predict the rates of flows over time, without running anything.

    Fluid rates: flows have their weighted max-min shares of all links at every moment, exactly,
    through every change of the network and of the flows. It is no measurement: TCP's start and
    backing off, waiting in queues, losses, acknowledgements and senders that do not give way are
    not in it. docs/explain.md has the columns, the model, and a run beside it.

    A flow without an end lasts until the experiment's, one without a rate takes what it can get,
    and one of weight=N counts as N connections. The picture takes matplotlib: pip install
    'tstorm[plot]'.

    \b
    Examples:
      tstorm predict examples/dumbbell.tdl --flows flows.csv
      tstorm predict quickstart.plan --flows flows.tdl -o rates.svg
      tstorm predict quickstart.tdl --flows flows.csv --format json | jq '.flows[].bytes'
    """
    from compiler.plan.collector import collector_paused
    from tstorm.loading import load_plan, plan_errors_shown

    if target is not None and Path(target).suffix.lower() not in (".svg", ".png"):
        message = f"{target!r} is neither .svg nor .png; pictures have one of these suffixes"
        raise click.BadParameter(message, param_hint="'-o'")
    with plan_errors_shown(source), collector_paused():
        from tstorm.predicting import flow_list, fluid_rates, listed_flow
        from tstorm.text import predicttext

        plan = load_plan(source, seed, params)
        flows = flow_list.read(file, plan)
        ways = fluid_rates.paths_of(plan, flows)
        problems = fluid_rates.never(plan, flows, ways)
        if problems:
            raise listed_flow.refusal(file, problems)
        found = fluid_rates.predict(plan, flows, ways)
        if target is not None:
            _draw(target, plan, found)
        if form == "json":
            output.emit_json(predicttext.record(plan, found))
        else:
            predicttext.show(plan, found)


def _draw(target: str, plan: Plan, found: PredictedRates) -> None:
    from tstorm.command_support import errors_shown
    from tstorm.plotting import pair_picture
    from tstorm.reporting import output_files

    with errors_shown():
        drawn = pair_picture.draw_rates(plan, found, Path(target).suffix.lower())
        for text in drawn.notes:
            output.note(f"note: {text}")
        output_files.put_file(target, [drawn.data])
