"""Stories of pairs against the paths of every epoch, and what is said to be in the way."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings

from compiler.analysis.effects import KINDS, effects
from compiler.analysis.history import History
from compiler.analysis.path_explanation import Direction, Story, story
from compiler.plan.event_kinds import EVENT_KINDS
from compiler.plan.paths.path import PathProperties, Paths
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan, decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import MS, PLAIN, SECOND, build, contents, networks, timeline

# Whom they concern is still there.
NO_OBSTACLES = {kind.word for kind in EVENT_KINDS if not kind.after}


def plan_of(topology: Topology, events: tuple[Event, ...]) -> Plan:
    return decode(encode(contents(topology, events)))


def outcome(state: NetworkState, paths: Paths, src: int, dst: int) -> tuple[object, ...]:
    found = paths.path(src, dst)
    return found.links, tuple(state.links[link] for link in found.links)


def pairs_of(plan: Plan) -> list[tuple[int, int]]:
    everyone = range(plan.core.endpoints)
    return [(src, dst) for src in everyone for dst in everyone if src < dst][:6]


# --- against the paths of every epoch ------------------------------------------------------------


@given(network=networks())
@settings(deadline=None, max_examples=80)
def test_a_story_is_what_the_paths_say(network: tuple[Topology, tuple[Event, ...]]) -> None:
    plan = plan_of(*network)
    history = History(plan)
    states = [plan.state_at(epoch.at_ns) for epoch in plan.epochs]
    all_paths = [Paths(state) for state in states]
    for src, dst in pairs_of(plan):
        seen = [
            (outcome(state, paths, src, dst), outcome(state, paths, dst, src))
            for state, paths in zip(states, all_paths, strict=True)
        ]
        changes = [i for i in range(1, len(seen)) if seen[i] != seen[i - 1]]
        for state, paths in zip(states, all_paths, strict=True):
            told = story(history, src, dst, state.at_ns)
            _check_paths(plan, told, paths.path(src, dst), paths.path(dst, src))
            _check_changes(plan, told, [i for i in changes if i <= state.epoch], "last")
            _check_changes(plan, told, [i for i in changes if i > state.epoch][::-1], "next")
            assert (told.number, told.total) == (
                sum(i <= state.epoch for i in changes),
                len(changes),
            )


def _check_paths(plan: Plan, told: Story, there: PathProperties, back: PathProperties) -> None:
    assert told.rtt_ns == there.rtt_ns
    for direction, path in ((told.there, there), (told.back, back)):
        assert direction.reachable == path.reachable
        assert [hop.link for hop in direction.hops] == [
            plan.topology.links[link].name for link in path.links
        ]
        if direction.hops:
            last = direction.hops[-1]
            assert last.total == path.totals
            slow = [hop.state.rate_bps for hop in direction.hops if hop.bottleneck]
            assert set(slow) == ({last.total.rate_bps} if last.total.rate_bps else set())
        assert bool(direction.obstacles) <= (not path.reachable)


def _check_changes(plan: Plan, told: Story, epochs: list[int], which: str) -> None:
    change = told.last if which == "last" else told.next
    if not epochs:
        assert change is None
        return
    assert change is not None
    epoch = plan.epochs[epochs[-1]]
    assert change.at_ns == epoch.at_ns
    assert change.events
    assert {event.seq for event in change.events} <= set(range(epoch.first_seq, epoch.last_seq))


@given(network=networks())
@settings(deadline=None, max_examples=60)
def test_obstacles_are_the_fewest_that_have_to_come_back(
    network: tuple[Topology, tuple[Event, ...]],
) -> None:
    plan = plan_of(*network)
    history = History(plan)
    for epoch in plan.epochs:
        state = plan.state_at(epoch.at_ns)
        for src, dst in pairs_of(plan):
            told = story(history, src, dst, epoch.at_ns).there
            if not told.reachable:
                wanted = _fewest(plan, state, _links_down(plan, epoch.last_seq), src, dst)
                assert (len(told.obstacles) or None) == wanted
                _check_since(plan, told, epoch.last_seq)


def _links_down(plan: Plan, until: int) -> set[str]:
    down: set[str] = set()
    for event in plan.events[:until]:
        if event.kind == "link_down":
            down.add(event.target)
        elif event.kind == "link_up":
            down.discard(event.target)
    return down


def _fewest(plan: Plan, state: NetworkState, down: set[str], src: int, dst: int) -> int | None:
    """By networkx, over the same links; None if there is no way."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from([src, dst])
    for link in plan.topology.links:
        if link.src == src or plan.topology.nodes[link.src].service < 0:
            lacking = (link.name in down) + (state.nodes[link.dst] != "up")
            graph.add_edge(link.src, link.dst, weight=lacking)
    try:
        length: int = nx.dijkstra_path_length(graph, src, dst)
    except nx.NetworkXNoPath:
        return None
    return length + (state.nodes[src] != "up")


