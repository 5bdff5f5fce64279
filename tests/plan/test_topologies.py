"""The generated networks that measurements and tests of scale use: their bytes and their shape."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter

import networkx as nx
import pytest

from compiler.pipeline import compile_source
from compiler.plan.types import Topology
from tests.plan.topologies import instances, scale_free


def graph(topology: Topology) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(range(len(topology.nodes)))
    found.add_edges_from((link.src, link.dst) for link in topology.links)
    return found


def test_the_text_is_the_same_everywhere() -> None:
    """Figures are comparable only as long as this holds; change it on purpose."""
    digest = hashlib.sha256(scale_free(1000).encode()).hexdigest()
    assert digest == "bae4d4fc8f4062bcdd0f86302814d02c95ca8734107173dafc7cdf5389080196"
    assert scale_free(1000, seed=2) != scale_free(1000)


def test_sizes_are_those_of_the_paper() -> None:
    found = {size: (instances(size), size - instances(size)) for size in (1000, 2000, 4000, 10000)}
    assert found == {
        1000: (666, 334),
        2000: (1344, 656),
        4000: (2668, 1332),
        10000: (6667, 3333),
    }


def test_the_network_is_scale_free() -> None:
    """m = 2 over the bridges, one link for each instance, and a few bridges with many links."""
    topology = compile_source(scale_free(1000, events=0)).topology
    whole = graph(topology)
    assert nx.is_connected(whole)
    assert [whole.degree[node] for node in range(666)] == [1] * 666
    core = whole.subgraph(range(666, 1000))
    assert core.number_of_edges() == 1 + 2 * (334 - 2)
    degrees = sorted((degree for _, degree in core.degree), reverse=True)
    assert degrees[0] > 30
    assert degrees[len(degrees) // 2] <= 4
    assert min(degrees) >= 1


def test_events_are_mixed_and_one_a_second() -> None:
    """Compiling proves them legal; a warning would mean an event that does nothing, but for links
    that a random network has and need not use."""
    found = compile_source(scale_free(300, events=300))
    assert {one.code for one in found.diagnostics} <= {"TS0925"}
    events = [event for event in found.events if event.at_ns]
    assert sorted({event.at_ns for event in events}) == [n * 10**9 for n in range(1, 302)]
    kinds = Counter(event.kind for event in events)
    assert set(kinds) == {"link_up", "link_down", "set", "quit"}
    changed = Counter(key for event in events for key in event.args)
    assert {"delay_ns", "rate_bps", "loss_ppb", "jitter_ns"} <= set(changed)
    on_access = sum("." in event.target for event in events)
    assert 0.3 < on_access / len(events) < 0.7
    moments = [list(same) for _, same in itertools.groupby(events, lambda event: event.at_ns)]
    assert {len(same) for same in moments[:-1]} == {1, 2}  # one direction, or both


def test_too_small_a_network_is_refused() -> None:
    with pytest.raises(ValueError, match="bridges"):
        scale_free(6)
