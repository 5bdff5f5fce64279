"""Routes repaired event by event against routes computed anew, and what a repair looks at."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.plan.format import PlanError
from compiler.plan.properties import LinkState
from compiler.plan.reader import decode
from compiler.plan.routes.behind import RouteGroup, route_groups
from compiler.plan.routes.routing import Routes, snapshots
from compiler.plan.state import epochs
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import (
    MS,
    PLAIN,
    SECOND,
    RandomTimeline,
    Wire,
    build,
    contents,
    listing,
    networks,
    random_topology,
    timeline,
)

Case = tuple[Topology, tuple[Event, ...]]


def check_against_recomputation(topology: Topology, events: tuple[Event, ...]) -> None:
    repaired = Routes(topology)
    states: dict[int, LinkState] = {}
    table = list(repaired.table)
    for epoch in epochs(topology, events):
        states.update(epoch.links)
        delta = repaired.apply(epoch.links)
        anew = Routes(topology)
        anew.apply(sorted(states.items()))
        assert repaired.table == anew.table
        assert list(delta.cells) == sorted(set(delta.cells))
        for cell, value in zip(delta.cells, delta.values, strict=True):
            assert table[cell] != value
            table[cell] = value
        assert table == list(repaired.table)


@settings(max_examples=200, deadline=None)
@given(networks(services=4, bridges=8, length=25))
def test_repair_equals_recomputation(case: Case) -> None:
    check_against_recomputation(*case)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_repair_equals_recomputation_in_larger_networks(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, 10, 40)
    check_against_recomputation(topology, RandomTimeline(rnd, topology).draw(40))


def by_pair(groups: Iterable[RouteGroup]) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """The next links of each (node, destination)."""
    for group in groups:
        for dest in group.dests():
            yield (group.node, dest), group.links


@settings(max_examples=100, deadline=None)
@given(networks(services=3, bridges=6, length=12))
def test_changes_lead_from_each_epoch_to_the_next(case: Case) -> None:
    """Applying route_groups one epoch after the other gives every node's next link."""
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    for epoch in plan.epochs:
        groups = list(plan.route_groups(epoch.index))
        keys = [(group.node, group.links) for group in groups]
        assert keys == sorted(set(keys))
        assert all(group.dests() == sorted(set(group.dests())) for group in groups)
        for pair, links in by_pair(groups):
            assert known.get(pair, ()) != links
            known[pair] = links
        state = plan.state_at(epoch.at_ns)
        for node in range(len(topology.nodes)):
            for dest in range(plan.core.endpoints):
                assert known.get((node, dest), ()) == state.next_links(node, dest)


@settings(max_examples=50, deadline=None)
@given(networks(services=3, bridges=6, length=12))
def test_an_engine_can_start_in_any_epoch(case: Case) -> None:
    """All routes of an epoch at once are what the changes up to it add up to."""
    topology, events = case
    plan = decode(encode(contents(topology, events)))
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    for epoch in plan.epochs:
        known.update(by_pair(plan.route_groups(epoch.index)))
        whole = by_pair(plan.route_groups(epoch.index, whole=True))
        assert dict(whole) == {pair: links for pair, links in known.items() if links}


def test_groups_name_each_node_and_link_once_in_order() -> None:
    plan = decode(encode(contents(listing(), timeline(listing()))))
    groups = list(plan.route_groups(0))
    keys = [(group.node, group.links) for group in groups]
    assert keys == sorted(set(keys))
    names = [node.name for node in plan.topology.nodes]
    server, s1 = names.index("server.0"), names.index("s1")
    assert RouteGroup(server, (plan.core.access_out[server],), ((1, 3),)) in groups
    assert [group.dests() for group in groups if group.node == s1] == [[0], [1], [2, 3]]
    assert len(list(by_pair(groups))) == 4 * 3 + 2 * 4


def test_an_access_link_changes_no_route() -> None:
    topology = listing()
    events = timeline(
        topology,
        (SECOND, "crash", "server.0"),
        (2 * SECOND, "link_down", "client.1->s2"),
        (3 * SECOND, "disconnect", "client.0"),
    )
    deltas = [delta for _, delta in snapshots(topology, events)]
    assert [len(delta.cells) for delta in deltas] == [2, 0, 0, 0]


