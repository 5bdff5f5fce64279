"""Who is apart for good, and since when, against all pairs in all epochs with networkx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings

from compiler.feasibility import disconnected_since
from compiler.feasibility.disconnected_since import Parting, partings
from compiler.plan.state import StateAt, epochs
from compiler.plan.types import Event, Topology
from tests.plan.networks import PLAIN, SECOND, build, networks, timeline

Pair = tuple[int, int]


def joined_pairs(topology: Topology, state: StateAt) -> set[Pair]:
    """Pairs of instances with a path each way that leads through bridges only."""
    instances = [i for i, node in enumerate(topology.nodes) if node.service >= 0]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(topology.nodes)))
    graph.add_edges_from(
        (link.src, link.dst)
        for link, now in zip(topology.links, state.links, strict=True)
        if now.up
    )
    found = set()
    for a, b in combinations(instances, 2):
        between = graph.subgraph({*range(len(instances), len(topology.nodes)), a, b})
        if nx.has_path(between, a, b) and nx.has_path(between, b, a):
            found.add((a, b))
    return found


def history(
    topology: Topology, events: Sequence[Event]
) -> tuple[list[tuple[int, set[Pair]]], set[Pair]]:
    """The joined pairs by the beginning of the epoch; and the pairs that are up at the end."""
    state = StateAt(topology)
    found = []
    for epoch in epochs(topology, events):
        state.advance(epoch)
        found.append((epoch.at_ns, joined_pairs(topology, state)))
    linked = {link.src for link in topology.links}
    up = [i for i in sorted(linked) if topology.nodes[i].service >= 0 and state.nodes[i] == "up"]
    return found, set(combinations(up, 2))


def pairs_of(parting: Parting) -> Iterator[Pair]:
    for one, other in combinations(parting.sides, 2):
        for a in one:
            for b in other:
                yield (min(a, b), max(a, b))


@settings(max_examples=150, deadline=None)
@given(networks(services=4, bridges=6, length=14))
def test_partings_are_what_all_pairs_say(drawn: tuple[Topology, tuple[Event, ...]]) -> None:
    topology, events = drawn
    found = partings(topology, events, ())
    past, up = history(topology, events)
    said = [pair for parting in found for pair in pairs_of(parting)]
    assert len(said) == len(set(said)), "each pair once"
    assert set(said) == up - past[-1][1]
    for parting in found:
        assert not parting.bound
        pairs = set(pairs_of(parting))
        for at_ns, joined in past:
            if at_ns >= parting.since_ns or parting.never:
                assert not pairs & joined
        before = [joined for at_ns, joined in past if at_ns < parting.since_ns]
        assert parting.never or pairs & before[-1], "and not for longer than that"


def test_links_in_a_flap_count_as_up() -> None:
    topology = build(
        [("a", 1), ("b", 1)], ["s"], [("a", "s", PLAIN, PLAIN), ("b", "s", PLAIN, PLAIN)]
    )
    events = timeline(topology, (SECOND, "link_down", "a.0->s"))
    assert partings(topology, events, ()) == [Parting(((0,), (1,)), SECOND)]
    flapping = [i for i, link in enumerate(topology.links) if link.name == "a.0->s"]
    assert partings(topology, events, flapping) == []


def test_too_much_work_leaves_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = build(
        [("a", 2), ("b", 1)],
        ["s", "t"],
        [("a", "s", PLAIN, PLAIN), ("b", "t", PLAIN, PLAIN), ("s", "t", PLAIN, PLAIN)],
    )
    # The cut at 1 s is for good. A bridge that comes back in between takes a look at everything.
    events = timeline(
        topology,
        (1 * SECOND, "link_down", "s->t"),
        (2 * SECOND, "bridge_down", "t"),
        (3 * SECOND, "bridge_up", "t"),
    )
    assert partings(topology, events, ()) == [Parting(((0, 1), (2,)), SECOND)]
    monkeypatch.setattr(disconnected_since, "WORK", 0)
    assert partings(topology, events, ()) == [Parting(((0, 1), (2,)), 2 * SECOND, bound=True)]


def test_partings_of_a_full_mesh_name_each_instance_once() -> None:
    """Every instance is in a position of its own, and never reaches those of its service."""
    size = 40
    topology = build([("a", size), ("b", size)], [], [("a", "b", PLAIN, PLAIN)])
    assert len(partings(topology, timeline(topology), ())) == 2 * (size - 1)
