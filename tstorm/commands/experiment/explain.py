"""`tstorm explain PLAN|EXP.tdl`: why a path is as it is, or where an event comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import output, units
from tstorm.options import option_types
from tstorm.options.shared import params, seed, source, table_or_json

if TYPE_CHECKING:
    from compiler.plan.paths.flows import FlowTuple
    from compiler.plan.reader import Plan


@click.command()
@source
@click.option("--from", "src", metavar="A", help="An instance, or a service that has one.")
@click.option("--to", "dst", metavar="B", help="The other end.")
@click.option(
    "--at",
    "at_ns",
    metavar="T",
    type=option_types.DURATION,
    help="When.  [default: the first time that both are joined]",
)
@click.option(
    "--flow",
    metavar="FLOW",
    type=option_types.FLOW,
    help="With routing ecmp the way of this flow: tcp:PORT>PORT, udp:… or sctp:… (its ports at A "
    "and at B), icmp, or the number of a protocol; tcp6 and so on over IPv6, @LABEL with a flow "
    "label.  [default: the run's own probes]",
)
@click.option(
    "--event",
    "seq",
    metavar="K",
    type=option_types.WholeNumber(min=0),
    help="Explain event K instead, as `tstorm events` counts them.",
)
@click.option(
    "--expect",
    "expected",
    is_flag=True,
    help="Explain the `expect` statements instead: of whom, when, and what is planned then.",
)
@seed
@params
@table_or_json
def command(
    source: str,
    src: str | None,
    dst: str | None,
    at_ns: int | None,
    flow: FlowTuple | None,
    seq: int | None,
    expected: bool,
    seed: int | None,
    params: dict[str, str],
    form: str,
) -> None:
    """Explain a path between two instances, one event, or what is expected, of a plan, a run or a
    TDL file.

    A path: both directions, each link and the path's properties up to its end, and the links that
    are the bottleneck; without a path, what is down on the way and since which event; the event
    that changed the path last, and the one that will next.

    An event: the statement it comes from, the random draws that chose its moment and target, and
    what it changed. The plan's own source is compiled again for this, and checked to give the same
    events.

    What is expected: of each `expect` statement the pairs or instances, the time, and what the plan
    has for them then; where a run that is exactly as planned must fail, why.

    JSON is one object; docs/explain.md describes both forms.

    \b
    Examples:
      tstorm explain quickstart.plan --from client --to server.0 --at 6s
      tstorm explain runs/quickstart-20260301T120000Z --event 18
      tstorm explain examples/expect.tdl --expect
      tstorm explain quickstart.tdl --from client --to server.2 --format json | jq .next_change
    """
    from compiler.plan.collector import collector_paused
    from tstorm.loading import load_plan, plan_errors_shown

    _check_usage(src, dst, at_ns, flow, seq, expected=expected)
    with plan_errors_shown(source), collector_paused():
        plan = load_plan(source, seed, params)
        if expected:
            _expected(plan, source, form)
        elif seq is not None:
            _event(plan, source, seq, form)
        else:
            assert src is not None
            assert dst is not None
            _path(plan, source, (src, dst), at_ns, flow, form)


def _check_usage(
    src: str | None,
    dst: str | None,
    at_ns: int | None,
    flow: FlowTuple | None,
    seq: int | None,
    *,
    expected: bool,
) -> None:
    of_path = any(one is not None for one in (src, dst, at_ns, flow))
    if expected and (of_path or seq is not None):
        raise click.UsageError("--expect goes without --from, --to, --at, --flow and --event")
    if expected:
        return
    if seq is None and (src is None or dst is None):
        raise click.UsageError("give --from A and --to B, --event K or --expect")
    if seq is not None and of_path:
        raise click.UsageError("--event goes without --from, --to, --at and --flow")


def _path(
    plan: Plan,
    source: str,
    ends: tuple[str, str],
    at_ns: int | None,
    flow: FlowTuple | None,
    form: str,
) -> None:
    from compiler.analysis.history import History
    from compiler.analysis.path_explanation import story
    from compiler.plan.types import owner_of
    from tstorm.instance_names import one_instance
    from tstorm.notes import Statements
    from tstorm.text import pathtext

    topology = plan.topology
    first, second = (
        one_instance(topology.services, topology.nodes, name, option)
        for name, option in zip(ends, ("--from", "--to"), strict=True)
    )
    owner = owner_of(topology.nodes, first)
    if owner == owner_of(topology.nodes, second):
        name = topology.nodes[owner].name
        raise click.BadParameter(f"'{name}' has no path to itself.", param_hint="'--to'")
    if at_ns is not None and at_ns > plan.end_ns:
        message = f"the experiment ends at {units.duration(plan.end_ns)}."
        raise click.BadParameter(message, param_hint="'--at'")
    pair = topology.nodes[first], topology.nodes[second]
    if flow is not None and flow.number(*pair, topology.network) is None:
        message = f"with network {topology.network} instances have no such addresses."
        raise click.BadParameter(message, param_hint="'--flow'")
    history = History(
        plan, {(first, second): flow, (second, first): flow.back()} if flow is not None else None
    )
    if at_ns is None:
        together = history.together(first, second)
        at_ns = 0 if together is None else history.starts[together]
    told = story(history, first, second, at_ns)
    statements = Statements(plan, source)
    if form == "json":
        output.emit_json(pathtext.record(told, statements, shares=plan.routing == "ecmp"))
    else:
        pathtext.show(told, statements, whose="this flow" if flow else "a run's probes")


def _event(plan: Plan, source: str, seq: int, form: str) -> None:
    from compiler.origin import explain_event
    from tstorm.notes import Statements
    from tstorm.text import eventtext

    if seq >= len(plan.events):
        if not plan.events:
            raise click.BadParameter("the experiment has no events.", param_hint="'--event'")
        message = f"the last event is {len(plan.events) - 1} (see `tstorm events`)."
        raise click.BadParameter(message, param_hint="'--event'")
    told = explain_event(plan, seq)
    statements = Statements(plan, source)
    if form == "json":
        output.emit_json(eventtext.record(told, statements))
    else:
        eventtext.show(told, statements, plan.end_ns)


def _expected(plan: Plan, source: str, form: str) -> None:
    from tstorm.notes import Statements
    from tstorm.text import expecttext

    if form == "json":
        output.emit_json(expecttext.record(plan))
    else:
        expecttext.show(plan, Statements(plan, source))