def test_a_bridge_that_leaves_takes_its_routes_along() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "bridge_down", "s2"), (2 * SECOND, "bridge_up", "s2"))
    plan = decode(encode(contents(topology, events)), lazy=False)
    s1 = next(i for i, node in enumerate(topology.nodes) if node.name == "s1")
    [towards] = plan.state_at(0).next_links(s1, 2)
    assert topology.links[towards].name == "s1->s2"
    assert plan.state_at(SECOND).next_links(s1, 2) == ()
    assert plan.state_at(2 * SECOND).next_links(s1, 2) == (towards,)
    gone = [links for (node, _), links in by_pair(plan.route_groups(1)) if node == s1]
    assert gone == [(), ()]


@pytest.mark.parametrize("changed", ["rate_bps", "loss_ppb", "jitter_ns", "queue_bytes"])
def test_what_is_no_delay_changes_no_route(changed: str) -> None:
    topology = listing()
    routes = Routes(topology)
    link = next(i for i, item in enumerate(topology.links) if item.name == "s1->s2")
    routes.apply((i, item.state) for i, item in enumerate(topology.links))
    state = topology.links[link].state._replace(**{changed: 77})  # type: ignore[arg-type]
    assert len(routes.apply([(link, state)]).cells) == 0


def ring(routing: str = "delay") -> Topology:
    """a to z over north (2 ms), or over east and west (1 ms together)."""
    near, mid = PLAIN._replace(delay_ns=MS // 4), PLAIN._replace(delay_ns=MS)
    links = [("a", "m", near, near), ("m", "north", mid, mid), ("north", "n", mid, mid)]
    links += [("m", "east", near, near), ("east", "west", near, near), ("west", "n", near, near)]
    links += [("z", "n", near, near)]
    return build([("a", 1), ("z", 1)], ["m", "n", "north", "east", "west"], links, routing)


def route_names(topology: Topology, *happenings: tuple[int, str, str]) -> list[str]:
    plan = decode(encode(contents(topology, timeline(topology, *happenings))), lazy=False)
    state, node, found = plan.state_at(plan.end_ns), 0, []
    while node != 1:
        [number] = state.next_links(node, 1)
        link = topology.links[number]
        found.append(link.name)
        node = link.dst
    return found


def test_metric_is_delay_or_hops() -> None:
    assert route_names(ring("delay"))[1] == "m->east"
    assert route_names(ring("hops"))[1] == "m->north"


@pytest.mark.parametrize("slow", ["east", "north"])
def test_as_many_hops_go_by_delay_before_names(slow: str) -> None:
    """The one whose name came first was taken, whatever its delay."""
    links = []
    for name in ("east", "north"):
        state = PLAIN._replace(delay_ns=100 * MS if name == slow else MS)
        links += [("m", name, state, state), (name, "n", state, state)]
    links += [("a", "m", PLAIN, PLAIN), ("z", "n", PLAIN, PLAIN)]
    net = build([("a", 1), ("z", 1)], ["m", "n", "north", "east"], links, "hops")
    quick = "north" if slow == "east" else "east"
    assert route_names(net)[1] == f"m->{quick}"


def matrix() -> Topology:
    """m to n directly (9 ms), or by way of a third place (2 ms together); a place behind m."""
    quick, slow = PLAIN._replace(delay_ns=MS), PLAIN._replace(delay_ns=9 * MS)
    links = [("a", "behind", PLAIN, PLAIN), ("behind", "m", quick, quick)]
    links += [("m", "n", slow, slow), ("m", "third", quick, quick), ("third", "n", quick, quick)]
    links += [("z", "n", PLAIN, PLAIN)]
    return build([("a", 1), ("z", 1)], ["m", "n", "third", "behind"], links, "direct")


def test_a_direct_link_is_taken_while_it_is_up() -> None:
    """By the others too: behind m a packet has no say in what m does with it."""
    net = matrix()
    assert route_names(net)[1:3] == ["behind->m", "m->n"]
    around = ["behind->m", "m->third", "third->n"]
    assert route_names(net, (SECOND, "link_down", "m->n"))[1:4] == around
    again = [(SECOND, "link_down", "m->n"), (2 * SECOND, "link_up", "m->n")]
    assert route_names(net, *again) == route_names(net)
    assert route_names(net, (SECOND, "link_down", "n->m")) == route_names(net)


def test_others_choose_by_what_it_costs_with_the_direct_link() -> None:
    """One who could go by m, which is near but has a slow link, goes by `far`, which has none."""
    quick, slow = PLAIN._replace(delay_ns=MS), PLAIN._replace(delay_ns=9 * MS)
    mid = PLAIN._replace(delay_ns=3 * MS)
    links = [("a", "in", PLAIN, PLAIN), ("in", "m", quick, quick), ("m", "n", slow, slow)]
    links += [("m", "third", quick, quick), ("third", "n", quick, quick), ("z", "n", PLAIN, PLAIN)]
    links += [("in", "far", mid, mid), ("far", "third", mid, mid)]
    net = build([("a", 1), ("z", 1)], ["in", "m", "n", "third", "far"], links, "direct")
    assert route_names(net)[1:4] == ["in->far", "far->third", "third->n"]
    down = route_names(net, (SECOND, "link_down", "m->n"))
    assert down[1:4] == ["in->m", "m->third", "third->n"]
    again = [(SECOND, "link_down", "m->n"), (2 * SECOND, "link_up", "m->n")]
    assert route_names(net, *again) == route_names(net), "in is farther away again"


def test_a_direction_fails_alone() -> None:
    names = route_names(ring(), (SECOND, "link_down", "west->n"))
    assert names[1] == "m->north"
    names = route_names(ring(), (SECOND, "link_down", "n->west"))
    assert names[1] == "m->east"


@pytest.mark.parametrize("order", [["b", "c", "B"], ["c", "B", "b"]])
def test_ties_go_to_the_name_that_sorts_first(order: list[str]) -> None:
    """By code points, so capitals come before small letters, whatever the order of declaration."""
    links = [("a", "in", PLAIN, PLAIN), ("z", "out", PLAIN, PLAIN)]
    links += [("in", name, PLAIN, PLAIN) for name in order]
    links += [(name, "out", PLAIN, PLAIN) for name in order]
    topology = build([("a", 1), ("z", 1)], ["in", "out", *order], links)
    assert route_names(topology)[1] == "in->B"


@pytest.mark.parametrize("routing", ["delay", "hops", "direct"])
@pytest.mark.parametrize("turned", [False, True])
def test_of_links_between_two_the_faster_is_taken_then_the_first_by_name(
    routing: str, *, turned: bool
) -> None:
    """Between bridges, and at an instance; whatever the order of declaration."""
    quick, slow = PLAIN._replace(delay_ns=MS), PLAIN._replace(delay_ns=9 * MS)
    links: list[Wire] = [
        *(("a", "p", state, state, name) for name, state in (("b1", quick), ("a1", slow))),
        *(("p", "q", quick, slow, name) for name in ("y", "x", "Z")),
        ("z", "q", PLAIN, PLAIN),
    ]
    net = build([("a", 1), ("z", 1)], ["p", "q"], links[::-1] if turned else links, routing)
    assert route_names(net) == ["b1:a.0->p", "Z:p->q", "q->z.0"]
    gone = [(SECOND, "link_down", name) for name in ("b1:a.0->p", "Z:p->q", "Z:q->p")]
    assert route_names(net, *gone) == ["a1:a.0->p", "x:p->q", "q->z.0"]
    back = [(2 * SECOND, "link_up", name) for _, _, name in gone]
    assert route_names(net, *gone, *back) == route_names(net)


def test_fewer_hops_win_at_equal_delay() -> None:
    none = PLAIN._replace(delay_ns=0)
    links = [("a", "p", PLAIN, PLAIN), ("p", "b", none, none), ("b", "q", none, none)]
    links += [("p", "q", none, none), ("z", "q", PLAIN, PLAIN)]
    topology = build([("a", 1), ("z", 1)], ["p", "q", "b"], links)
    assert route_names(topology) == ["a.0->p", "p->q", "q->z.0"]


def test_instances_never_forward() -> None:
    links = [("a", "p", PLAIN, PLAIN), ("m", "p", PLAIN, PLAIN), ("m", "q", PLAIN, PLAIN)]
    links += [("z", "q", PLAIN, PLAIN)]
    topology = build([("a", 1), ("m", 1), ("z", 1)], ["p", "q"], links)
    state = decode(encode(contents(topology, timeline(topology)))).state_at(0)
    p = 3
    assert state.next_links(p, 2) == ()
    [link] = state.next_links(p, 1)
    assert topology.links[link].name == "p->m.0"


def test_a_table_beyond_all_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.plan.routes.core.MAX_CELLS", 3)
    with pytest.raises(PlanError, match="between 2 forwarding or multi-homed nodes and 2"):
        Routes(listing())


def test_a_delta_of_nothing_groups_to_nothing() -> None:
    topology = listing()
    routes = Routes(topology)
    assert list(route_groups(routes.core, routes.apply([]), initial=False)) == []
