"""Does a plan say what networkx says? All paths from sampled sources, after every n-th event.

Independent of the compiler: the events of the timeline are applied to the links by name, networkx
finds all shortest paths from a source, and the one among equals, its delay, hops, jitter, loss and
rate follow from the definitions of docs/plan.md in exact arithmetic. Everything must be equal,
nothing is compared within a bound. Also used by the tests.

The path among equals has at each node the next node whose name sorts first; all of them have the
same number of hops, so it is the first one in order of their lists of names. Nodes are taken by
hops; among those with the same number, paths are ranked by the rank of the path up to their last
node and then by its own name, and each node takes the predecessor with the best rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import networkx as nx

from bench.errors import BenchError
from compiler.draws import Stream, statement_key
from compiler.plan.paths.collapse import Collapse, RouteRow
from compiler.plan.paths.path import Paths
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology

PPB = 10**9
HOPS = 10**9  # a link weighs delay * HOPS + 1: least delay first, then fewest hops
NAMED = 20  # paths per source of which the links are compared too
SHOWN = 10  # differences that are described

Found = tuple[int, int, int, int, int]  # delay_ns, hops, jitter_ns, loss_ppb, rate_bps
_NONE: Found = (0, 0, 0, 0, 0)


@dataclass(slots=True)
class Agreement:
    """What was compared, and the first differences in words."""

    epochs: int = 0
    sources: int = 0
    pairs: int = 0
    paths: int = 0  # whose links were compared one by one
    tied: int = 0  # pairs with several shortest paths of equally many hops
    differences: list[str] = field(default_factory=list)

    def differ(self, text: str) -> None:
        if len(self.differences) < SHOWN:
            self.differences.append(text)


def check(plan: Plan, *, sources: int, every: int) -> Agreement:
    """Compares at the start and after every `every`-th event statement, from `sources` instances.

    Raises BenchError if the timeline has events that are not of tests.plan.topologies.
    """
    found = Agreement()
    topology = plan.topology
    collapse = Collapse(topology)
    draws = Stream(statement_key(plan.seed, "sources", 0), "check")
    for at_ns, links in _moments(topology, plan.events, every):
        found.epochs += 1
        state = plan.state_at(at_ns)
        if links != _by_name(state):
            found.differ(f"at {at_ns} ns: the states of links differ")
        oracle = Oracle(topology, links)
        chosen = [draws.below(state.core.endpoints) for _ in range(sources)]
        for row in collapse.rows(state, chosen):
            _compare(found, oracle, state, row.source, _figures(row))
            found.sources += 1
    return found


def _by_name(state: NetworkState) -> dict[str, LinkState]:
    return {link.name: now for link, now in zip(state.topology.links, state.links, strict=True)}


def _figures(row: RouteRow) -> list[Found]:
    columns = (row.totals.delay_ns, row.hops, *row.totals[2:], row.totals.rate_bps)
    return list(zip(*columns, strict=True))


def _compare(
    found: Agreement, oracle: Oracle, state: NetworkState, source: int, ours: list[Found]
) -> None:
    nodes = state.topology.nodes
    tree = oracle.tree(nodes[source].name)
    found.tied += tree.tied
    for dest, mine in enumerate(ours):
        name = nodes[dest].name
        wanted = oracle.figures(tree, name)
        found.pairs += 1
        if mine != wanted:
            where = f"at {state.at_ns} ns {nodes[source].name} to {name}"
            found.differ(f"{where}: {mine} instead of {wanted}")
    paths = Paths(state)
    for dest in range(0, len(ours), max(1, len(ours) // NAMED)):
        if dest == source:
            continue
        found.paths += 1
        links = [state.topology.links[link].name for link in paths.path(source, dest).links]
        if links != tree.links(nodes[dest].name):
            where = f"at {state.at_ns} ns {nodes[source].name} to {nodes[dest].name}"
            found.differ(f"{where}: {links} instead of {tree.links(nodes[dest].name)}")


def _moments(
    topology: Topology, events: tuple[Event, ...], every: int
) -> Iterator[tuple[int, dict[str, LinkState]]]:
    """The links at the start and after each `every` instants with events, and at the end."""
    links = {link.name: link.state for link in topology.links}
    joined = {node.name for node in topology.nodes if node.service < 0}
    instants = [0, *sorted({event.at_ns for event in events if event.at_ns})]
    position = 0
    for number, at_ns in enumerate(instants):
        while position < len(events) and events[position].at_ns == at_ns:
            _apply(links, joined, events[position])
            position += 1
        if number == 0 and len(joined) != len(topology.nodes):
            raise BenchError("not every instance joins at the start")
        if number % every == 0 or number == len(instants) - 1:
            yield at_ns, links


def _apply(links: dict[str, LinkState], joined: set[str], event: Event) -> None:
    if event.kind == "join":
        joined.add(event.target)
    elif event.kind in ("link_up", "link_down"):
        links[event.target] = links[event.target]._replace(up=event.kind == "link_up")
    elif event.kind == "set":
        links[event.target] = links[event.target]._replace(**dict(event.args))  # type: ignore[arg-type]
    elif event.kind != "quit":
        raise BenchError(f"{event.kind} is not among the events of tests.plan.topologies")


@dataclass(slots=True)
class Tree:
    """The paths from one source: the node before each, and what they add up to, not rounded."""

    source: str
    before: dict[str, str]
    sums: dict[str, tuple[int, int, int, int, int, int]]  # with `kept` as PPB - loss, and how many
    tied: int = 0

    def links(self, dest: str) -> list[str]:
        """The names of the links of the path, in order; none if there is no path."""
        found: list[str] = []
        while dest in self.before:
            found.append(f"{self.before[dest]}->{dest}")
            dest = self.before[dest]
        return found[::-1]


class Oracle:
    """networkx on the links that are up. Instances have one link: none is ever passed through."""

    def __init__(self, topology: Topology, links: Mapping[str, LinkState]) -> None:
        self.graph = nx.DiGraph()
        names = [node.name for node in topology.nodes]
        self.graph.add_nodes_from(names)
        for link in topology.links:
            state = links[link.name]
            if state.up:
                ends = (names[link.src], names[link.dst])
                self.graph.add_edge(*ends, weight=state.delay_ns * HOPS + 1, state=state)

    def tree(self, source: str) -> Tree:
        before, length = nx.dijkstra_predecessor_and_distance(self.graph, source)
        levels: dict[int, list[str]] = {}
        for node, weight in length.items():
            levels.setdefault(weight % HOPS, []).append(node)
        tree = Tree(source, {}, {source: (0, 0, 0, 1, 0, 0)})
        rank = {source: 0}
        for hops in sorted(levels)[1:]:
            for node in levels[hops]:
                tree.before[node] = min(before[node], key=rank.__getitem__)
                tree.tied += len(before[node]) > 1
                self._add(tree, tree.before[node], node)
            order = sorted(levels[hops], key=lambda node: (rank[tree.before[node]], node))
            rank.update((node, position) for position, node in enumerate(order))
        return tree

    def _add(self, tree: Tree, last: str, node: str) -> None:
        state: LinkState = self.graph.edges[last, node]["state"]
        delay, hops, square, kept, lossy, rate = tree.sums[last]
        if state.loss_ppb:
            kept, lossy = kept * (PPB - state.loss_ppb), lossy + 1
        rates = [value for value in (rate, state.rate_bps) if value]
        tree.sums[node] = (
            delay + state.delay_ns,
            hops + 1,
            square + state.jitter_ns**2,
            kept,
            lossy,
            min(rates, default=0),
        )

    @staticmethod
    def figures(tree: Tree, dest: str) -> Found:
        if dest == tree.source or dest not in tree.sums:
            return _NONE
        delay, hops, square, kept, lossy, rate = tree.sums[dest]
        loss = (1 - Fraction(kept, PPB**lossy)) * PPB
        return (delay, hops, _rounded_root(square), _half_up(loss), rate)


def _half_up(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def _rounded_root(square: int) -> int:
    """The nearest integer to the root: a half cannot occur, as (r + 1/2)^2 is no integer."""
    root = isqrt(square)
    return root + (square - root * root > root)
