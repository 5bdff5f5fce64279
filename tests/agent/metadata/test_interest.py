"""Interest masks against a brute force over the paths of all pairs."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.paths.path import Paths
from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from runtime.agent.metadata.interest import Interest
from runtime.coordinator.placement import place
from tests.agent.hosts import dumbbell
from tests.agent.metadata.reference_interest import Interest as Reference
from tests.plan.networks import PLAIN, build, contents, joins, networks
from tests.plan.topologies import scale_free


def states(topology: Topology, events: tuple[Event, ...]) -> list[NetworkState]:
    plan = decode(encode(contents(topology, events)))
    return [plan.state_at(epoch.at_ns) for epoch in plan.epochs]


def brute_force(
    state: NetworkState, placement: list[int]
) -> tuple[list[int], dict[tuple[int, int], int]]:
    """The mask of every link, and of every flow, from the paths of all pairs."""
    count, paths = state.core.endpoints, Paths(state)
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
@given(networks(services=4, bridges=6, length=10), st.integers(1, 150), st.integers(0, 2**32))
def test_masks_are_those_of_all_pairs(
    network: tuple[Topology, tuple[Event, ...]], hosts: int, seed: int
) -> None:
    topology, events = network
    placement = placed(topology, hosts, random.Random(seed))
    previous: Interest | None = None
    for state in states(topology, events):
        masks, flows = brute_force(state, placement)
        fresh = Interest(state, placement, hosts)
        chained = Interest(state, placement, hosts, previous)
        for interest in (fresh, chained):
            assert [interest.of_link(link) for link in range(len(masks))] == masks
            assert {pair: interest.of_flow(*pair) for pair in flows} == flows
            for host in range(0, hosts, 7):
                shared = [mask for mask in masks if mask >> host & 1]
                assert interest.neighbours(host) == union(shared) & ~(1 << host)
        previous = chained


def union(masks: list[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


@pytest.mark.parametrize("hosts", [4, 64])
def test_c_agrees_with_python_on_a_large_network(hosts: int) -> None:
    plan = compile_source(scale_free(1000, events=30)).plan
    placement = place(plan.topology, hosts)
    previous: Interest | None = None
    for at_s in (0, 1, 10, 31):
        state = plan.state_at(at_s * 1_000_000_000)
        previous = Interest(state, placement, hosts, previous)
        reference = Reference(state, placement, hosts)
        links = range(len(state.links))
        assert list(map(previous.of_link, links)) == list(map(reference.of_link, links))
        for src, dst in ((0, 1), (665, 3), (100, 500)):
            assert previous.of_flow(src, dst) == reference.of_flow(src, dst)


def test_an_epoch_that_changes_figures_only_keeps_the_masks() -> None:
    topology = dumbbell(4)
    plan = decode(encode(contents(topology, tuple(joins(topology)))))
    state = plan.state_at(0)
    first = Interest(state, [0, 1] * 4 + [-1, -1], 2)
    slower = list(state.links)
    slower[0] = slower[0]._replace(rate_bps=1, delay_ns=7)
    again = Interest(replace(state, epoch=1, links=slower), [0, 1] * 4 + [-1, -1], 2, first)
    assert again.epoch == 1
    assert again._parts is first._parts
    slower[0] = slower[0]._replace(rate_bps=0)
    free = Interest(replace(state, epoch=2, links=slower), [0, 1] * 4 + [-1, -1], 2, again)
    assert free._parts is not first._parts
    assert (first.of_link(0), free.of_link(0)) == (1, 0)


def test_routes_in_a_circle_are_an_error() -> None:
    """s1 and s2 send what is for the other side to each other."""
    topology = dumbbell(1)
    state = decode(encode(contents(topology, tuple(joins(topology))))).state_at(0)
    table = array("H", state.table)
    for cell in range(len(table)):
        table[cell] = 1
    with pytest.raises(PlanError, match="epoch 0 has routes that cannot be followed"):
        Interest(replace(state, table=table), [0, 1, -1, -1])


def test_routes_over_a_link_that_is_down_are_an_error() -> None:
    topology = dumbbell(1)
    state = decode(encode(contents(topology, tuple(joins(topology))))).state_at(0)
    links = [
        one._replace(up=one.up and link.name not in ("s1->s2", "s2->s1"))
        for one, link in zip(state.links, topology.links, strict=True)
    ]
    with pytest.raises(PlanError, match="cannot be followed"):
        Interest(replace(state, links=links), [0, 1, -1, -1])


def test_a_network_without_instances_interests_nobody() -> None:
    topology = build([], ["s1", "s2"], [("s1", "s2", PLAIN, PLAIN)])
    state = decode(encode(contents(topology, ()))).state_at(0)
    interest = Interest(state, [-1, -1], 3)
    assert interest.of_link(0) == 0
    assert interest.neighbours(1) == 0
