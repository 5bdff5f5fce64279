"""Networks for the simulation of agents: links and paths, without a plan.

Each is a View (runtime.agent.vocabulary) with instances, and knows the shares that the model gives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.agent.share.solver import UNLIMITED, Flow, solve
from runtime.agent.vocabulary import PathView

MBIT = 1_000_000
MS = 1_000_000
SEGMENT_BYTES = 1500

Pair = tuple[int, int]


@dataclass(frozen=True)
class Network:
    """Link -> (rate in b/s, one-way delay in ns, queue in bytes), and routes between instances."""

    instances: int
    links: Mapping[int, tuple[int, int, int]]
    routes: Mapping[Pair, tuple[int, ...]]
    epoch: int = 0
    _known: dict[Pair, PathView] = field(default_factory=dict)

    def path(self, src: int, dst: int) -> PathView | None:
        if (src, dst) not in self.routes:
            return None
        if (src, dst) not in self._known:
            there, back = self.routes[src, dst], self.routes.get((dst, src), ())
            delay = sum(self.links[link][1] for link in there)
            rtt = delay + (sum(self.links[link][1] for link in back) if back else delay)
            rate = min((self.links[i][0] for i in there if self.links[i][0]), default=0)
            self._known[src, dst] = PathView(there, rate, rtt, delay)
        return self._known[src, dst]

    def capacity(self, link: int) -> int:
        return self.links[link][0]

    def queue(self, link: int) -> int:
        return self.links[link][2]

    def shares(self, demands: Mapping[Pair, int]) -> dict[Pair, int]:
        """The model's shares in b/s of flows with these demands (UNLIMITED: greedy)."""
        pairs = sorted(demands)
        flows = []
        for pair in pairs:
            path = self.path(*pair)
            assert path is not None
            flows.append(Flow(path.links, path.rtt_ns, demands[pair]))
        found = solve(flows, {link: figures[0] for link, figures in self.links.items()})
        rates = (share.allocation_bps for share in found.shares)
        return dict(zip(pairs, rates, strict=True))

    def greedy(self, pairs: Iterable[Pair]) -> dict[Pair, int]:
        return self.shares(dict.fromkeys(pairs, UNLIMITED))


def queue_of(rate_bps: int, time_ns: int = 100 * MS) -> int:
    """A queue of so much time, at least 10 packets."""
    return max(rate_bps * time_ns // 8_000_000_000, 10 * SEGMENT_BYTES)


def _both_ways(
    links: dict[int, tuple[int, int, int]], a_to_b: int, rate_bps: int, delay_ns: int
) -> None:
    """Link n there, n + 1000 back."""
    links[a_to_b] = links[a_to_b + 1000] = (rate_bps, delay_ns, queue_of(rate_bps))


def dumbbell(trunk_bps: int = 50 * MBIT, epoch: int = 0) -> Network:
    """Paper 000 §5.4: clients 0-5 and their servers 6-11; links 6 and 7 are b1->b2 and b2->b3."""
    links: dict[int, tuple[int, int, int]] = {}
    for client, (rate, delay) in enumerate(((50, 10), (50, 5), (10, 5)) * 2):
        _both_ways(links, client, rate * MBIT, delay * MS)
        _both_ways(links, 8 + client, 50 * MBIT, 5 * MS)
    _both_ways(links, 6, trunk_bps, 10 * MS)
    _both_ways(links, 7, 100 * MBIT, 10 * MS)
    routes: dict[Pair, tuple[int, ...]] = {}
    for client in range(6):
        first = (client, 6) if client < 3 else (client,)
        for server in range(6):
            there = (*first, 7, 8 + server)
            routes[client, 6 + server] = there
            routes[6 + server, client] = tuple(link + 1000 for link in reversed(there))
    return Network(12, links, routes, epoch)


def two_destinations() -> Network:
    """One sender, two destinations at 20 and 100 ms round trip, over one link of 100 Mb/s."""
    links: dict[int, tuple[int, int, int]] = {}
    _both_ways(links, 0, 100 * MBIT, 5 * MS)
    _both_ways(links, 1, 1000 * MBIT, 5 * MS)
    _both_ways(links, 2, 1000 * MBIT, 45 * MS)
    routes = {(0, 1): (0, 1), (0, 2): (0, 2), (1, 0): (1001, 1000), (2, 0): (1002, 1000)}
    return Network(3, links, routes)


def parking_lot(hops: int, rate_bps: int = 60 * MBIT) -> Network:
    """Instance 0 to 1 over all of `hops` links in a row; 2 + 2i to 3 + 2i over the i-th only."""
    links: dict[int, tuple[int, int, int]] = {}
    for hop in range(hops):
        _both_ways(links, hop, rate_bps, 5 * MS)
    routes: dict[Pair, tuple[int, ...]] = {
        (0, 1): tuple(range(hops)),
        (1, 0): tuple(1000 + hop for hop in reversed(range(hops))),
    }
    for hop in range(hops):
        routes[2 + 2 * hop, 3 + 2 * hop] = (hop,)
        routes[3 + 2 * hop, 2 + 2 * hop] = (1000 + hop,)
    return Network(2 + 2 * hops, links, routes)


def random_network(
    seed: int, instances: int, bridges: int, rates: Sequence[int] = (10, 20, 50, 100)
) -> Network:
    """A random tree of bridges with a few more links, instances at random bridges; routes by fewest
    hops, then by number. Rates in Mb/s, delays 1 to 20 ms."""
    source = random.Random(seed)
    edges = [(source.randrange(bridge), bridge) for bridge in range(1, bridges)]
    for _ in range(bridges // 3):
        a, b = sorted(source.sample(range(bridges), 2))
        edges.append((a, b))
    edges = sorted(set(edges))
    homes = [source.randrange(bridges) for _ in range(instances)]
    links: dict[int, tuple[int, int, int]] = {}
    neighbours: dict[int, list[tuple[int, int]]] = {bridge: [] for bridge in range(bridges)}
    for number, (a, b) in enumerate(edges):
        _both_ways(links, number, source.choice(rates) * MBIT, source.randint(1, 20) * MS)
        neighbours[a].append((b, number))
        neighbours[b].append((a, number + 1000))
    for instance in range(instances):
        _both_ways(
            links, 2000 + instance, source.choice((50, 100)) * MBIT, source.randint(1, 5) * MS
        )
    routes: dict[Pair, tuple[int, ...]] = {}
    for a in range(instances):
        ways = _ways(neighbours, homes[a])
        for b in range(instances):
            if a != b:
                routes[a, b] = (2000 + a, *ways[homes[b]], 3000 + b)
    return Network(instances, links, routes)


def _ways(
    neighbours: Mapping[int, list[tuple[int, int]]], start: int
) -> dict[int, tuple[int, ...]]:
    """Links from one bridge to every other one."""
    ways: dict[int, tuple[int, ...]] = {start: ()}
    front = [start]
    while front:
        reached = []
        for bridge in front:
            for other, link in sorted(neighbours[bridge]):
                if other not in ways:
                    ways[other] = (*ways[bridge], link)
                    reached.append(other)
        front = reached
    return ways
