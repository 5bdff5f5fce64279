"""Interest masks against a brute force over the paths of all pairs."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.plan.paths import Paths
from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from runtime.agent.interest import Interest
from tests.plan.networks import contents, networks


def states(topology: Topology, events: tuple[Event, ...]) -> list[NetworkState]:
    plan = decode(encode(contents(topology, events)))
    return [plan.state_at(epoch.at_ns) for epoch in plan.epochs]


def brute_force(
    state: NetworkState, placement: list[int]
) -> tuple[list[int], dict[tuple[int, int], int]]:
    """The mask of every link, and of every flow, from the paths of all pairs."""
    count, paths = state.core.instances, Paths(state)
    found = {
        (src, dst): paths.path(src, dst).links
        for src in range(count)
        for dst in range(count)
        if src != dst
    }
    masks = [0] * len(state.links)
    for (src, _), links in found.items():
        for link in links:
            if state.links[link].rate_bps:
                masks[link] |= 1 << placement[src]
    flows = {}
    for (src, dst), links in found.items():
        mask = 0
        for link in links:
            mask |= masks[link]
        flows[src, dst] = mask & ~(1 << placement[src])
    return masks, flows


def placed(topology: Topology, hosts: int, rnd: random.Random) -> list[int]:
    return [rnd.randrange(hosts) if node.service >= 0 else -1 for node in topology.nodes]


@settings(max_examples=150, deadline=None)
@given(networks(services=4, bridges=6, length=10), st.integers(1, 80), st.integers(0, 2**32))
def test_masks_are_those_of_all_pairs(
    network: tuple[Topology, tuple[Event, ...]], hosts: int, seed: int
) -> None:
    topology, events = network
    placement = placed(topology, hosts, random.Random(seed))
    for state in states(topology, events):
        interest = Interest(state, placement, hosts)
        masks, flows = brute_force(state, placement)
        assert [interest.of_link(link) for link in range(len(masks))] == masks
        assert {pair: interest.of_flow(*pair) for pair in flows} == flows
