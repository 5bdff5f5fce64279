"""`tstorm paths PLAN|EXP.tdl --at T`: end-to-end properties between the instances joined at T."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from tstorm import options, output, units

if TYPE_CHECKING:
    from compiler.plan.paths import PathProperties
    from compiler.plan.types import Topology


def _named(topology: Topology, name: str | None, option: str) -> range:
    """The nodes that `name` (an instance, a service, or nothing = all) stands for."""
    nodes = topology.nodes
    instances = sum(node.service >= 0 for node in nodes)
    if name is None:
        return range(instances)
    for number, service in enumerate(topology.services):
        if service.name == name:
            mine = [i for i in range(instances) if nodes[i].service == number]
            return range(mine[0], mine[-1] + 1) if mine else range(0)
    for i in range(instances):
        if nodes[i].name == name:
            return range(i, i + 1)
    from difflib import get_close_matches

    known = [service.name for service in topology.services]
    known += [node.name for node in nodes[:instances]]
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise click.BadParameter(f"no service or instance '{name}'.{hint}", param_hint=f"'{option}'")


def _joined(states: Sequence[str], wanted: range, name: str | None) -> list[int]:
    """Those of `wanted` that are joined. Says so when what was named is not."""
    found = [node for node in wanted if states[node] != "down"]
    if name is not None and not found:
        output.note(f"note: no instance of '{name}' is joined at that time")
    return found


def _record(path: PathProperties, topology: Topology) -> dict[str, Any]:
    return {
        "src": topology.nodes[path.src].name,
        "dst": topology.nodes[path.dst].name,
        "reachable": path.reachable,
        "rate_bps": path.rate_bps,
        "delay_ns": path.delay_ns,
        "jitter_ns": path.jitter_ns,
        "loss_ppb": path.loss_ppb,
        "rtt_ns": path.rtt_ns,
        "links": [topology.links[link].name for link in path.links],
    }


def _row(path: PathProperties, topology: Topology) -> tuple[str, ...]:
    def shown(value: int | None, form: Any) -> str:
        return "-" if value is None else form(value)

    return (
        topology.nodes[path.src].name,
        topology.nodes[path.dst].name,
        shown(path.rate_bps, units.rate) if path.reachable else "unreachable",
        shown(path.delay_ns, units.duration),
        shown(path.jitter_ns, units.duration),
        shown(path.loss_ppb, units.probability),
        shown(path.rtt_ns, units.duration),
        " ".join(topology.links[link].name for link in path.links) or "-",
    )


@click.command()
@options.source
@click.option("--at", "at_ns", metavar="T", type=options.DURATION, required=True, help="When.")
@click.option("--from", "src", metavar="X", help="Only from this instance or service.")
@click.option("--to", "dst", metavar="Y", help="Only to this instance or service.")
@options.seed
@options.table_or_json
def command(
    source: str, at_ns: int, src: str | None, dst: str | None, seed: int | None, form: str
) -> None:
    """List the properties of the paths between all instances joined at T.

    T is a duration of the language (90s, 1h30m); events at T are included. A row is one direction;
    RTT adds the way back. Rates count bits at layer 3.

    JSON is an array of {"src", "dst", "reachable", "rate_bps", "delay_ns", "jitter_ns", "loss_ppb",
    "rtt_ns", "links"}; a rate of 0 is unlimited; what is unreachable has null in place of numbers.

    \b
    Examples:
      tstorm paths quickstart.tdl --at 30s
      tstorm paths quickstart.plan --at 1m --from client --to server.0 --format json
    """
    from compiler.plan.paths import Paths
    from tstorm.loading import load_plan, plan_errors_shown

    with plan_errors_shown():
        plan = load_plan(source, seed)
        topology = plan.topology
        sources = _named(topology, src, "--from")
        targets = _named(topology, dst, "--to")
        state = plan.state_at(at_ns)
        if at_ns > plan.end_ns:
            output.note(f"note: the experiment ends at {units.duration(plan.end_ns)}")
        starts = _joined(state.nodes, sources, src)
        ends = _joined(state.nodes, targets, dst)
        between = Paths(state)

        def found() -> Iterator[PathProperties]:
            return (between.path(a, b) for a in starts for b in ends if a != b)

        if form == "json":
            output.emit_json_rows(_record(path, topology) for path in found())
        else:
            output.emit_table(
                ("FROM", "TO", "RATE", "DELAY", "JITTER", "LOSS", "RTT", "LINKS"),
                (_row(path, topology) for path in found()),
                right=(2, 3, 4, 5, 6),
            )
