"""compiler.analysis.network_diff against a comparison of all pairs in all epochs, one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.analysis import path_diff
from compiler.analysis.network_diff import NetworkDifference, compare
from compiler.pipeline import compile_source
from compiler.plan.paths.path import PathProperties, Paths
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan, decode
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import (
    MS,
    PLAIN,
    RandomTimeline,
    build,
    contents,
    random_topology,
)

Span = tuple[int, int, str, str, int]  # from, to, source, destination, mask


def plan_of(topology: Topology, events: tuple[Event, ...]) -> Plan:
    return decode(encode(contents(topology, events)))


def spans(network: NetworkDifference, a: Plan) -> list[Span]:
    """All groups, pair by pair."""
    found = []
    for group in network.groups:
        assert list(group.pairs) == sorted(set(group.pairs))
        for pair in group.pairs:
            src, dst = (a.topology.nodes[node].name for node in network.names(pair))
            found.append((group.from_ns, group.to_ns, src, dst, group.mask))
    return sorted(found)


# --- the slow way --------------------------------------------------------------------------------


def mask_of(a: PathProperties, b: PathProperties, plans: tuple[Plan, Plan]) -> int:
    if not a.reachable or not b.reachable:
        if a.reachable == b.reachable:
            return 0
        return path_diff.ONLY_A if a.reachable else path_diff.ONLY_B
    names = [
        [plan.topology.links[link].name for link in path.links]
        for plan, path in zip(plans, (a, b), strict=True)
    ]
    mask = path_diff.ROUTE if names[0] != names[1] else 0
    for field in ("rate_bps", "delay_ns", "jitter_ns", "loss_ppb"):
        differs = getattr(a.totals, field) != getattr(b.totals, field)
        mask |= path_diff.PROPERTY[field] if differs else 0
    return mask


def instances(plan: Plan) -> dict[str, int]:
    return {n.name: i for i, n in enumerate(plan.topology.nodes) if n.service >= 0}


def brute_force(a: Plan, b: Plan) -> list[Span]:
    names = [name for name in instances(a) if name in instances(b)]
    end = min(a.end_ns, b.end_ns)
    moments = sorted({0, *(e.at_ns for e in (*a.epochs, *b.epochs) if e.at_ns < end)})
    masks: dict[tuple[str, str], list[int]] = {(x, y): [] for x in names for y in names if x != y}
    for at_ns in moments:
        one, two = Paths(a.state_at(at_ns)), Paths(b.state_at(at_ns))
        for x, y in masks:
            first = one.path(instances(a)[x], instances(a)[y])
            second = two.path(instances(b)[x], instances(b)[y])
            masks[x, y].append(mask_of(first, second, (a, b)))
    found = [span for pair in masks for span in _runs(pair, masks[pair], [*moments, end])]
    return sorted(found)


def _runs(pair: tuple[str, str], masks: list[int], times: list[int]) -> Iterator[Span]:
    since = 0
    for i, mask in enumerate(masks):
        if i + 1 == len(masks) or masks[i + 1] != mask:
            if mask and times[since] < times[i + 1]:
                yield (times[since], times[i + 1], *pair, mask)
            since = i + 1


# --- properties ----------------------------------------------------------------------------------


Spec = tuple[dict[str, int], list[str], dict[tuple[str, str], tuple[LinkState, LinkState]]]


def _state(rnd: random.Random) -> LinkState:
    delay = rnd.choice([MS, 2 * MS, 3 * MS])
    loss = rnd.choice([0, 0, 10**7])
    return PLAIN._replace(delay_ns=delay, loss_ppb=loss, rate_bps=rnd.choice([0, 10**7, 10**8]))


def spec(rnd: random.Random) -> Spec:
    """Few names, so that two of these have most in common."""
    services = {name: rnd.randint(1, 3) for name in "abc"[: rnd.randint(1, 3)]}
    bridges = [f"s{i}" for i in range(rnd.randint(1, 5))]
    links = {(name, rnd.choice(bridges)): (_state(rnd), _state(rnd)) for name in services}
    for _ in range(rnd.randint(0, 8)):
        _link(rnd, services, bridges, links)
    return services, bridges, links


def _link(rnd: random.Random, services: dict[str, int], bridges: list[str], links: Any) -> None:
    ends = rnd.sample([*bridges * 3, *services], 2)
    if ends[0] != ends[1] and (ends[1], ends[0]) not in links:
        links[ends[0], ends[1]] = (_state(rnd), _state(rnd))


def mutated(rnd: random.Random, old: Spec) -> Spec:
    """The same network with some elements, links or figures that are others."""
    services, bridges, links = dict(old[0]), list(old[1]), dict(old[2])
    for _ in range(rnd.randint(1, 3)):
        what = rnd.randrange(6)
        if what == 0:
            services[rnd.choice("abcd")] = rnd.randint(1, 3)
        elif what == 1:
            bridges.insert(rnd.randint(0, len(bridges)), f"s{len(bridges)}")
        elif what == 2 and links:
            del links[rnd.choice(sorted(links))]
        elif what == 3 and links:
            links[rnd.choice(sorted(links))] = (_state(rnd), _state(rnd))
        elif what == 4:
            links = dict(rnd.sample(sorted(links.items(), key=lambda item: item[0]), len(links)))
        else:
            _link(rnd, services, bridges, links)
    return services, bridges, links


def topology_of(given_: Spec) -> Topology:
    services, bridges, links = given_
    return build(services.items(), bridges, [(*ends, *states) for ends, states in links.items()])


def edited(rnd: random.Random, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Without the last events, or with some properties set otherwise."""
    kept = list(events[: rnd.randint(len(events) // 2, len(events))])
    for i, event in enumerate(kept):
        if event.kind == "set" and "delay_ns" in event.args and rnd.random() < 0.5:
            args = {**event.args, "delay_ns": rnd.choice([0, MS, 5 * MS])}
            kept[i] = Event(event.seq, event.at_ns, "set", event.target, args, event.line)
    return tuple(kept)


@given(seed=st.integers(0, 2**48))
@settings(deadline=None, max_examples=120)
def test_edited_timelines_agree_with_brute_force(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 4), rnd.randint(0, 6))
    events = RandomTimeline(rnd, topology).draw(rnd.randint(0, 14))
    other = edited(rnd, events) if rnd.random() < 0.6 else RandomTimeline(rnd, topology).draw(9)
    a, b = plan_of(topology, events), plan_of(topology, other)
    assert spans(compare(a, b), a) == brute_force(a, b)


@given(seed=st.integers(0, 2**48))
@settings(deadline=None, max_examples=120)
def test_edited_topologies_agree_with_brute_force(seed: int) -> None:
    rnd = random.Random(seed)
    first = spec(rnd)
    networks = (topology_of(first), topology_of(mutated(rnd, first)))
    a, b = (plan_of(one, RandomTimeline(rnd, one).draw(rnd.randint(0, 8))) for one in networks)
    assert spans(compare(a, b), a) == brute_force(a, b)


@given(seed=st.integers(0, 2**48))
@settings(deadline=None, max_examples=80)
def test_unlike_topologies_agree_with_brute_force(seed: int) -> None:
    rnd = random.Random(seed)
    networks = (topology_of(spec(rnd)), topology_of(spec(rnd)))
    a, b = (plan_of(one, RandomTimeline(rnd, one).draw(rnd.randint(0, 12))) for one in networks)
    assert spans(compare(a, b), a) == brute_force(a, b)


def test_a_change_at_a_bridge_that_only_the_second_has() -> None:
    first = "service c\nservice d\nbridges s t\nlink c--t\nlink d--s\nlink d--t\nat 9s quit\n"
    second = (
        "service c\nservice d\nservice e\nbridges s t u\nlink c--t latency=1\nlink d--e\n"
        "link d--u\nlink s--t\nlink s--u\nat 2s d--u leave\nat 9s quit\n"
    )
    a, b = (compile_source(text).plan for text in (first, second))
    assert spans(compare(a, b), a) == brute_force(a, b)
    assert spans(compare(b, a), b) == brute_force(b, a)


@given(seed=st.integers(0, 2**48))
@settings(deadline=None, max_examples=25)
def test_a_plan_does_not_differ_from_itself(seed: int) -> None:
    rnd = random.Random(seed)
    topology = random_topology(rnd, rnd.randint(1, 4), rnd.randint(0, 6))
    plan = plan_of(topology, RandomTimeline(rnd, topology).draw(12))
    assert compare(plan, plan).groups == ()
