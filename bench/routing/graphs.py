"""One state of a plan's network as lists for graph libraries: the whole graph, or bridges only.

Weights are delay * 2^12 + 1: the sum along a path orders paths by delay and then by hops, so a
library breaks these ties as the plan does (docs/plan.md; names, the last tie-break, it leaves to
chance). Such sums are exact in a double while they stay below 2^53, which `Graph` checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.errors import BenchError
from compiler.plan.routes.core import NO_LINK
from compiler.plan.state import NetworkState

HOP_BITS = 12  # no shortest path of these networks has 4096 hops
HOP_MASK = (1 << HOP_BITS) - 1
PPB = 10**9
_EXACT = 1 << 53  # of a double
_LONGEST = 1000  # hops; far more than such a path has


@dataclass(slots=True)
class Graph:
    """Links that are up, as parallel lists; nodes are numbered from 0."""

    nodes: int
    src: list[int] = field(default_factory=list)
    dst: list[int] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    jitter_ns: list[int] = field(default_factory=list)
    loss_ppb: list[int] = field(default_factory=list)
    rate_bps: list[int] = field(default_factory=list)

    def check(self) -> Graph:
        """Raises BenchError when a double could not hold the length of a path."""
        if self.weight and max(self.weight) * _LONGEST >= _EXACT:
            raise BenchError("the delays are too long to compare them in doubles")
        return self


@dataclass(frozen=True, slots=True)
class Access:
    """How each instance hangs off the graph of the bridges: parallel lists, one entry each."""

    anchor: list[int]
    up: list[tuple[int, int, int, int]]  # towards the anchor: (delay_ns, jitter_ns, loss, rate)
    down: list[tuple[int, int, int, int]]


def whole(state: NetworkState) -> Graph:
    """Every node; instances come first."""
    return _graph(state, 0)


def bridges(state: NetworkState) -> Graph:
    """Bridges only, numbered from 0. Every instance must be behind one (BenchError)."""
    core = state.core
    if any(core.access_out[node] == NO_LINK for node in range(core.endpoints)):
        raise BenchError("an instance has several links: the bridges are not the whole core")
    return _graph(state, core.endpoints)


def access(state: NetworkState) -> Access:
    """For the graph of `bridges`. Every access link must be up (BenchError)."""
    core, links = state.core, state.links
    instances = range(core.endpoints)
    ups = [links[core.access_out[node]] for node in instances]
    downs = [links[core.access_in[node]] for node in instances]
    if not all(link.up for link in (*ups, *downs)):
        raise BenchError("an access link is down")
    return Access(
        [core.anchor[node] - core.endpoints for node in instances],
        [(x.delay_ns, x.jitter_ns, x.loss_ppb, x.rate_bps) for x in ups],
        [(x.delay_ns, x.jitter_ns, x.loss_ppb, x.rate_bps) for x in downs],
    )


def _graph(state: NetworkState, first: int) -> Graph:
    graph = Graph(len(state.nodes) - first)
    for link, now in zip(state.topology.links, state.links, strict=True):
        if not now.up or link.src < first or link.dst < first:
            continue
        graph.src.append(link.src - first)
        graph.dst.append(link.dst - first)
        graph.weight.append((now.delay_ns << HOP_BITS) + 1)
        graph.jitter_ns.append(now.jitter_ns)
        graph.loss_ppb.append(now.loss_ppb)
        graph.rate_bps.append(now.rate_bps)
    return graph.check()
