"""What a plan should say, found the slow and obvious way with networkx. Shares no code with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

import networkx as nx

from compiler.plan.properties import LinkState
from compiler.plan.types import Event, Topology

HOPS = 10**9  # a link weighs delay * HOPS + 1: least delay first, then fewest hops
DELAYS = 10**30  # or DELAYS + delay: fewest hops first, then least delay


def states_at(
    topology: Topology, events: Iterable[Event], at_ns: int
) -> tuple[dict[str, str], dict[str, LinkState]]:
    """Node words and effective link states by name, by replaying everything from the start."""
    node = {n.name: "down" if n.service >= 0 else "up" for n in topology.nodes}
    link = {item.name: item.state for item in topology.links}
    background: dict[str, int] = {}
    words = {"join": "up", "reconnect": "up", "bridge_up": "up", "disconnect": "cut"}
    for event in events:
        if event.at_ns > at_ns:
            break
        if event.kind in ("link_up", "link_down"):
            link[event.target] = link[event.target]._replace(up=event.kind == "link_up")
        elif event.kind == "set":
            link[event.target] = link[event.target]._replace(**dict(event.args))  # type: ignore[arg-type]
        elif event.kind == "background":
            background[event.target] = int(event.args["rate_bps"])
        elif event.kind not in ("quit", "pause", "resume", "kill", "clock", "disk"):
            node[event.target] = words.get(event.kind, "down")
    for item in topology.links:
        own = link[item.name]
        ends = [node[topology.nodes[end].name] for end in (item.src, item.dst)]
        taken = background.get(item.name, 0)
        own = own._replace(up=own.up and ends == ["up", "up"])
        if taken:
            rows = [row.split(":") for row in own.flow_rates.split(";") if row]
            own = own._replace(
                rate_bps=own.rate_bps - taken,
                capacity_bps=own.capacity_bps or own.rate_bps,
                flow_rates=";".join(f"{n}:{int(bps) - taken}:{size}" for n, bps, size in rows),
            )
        link[item.name] = own
    return node, link


class Network:
    """The network at one moment as a directed graph of the links that are up."""

    def __init__(self, topology: Topology, events: Iterable[Event], at_ns: int) -> None:
        self.topology = topology
        self.nodes, self.links = states_at(topology, events, at_ns)
        self.graph = nx.MultiDiGraph()
        self.graph.add_nodes_from(self.nodes)
        for link in topology.links:
            state = self.links[link.name]
            if state.up:
                by_hops = topology.routing == "hops"
                weight = DELAYS + state.delay_ns if by_hops else state.delay_ns * HOPS + 1
                ends = (topology.nodes[link.src].name, topology.nodes[link.dst].name)
                self.graph.add_edge(*ends, weight=weight, name=link.name)

    def route(self, src: str, dst: str) -> list[str] | None:
        """The node names of the best path, by name among equals; None if there is none."""
        bridges = [name for name in self.nodes if "." not in name]
        view = nx.MultiDiGraph(self.graph.subgraph([*bridges, src, dst]))
        if self.topology.routing == "direct":
            near = set(view.predecessors(anchor := self._anchor(dst)))
            aside = [one for one in view.edges if one[0] in near and one[1] not in (anchor, dst)]
            view.remove_edges_from(aside)
        try:
            return min(nx.all_shortest_paths(view, src, dst, weight="weight"))
        except nx.NetworkXNoPath:
            return None

    def best(self, src: str, dst: str) -> list[str]:
        """The names of the links from one node to the next that are as good as any of them."""
        every = self.graph[src][dst].values()
        least = min(one["weight"] for one in every)
        return sorted(one["name"] for one in every if one["weight"] == least)

    def _anchor(self, name: str) -> str:
        """The bridge that an instance hangs behind by its only link, else itself."""
        ends = [(link.src, link.dst) for link in self.topology.links]
        names = [node.name for node in self.topology.nodes]
        found = [names[dst] for src, dst in ends if names[src] == name]
        return found[0] if len(found) == 1 and "." not in found[0] else name

    def properties(self, src: str, dst: str) -> tuple[object, ...]:
        """(reachable, rate, delay, jitter, loss, link names) of one direction."""
        found = self.route(src, dst)
        if found is None:
            return (False, None, None, None, None, [])
        names = [self.best(a, b)[0] for a, b in itertools.pairwise(found)]
        states = [self.links[name] for name in names]
        kept = Fraction(1)
        for state in states:
            kept *= 1 - Fraction(state.loss_ppb, 10**9)
        rates = [state.rate_bps for state in states if state.rate_bps]
        return (
            True,
            min(rates, default=0),
            sum(state.delay_ns for state in states),
            _half_up_root(sum(state.jitter_ns**2 for state in states)),
            _half_up((1 - kept) * 10**9),
            names,
        )


def _half_up(value: Fraction) -> int:
    whole, rest = divmod(value.numerator, value.denominator)
    return whole + (2 * rest >= value.denominator)


def _half_up_root(square: int) -> int:
    getcontext().prec = 60
    return int(Decimal(square).sqrt().quantize(Decimal(1), ROUND_HALF_UP))
