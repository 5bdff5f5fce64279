"""Plans of random networks against networkx: states, routes with ties, composed paths."""

from __future__ import annotations

from itertools import permutations

from hypothesis import HealthCheck, given, settings

from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, decode
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import contents, networks
from tests.plan.oracle import Network

Case = tuple[Topology, tuple[Event, ...]]


def moments(events: tuple[Event, ...]) -> list[int]:
    """Every instant with events, the one before the last, and times in between."""
    found = sorted({0, *(event.at_ns for event in events)})
    return found[-6:] if len(found) < 2 else [*found[-6:], found[-1] - 1]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=5, bridges=10, length=20))
def test_paths_agree_with_networkx(case: Case) -> None:
    topology, events = case
    plan = decode(encode(contents(topology, events)), lazy=False)
    for at_ns in moments(events):
        compare(plan, Network(topology, events, at_ns), at_ns)


def compare(plan: Plan, network: Network, at_ns: int) -> None:
    state = plan.state_at(at_ns)
    topology = plan.topology
    names = [node.name for node in topology.nodes]
    assert dict(zip(names, state.nodes, strict=True)) == network.nodes
    links = [link.name for link in topology.links]
    assert dict(zip(links, state.links, strict=True)) == network.links
    paths = Paths(state)
    instances = [i for i, node in enumerate(topology.nodes) if node.service >= 0]
    pairs = list(permutations(instances, 2))
    known = {(src, dst): network.properties(names[src], names[dst]) for src, dst in pairs}
    for src, dst in pairs:
        found, wanted, back = paths.path(src, dst), known[src, dst], known[dst, src]
        assert (
            found.reachable,
            *(found.totals or (None,) * 4),
            [links[link] for link in found.links],
        ) == wanted
        both = wanted[0] and back[0]
        assert found.rtt_ns == (wanted[2] + back[2] if both else None)  # type: ignore[operator]


@settings(max_examples=100, deadline=None)
@given(networks(services=3, bridges=5, length=10))
def test_every_node_knows_the_next_link(case: Case) -> None:
    """Not only sources: each bridge too, as packets under way will ask it."""
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    at_ns = events[-1].at_ns if events else 0
    state, network = plan.state_at(at_ns), Network(topology, events, at_ns)
    names = [node.name for node in topology.nodes]
    for node, name in enumerate(names):
        for dest in range(plan.core.endpoints):
            route = network.route(name, names[dest]) if node != dest else None
            if route is not None:
                [number] = state.next_links(node, dest)
                link = topology.links[number]
                assert link.name == network.best(route[0], route[1])[0]