def _check_since(plan: Plan, told: Direction, until: int) -> None:
    for obstacle in told.obstacles:
        mine = [event for event in plan.events if event.target == obstacle.element]
        mine = [event for event in mine if event.kind not in NO_OBSTACLES]
        before = [event for event in mine if event.seq < until]
        assert obstacle.since == (before[-1] if before else None)
        assert obstacle.until is None or obstacle.until.seq >= until


@given(network=networks(length=8))
@settings(deadline=None, max_examples=40)
def test_effects_are_the_pairs_that_change(network: tuple[Topology, tuple[Event, ...]]) -> None:
    plan = plan_of(*network)
    count = plan.core.endpoints
    for event in plan.events[-6:]:
        index = next(e.index for e in plan.epochs if e.first_seq <= event.seq < e.last_seq)
        after = Paths(plan.state_at(plan.epochs[index].at_ns))
        before = Paths(plan.state_at(plan.epochs[index - 1].at_ns)) if index else None
        wanted = dict.fromkeys(KINDS, 0)
        for src in range(count):
            for dst in range(count):
                if src != dst:
                    old = before.path(src, dst) if before else None
                    kind = _kind(old, after.path(src, dst))
                    if kind:
                        wanted[kind] += 1
        found = effects(plan, event).changed
        assert {kind: pairs.count for kind, pairs in found.items()} == wanted


def _kind(old: PathProperties | None, new: PathProperties) -> str:
    if old is None or not old.reachable:
        return "gained" if new.reachable else ""
    if not new.reachable:
        return "lost"
    if old.links != new.links:
        return "other_route"
    same = replace(old, rtt_ns=None) == replace(new, rtt_ns=None)
    return "" if same else "other_properties"


# --- content -------------------------------------------------------------------------------------


def square() -> Topology:
    """a - s1 - s2 - b, and the longer way s1 - s3 - s2."""
    slow = PLAIN._replace(delay_ns=4 * MS)
    narrow = PLAIN._replace(rate_bps=10**7, jitter_ns=3 * MS, delay_ns=5 * MS, loss_ppb=10**8)
    wires = [("a", "s1", PLAIN), ("s1", "s2", narrow), ("b", "s2", PLAIN)]
    wires += [("s1", "s3", slow), ("s3", "s2", slow)]
    return build([("a", 1), ("b", 1)], ["s1", "s2", "s3"], [(x, y, s, s) for x, y, s in wires])


def test_totals_add_up_hop_by_hop() -> None:
    plan = plan_of(square(), timeline(square()))
    told = story(History(plan), 0, 1, 0).there
    assert [
        (hop.link, hop.total.delay_ns, hop.total.rate_bps, hop.total.loss_ppb) for hop in told.hops
    ] == [
        ("a.0->s1", MS, 10**8, 0),
        ("s1->s2", 6 * MS, 10**7, 10**8),
        ("s2->b.0", 7 * MS, 10**7, 10**8),
    ]
    assert [hop.bottleneck for hop in told.hops] == [False, True, False]


