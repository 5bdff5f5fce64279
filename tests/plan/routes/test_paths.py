"""Composition of path properties by hand-worked figures; networkx covers the random ones."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings

from compiler.plan.format import PlanError
from compiler.plan.paths import many_pairs
from compiler.plan.paths.path import PathProperties, Paths, path
from compiler.plan.properties import LinkState
from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import MS, PLAIN, SECOND, build, contents, listing, networks, timeline
from tests.plan.test_oracle import moments


def chain(
    *links: LinkState, at_ns: int = 0, events: tuple[Event, ...] | None = None
) -> NetworkState:
    """a - p1 - p2 … - z with these links, the same in both directions."""
    names = ["a", *(f"p{i}" for i in range(1, len(links))), "z"]
    wired = [(names[i], names[i + 1], link, link) for i, link in enumerate(links)]
    topology = build([("a", 1), ("z", 1)], names[1:-1], wired)
    return decode(encode(contents(topology, events or timeline(topology)))).state_at(at_ns)


def composed(*links: LinkState) -> PathProperties:
    return path(chain(*links), 0, 1)


def test_papers_example() -> None:
    """Kollaps, section 3: delays add, the narrowest link limits, both directions on their own."""
    topology = listing()
    found = path(decode(encode(contents(topology, timeline(topology)))).state_at(0), 2, 0)
    assert [topology.links[link].name for link in found.links] == [
        "client.0->s2",
        "s2->s1",
        "s1->server.0",
    ]
    assert (found.totals.delay_ns, found.totals.rate_bps) == (23_400_000 + MS + MS, 50_000_000)
    assert found.rtt_ns == (23_400_000 + MS + MS) + (9_100_000 + MS + 9_100_000)
    assert (found.totals.jitter_ns, found.totals.loss_ppb) == (1_200_000, 10_000_000)


@pytest.mark.parametrize(
    ("jitters", "total"),
    [
        ((0, 0), 0),
        ((3, 4), 5),
        ((1, 1), 1),  # 1.414
        ((1, 1, 1), 2),  # 1.732
        ((2, 1, 1), 2),  # sqrt(6) = 2.449
        ((2, 1, 1, 1), 3),  # sqrt(7) = 2.646
        ((10**9, 1), 10**9),
        ((3 * 10**17, 4 * 10**17), 5 * 10**17),  # beyond what a double holds
    ],
)
def test_jitter_is_the_root_of_the_sum_of_squares(jitters: tuple[int, ...], total: int) -> None:
    links = [PLAIN._replace(jitter_ns=jitter) for jitter in jitters]
    assert composed(*links).totals.jitter_ns == total


@pytest.mark.parametrize(
    ("losses", "total"),
    [
        ((0, 0), 0),
        ((10**7, 0), 10**7),
        ((10**7, 10**7), 19_900_000),
        ((5 * 10**8, 5 * 10**8), 75 * 10**7),
        ((10**9, 10**7), 10**9),
        ((1, 1), 2),  # 2 - 1e-9
        ((1, 5 * 10**8), 500_000_001),  # 500,000,000.5 exactly: half goes up
        ((31_623, 31_623), 63_245),  # 63,246 - 1.00001
        ((1,) * 5, 5),
        ((999_999_999, 999_999_999), 10**9),  # 1,000,000,000 - 1e-9
    ],
)
def test_loss_is_exact_and_rounded_once(losses: tuple[int, ...], total: int) -> None:
    links = [PLAIN._replace(loss_ppb=loss) for loss in losses]
    assert composed(*links).totals.loss_ppb == total


@pytest.mark.parametrize(
    ("rates", "least"), [((0, 0), 0), ((0, 5), 5), ((5, 0), 5), ((7, 5, 0, 9), 5)]
)
def test_rate_is_the_least_and_zero_is_unlimited(rates: tuple[int, ...], least: int) -> None:
    assert composed(*(PLAIN._replace(rate_bps=rate) for rate in rates)).totals.rate_bps == least


def test_a_direct_link_between_services() -> None:
    topology = build([("a", 1), ("z", 1)], [], [("a", "z", PLAIN, PLAIN._replace(delay_ns=5))])
    found = path(decode(encode(contents(topology, timeline(topology)))).state_at(0), 0, 1)
    assert (found.totals.delay_ns, found.rtt_ns, found.links) == (MS, MS + 5, (0,))


def test_one_direction_down_is_reachable_without_rtt() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "link_down", "s2->s1"))
    paths = Paths(decode(encode(contents(topology, events))).state_at(SECOND))
    there, back = paths.path(0, 2), paths.path(2, 0)
    assert (there.reachable, there.rtt_ns) == (True, None)
    assert back == PathProperties(2, 0, None, None, ())


def test_instances_that_are_cut_or_down_are_unreachable() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "disconnect", "client.0"), (SECOND, "leave", "client.1"))
    paths = Paths(decode(encode(contents(topology, events))).state_at(SECOND))
    assert not any(paths.path(0, dst).reachable for dst in (2, 3))
    assert not any(paths.path(src, 0).reachable for src in (2, 3))
    assert paths.path(0, 1).reachable


def test_no_path_to_itself() -> None:
    with pytest.raises(ValueError, match="two different"):
        path(chain(PLAIN, PLAIN), 0, 0)


def test_a_circle_in_the_table_is_an_error_not_a_hang() -> None:
    state = chain(PLAIN, PLAIN, PLAIN, PLAIN)  # a - p1 - p2 - p3 - z
    core, p2 = state.core, 3
    column = core.column_of[core.anchor[1]]
    back = [state.topology.links[link].name for link in core.out[core.row_of[p2]]].index("p2->p1")
    state.table[core.row_of[p2] * len(core.columns) + column] = back + 1
    with pytest.raises(PlanError, match=r"routes\.bin: epoch 0 routes in a circle"):
        path(state, 0, 1)


def test_a_route_over_a_link_that_is_down_is_an_error() -> None:
    topology = listing()
    state = decode(encode(contents(topology, timeline(topology)))).state_at(0)
    link = next(i for i, item in enumerate(topology.links) if item.name == "s1->s2")
    links = list(state.links)
    links[link] = links[link]._replace(up=False)
    with pytest.raises(PlanError, match="over link 4, which is down"):
        path(replace(state, links=links), 0, 2)


# All pairs at once: what compiler.plan.paths.path says of each, in order.

Case = tuple[Topology, tuple[Event, ...]]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=5, bridges=8, length=20))
def test_agrees_with_paths_one_by_one(case: Case) -> None:
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    for at_ns in moments(events):
        state = plan.state_at(at_ns)
        paths = Paths(state)
        joined = [i for i in range(state.core.endpoints) if state.nodes[i] != "down"]
        some = joined[::2]
        for sources, dests in ((joined, joined), (some, joined), (joined, some)):
            wanted = [paths.path(a, b) for a in sources for b in dests if a != b]
            for block in (1, 2, 64):
                with patch.object(many_pairs, "BLOCK", block):
                    assert list(many_pairs.between(state, sources, dests)) == wanted


def test_nobody_there() -> None:
    state = decode(encode(contents(listing(), timeline(listing())))).state_at(0)
    assert list(many_pairs.between(state, [], [])) == []
    assert list(many_pairs.between(state, [0], [])) == []
    assert list(many_pairs.between(state, [0], [0])) == []
