"""`tstorm diff A B`: two experiments compared, as timelines and as networks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import FAILED, CommandError
from tstorm.options import option_types
from tstorm.options.shared import params, seed, table_or_json

if TYPE_CHECKING:
    from compiler.plan.reader import Plan


@contextmanager
def _errors_shown(*named: tuple[str, Plan]) -> Iterator[None]:
    """Turns a PlanError inside into the command's end, and says in which of the plans it is."""
    from compiler.plan.format import PlanError
    from tstorm.loading import plan_errors_shown

    try:
        yield
    except PlanError as error:
        for name, plan in named:
            with plan_errors_shown(name):
                plan.verify(deep=True)
        raise CommandError(f"error: {error}") from error


@click.command()
@click.argument("a", metavar="A", type=option_types.INPUT)
@click.argument("b", metavar="B", type=option_types.INPUT)
@click.option(
    "--limit",
    metavar="N",
    type=option_types.WholeNumber(min=0),
    default=10,
    show_default=True,
    help="How many entries of a list are printed; the others are counted.",
)
@click.option(
    "--no-network",
    is_flag=True,
    help="Compare topologies and timelines only; paths take longest.",
)
@seed
@params
@table_or_json
def command(
    a: str,
    b: str,
    limit: int,
    no_network: bool,
    seed: int | None,
    params: dict[str, str],
    form: str,
) -> None:
    """Compare two experiments, each a plan, a run or a TDL file.

    Topology: what they begin with. Timeline: events that only one has (- A, + B), at another time
    (>), with other arguments (~), in another order (=). Network: the pairs of instances whose paths
    differ, in what and from when to when, grouped and counted.

    Ends with 0 when nothing differs (but for text that changes nothing, such as comments), and with
    1 when something does. JSON is one object; docs/explain.md describes both forms.

    \b
    Examples:
      tstorm diff before.tdl after.tdl
      tstorm diff quickstart.plan runs/quickstart-20260301T120000Z
      tstorm diff a.plan b.plan --format json | jq .timeline.counts
    """
    from compiler.analysis.plan_diff import compare_plans
    from compiler.plan.collector import collector_paused
    from tstorm.loading import load_plan
    from tstorm.notes import Statements
    from tstorm.text import difftext

    if a == b == "-":
        raise click.UsageError("only one of the two can be standard input")
    with collector_paused():
        first, second = load_plan(a, seed, params), load_plan(b, seed, params)
    with _errors_shown((a, first), (b, second)), collector_paused():
        diff = compare_plans(first, second, network=not no_network)
        compared = difftext.Compared(
            (a, b),
            (first, second),
            (Statements(first, a), Statements(second, b)),
            diff,
            limit,
        )
        if form == "json":
            output.emit_json(difftext.record(compared))
        else:
            difftext.show(compared)
    if not diff.equal:
        raise CommandError(code=FAILED)
    if form == "table" and first.digest != second.digest:
        output.note("note: the same experiment; the sources differ in text only")