def test_events_on_the_way_before_or_after_are_named() -> None:
    events = timeline(
        square(),
        (SECOND, "link_down", "s3->s1"),  # not on any way yet
        (2 * SECOND, "link_down", "s1->s2"),
        (2 * SECOND, "link_down", "s2->b.0"),
        (3 * SECOND, "link_up", "s2->b.0"),
    )
    history = History(plan_of(square(), events))
    told = story(history, 0, 1, SECOND)
    assert told.last is None
    assert told.next is not None
    assert [event.target for event in told.next.events] == ["s1->s2", "s2->b.0"]
    (obstacle,) = story(history, 0, 1, 2 * SECOND).there.obstacles
    assert (obstacle.element, obstacle.kind, obstacle.state) == ("s2->b.0", "link", "down")
    assert obstacle.since is not None
    assert obstacle.until is not None
    assert (obstacle.since.seq, obstacle.until.seq) == (4, 5)
    after = story(history, 0, 1, 4 * SECOND)
    assert [hop.link for hop in after.there.hops] == ["a.0->s1", "s1->s3", "s3->s2", "s2->b.0"]


def test_a_direct_link_that_makes_a_node_worth_going_to_less_is_named() -> None:
    """By way of x it was 3 ms; x now has to take its own link of 50 ms, and w is the better way."""
    ways = [("a", "u", 1), ("b", "v", 1), ("u", "x", 1), ("x", "y", 1), ("y", "v", 1)]
    ways += [("x", "v", 50), ("u", "w", 10), ("w", "v", 10)]
    states = [(a, b, PLAIN._replace(delay_ns=ms * MS)) for a, b, ms in ways]
    wires = [(a, b, state, state) for a, b, state in states]
    topology = build([("a", 1), ("b", 1)], ["u", "v", "w", "x", "y"], wires, "direct")
    events = timeline(topology, (0, "link_down", "x->v"), (SECOND, "link_up", "x->v"))
    told = story(History(plan_of(topology, events)), 0, 1, SECOND)
    assert [hop.link for hop in told.there.hops] == ["a.0->u", "u->w", "w->v", "v->b.0"]
    assert told.last is not None
    assert [(event.kind, event.target) for event in told.last.events] == [("link_up", "x->v")]


def test_nodes_in_the_way() -> None:
    topology = build([("a", 1), ("b", 1)], ["s1", "s2"], [(x, y, PLAIN, PLAIN) for x, y in WIRES])
    events = (
        Event(0, 0, "join", "a.0", {}, 0),
        Event(1, SECOND, "bridge_down", "s2", {}, 3),
        Event(2, 2 * SECOND, "disconnect", "a.0", {}, 4),
        Event(3, 3 * SECOND, "join", "b.0", {}, 5),
    )
    history = History(plan_of(topology, events))
    told = story(history, 0, 1, 2 * SECOND).there
    found = [(one.element, one.kind, one.state, one.since, one.until) for one in told.obstacles]
    assert found == [
        ("a.0", "instance", "cut", events[2], None),
        ("s2", "bridge", "down", events[1], None),
        ("b.0", "instance", "down", None, events[3]),
    ]
    assert history.together(0, 1) is None


WIRES = (("a", "s1"), ("s1", "s2"), ("b", "s2"))


def test_where_no_links_lead_nothing_is_in_the_way() -> None:
    topology = build([("a", 1), ("b", 1)], ["s1"], [("a", "s1", PLAIN, PLAIN)])
    told = story(History(plan_of(topology, timeline(topology))), 0, 1, 0)
    assert (told.there.reachable, told.there.obstacles, told.total) == (False, (), 0)


def test_an_instance_has_no_story_with_itself() -> None:
    history = History(plan_of(square(), timeline(square())))
    with pytest.raises(ValueError, match="different"):
        story(history, 0, 0, 0)


def test_a_change_of_the_queue_alone_is_a_change() -> None:
    events = (
        *timeline(square()),
        Event(2, SECOND, "set", "s1->s2", {"queue_bytes": 30_000}, 9),
    )
    told = story(History(plan_of(square(), events)), 0, 1, SECOND)
    assert told.last is not None
    assert told.last.events == (events[2],)
    state: LinkState = told.there.hops[1].state
    assert state.queue_bytes == 30_000
