"""Routes computed in C against networkx and against plain Python, cell by cell, batch by batch."""

from __future__ import annotations

import random
from unittest.mock import Mock, patch

import networkx as nx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.plan.format import MAX_INT
from compiler.plan.properties import LinkState
from compiler.plan.routes.routing import Routes
from compiler.plan.state import epochs
from compiler.plan.types import Event, Topology
from tests.plan.networks import PLAIN, RandomTimeline, build, networks, random_topology
from tests.plan.routes import reference_routes

Case = tuple[Topology, tuple[Event, ...]]
Batch = list[tuple[int, LinkState]]

DELAYS = [0, 0, 1, 2, 3, 1 << 20, 1 << 47, 1 << 48, 1 << 62, MAX_INT - 1, MAX_INT]


class Both:
    """Applies to both and compares what they say."""

    def __init__(self, topology: Topology) -> None:
        self.routes = Routes(topology)
        # The reference knows paths of least delay or hops: `direct` has networkx below.
        direct = topology.routing == "direct"
        self.reference = None if direct else reference_routes.Routes(topology)

    def apply(self, batch: Batch) -> None:
        found = self.routes.apply(batch)
        if self.reference is None:
            return
        wanted = self.reference.apply(batch)
        assert (found.cells, found.values) == (wanted.cells, wanted.values)
        assert self.routes.table == self.reference.table


@settings(max_examples=200, deadline=None)
@given(networks(services=4, bridges=9, length=25))
def test_timelines(case: Case) -> None:
    """Events one by one and several at an instant; joins, cuts, bridges that come and go."""
    topology, events = case
    both = Both(topology)
    for epoch in epochs(topology, events):
        both.apply(list(epoch.links))


def batches(rnd: random.Random, topology: Topology, count: int) -> list[Batch]:
    """Any links in any order, states that do not change among them; every few, all links."""
    found = []
    for _ in range(count):
        size = rnd.choice([0, 1, 2, 5, 30, len(topology.links)])
        links = rnd.sample(range(len(topology.links)), min(size, len(topology.links)))
        delay = rnd.choice([None, *DELAYS])
        found.append(
            [
                (
                    link,
                    PLAIN._replace(
                        up=rnd.random() < 0.7,
                        delay_ns=rnd.choice(DELAYS) if delay is None else delay,
                    ),
                )
                for link in links
            ]
        )
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**48))
def test_batches_with_any_delay(seed: int) -> None:
    """Zero and the largest that a plan may have; whole parts are often out of reach."""
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 5), rnd.randint(0, 12))
    both = Both(topology)
    for batch in batches(rnd, topology, 12):
        both.apply(batch)


def cells_by_networkx(routes: Routes, topology: Topology, now: dict[int, LinkState]) -> list[int]:
    """Every cell: the first of the next links, by name of the next node and their own, that lie on
    a shortest path."""
    core, names = routes.core, [node.name for node in topology.nodes]
    found = [0] * core.cells
    for column, root in enumerate(core.columns):
        towards = nx.MultiDiGraph()
        towards.add_node(root)
        for links in core.out:
            for link in links:
                src, dst = topology.links[link].src, topology.links[link].dst
                if now[link].up and (dst == root or dst >= core.endpoints):
                    delay_ns, by_hops = now[link].delay_ns, topology.routing == "hops"
                    weight = 10**30 + delay_ns if by_hops else delay_ns * 10**9 + 1
                    towards.add_edge(dst, src, key=link, weight=weight)
        near = set(towards.successors(root)) if topology.routing == "direct" else set()
        towards.remove_edges_from(
            [one for one in towards.edges if one[1] in near and one[0] != root]
        )
        far = nx.single_source_dijkstra_path_length(towards, root)
        for row, links in enumerate(core.out):
            node = core.rows[row]
            tight = [
                (names[dst], topology.links[link].name, choice)
                for choice, link in enumerate(links, 1)
                if (dst := topology.links[link].dst) in far
                and towards.has_edge(dst, node, link)
                and far[node] == far[dst] + towards[dst][node][link]["weight"]
            ]
            if tight and node != root:
                found[row * len(core.columns) + column] = min(tight)[2]
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**48))
def test_batches_with_any_delay_against_networkx(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 5), rnd.randint(0, 10))
    routes = Routes(topology)
    now = {link: PLAIN._replace(up=False) for link in range(len(topology.links))}
    for batch in batches(rnd, topology, 6):
        now.update(batch)
        routes.apply(batch)
        assert list(routes.table) == cells_by_networkx(routes, topology, now)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**48))
def test_larger_networks(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, 20, 70)
    both = Both(topology)
    for epoch in epochs(topology, RandomTimeline(rnd, topology).draw(60)):
        both.apply(list(epoch.links))


def test_sums_far_beyond_64_bits_do_not_wrap() -> None:
    """A detour of 40 links, each as long as a link may be, against one of 39."""
    far = PLAIN._replace(delay_ns=MAX_INT)
    longer = [f"a{i:02}" for i in range(39)]
    shorter = [f"b{i:02}" for i in range(38)]
    links = [("x", "in", PLAIN, PLAIN), ("y", "out", PLAIN, PLAIN)]
    for way in (longer, shorter):
        stops = ["in", *way, "out"]
        links += [(stops[i], stops[i + 1], far, far) for i in range(len(stops) - 1)]
    topology = build([("x", 1), ("y", 1)], ["in", "out", *longer, *shorter], links)
    both = Both(topology)
    both.apply([(i, link.state) for i, link in enumerate(topology.links)])
    core = both.routes.core
    row, column = core.row_of[core.anchor[0]], core.column_of[core.anchor[1]]
    chosen = core.out[row][both.routes.table[row * len(core.columns) + column] - 1]
    assert topology.links[chosen].name == "in->b00"


def test_what_changes_no_length_changes_no_route() -> None:
    topology = build([("x", 2)], ["s", "t"], [("x", "s", PLAIN, PLAIN), ("s", "t", PLAIN, PLAIN)])
    both = Both(topology)
    both.apply([(i, link.state) for i, link in enumerate(topology.links)])
    other = [(4, PLAIN._replace(rate_bps=1, loss_ppb=5, jitter_ns=7, queue_bytes=9))]
    assert len(both.routes.apply(other).cells) == 0


def test_access_links_never_reach_the_search() -> None:
    topology = build([("x", 2)], ["s", "t"], [("x", "s", PLAIN, PLAIN), ("s", "t", PLAIN, PLAIN)])
    routes = Routes(topology)
    library = Mock(spec=[])
    with patch.object(routes, "_library", library):
        access = [(i, PLAIN._replace(up=i % 2 == 0, delay_ns=i)) for i in range(4)]
        assert len(routes.apply(access).cells) == 0
    assert library.mock_calls == []
