"""Which pairs are probed, and over which links, beside a follower that looks at every epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.parts.expectations import RTT, PlannedExpectation
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, decode
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from runtime.options import RunOptions
from runtime.probing.chosen import chosen as chosen_of_run
from runtime.probing.probe_intervals import base_ns
from runtime.probing.probed_pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    choose,
    most_pairs,
)
from runtime.probing.ways import ConnectedPair, Ways
from runtime.schedule import Schedule
from tests.plan.networks import contents, networks

Case = tuple[Topology, tuple[Event, ...]]


def by_looking(plan: Plan, timeline: Schedule, src: int, dst: int) -> tuple[set[int], bool]:
    """The links that packets of a pair enter, as every epoch's own state routes them, and whether
    they arrive in any."""
    used: set[int] = set()
    connected = False
    for step in timeline.steps:
        state = plan.state_at(step.epoch.at_ns)
        if step is timeline.steps[0]:
            state = plan.state_at(timeline.options.start_at_ns)
        connected = connected or Paths(state).path(src, dst).reachable
        node = src
        while links := state.next_links(node, dst):
            [link] = links
            used.add(link)
            node = plan.topology.links[link].dst
    return used, connected


@given(networks(services=4, bridges=6, length=20), st.integers(0, 3))
def test_ways_are_those_of_all_epochs(case: Case, start: int) -> None:
    plan = decode(encode(contents(*case)))
    start_at_ns = min(start * 10**9, plan.end_ns)
    timeline = Schedule(plan, RunOptions(start_at_ns=start_at_ns))
    instances = [n for n, node in enumerate(plan.topology.nodes) if node.service >= 0]
    pairs = [(a, b) for a in instances for b in instances if a != b]
    ways = Ways(plan, timeline)
    found = {(way.src, way.dst): way for way in ways.follow(pairs)}
    for pair in pairs:
        used, connected = by_looking(plan, timeline, *pair)
        assert (pair in found) == connected, pair
        if connected:
            assert found[pair].links == used, pair
    assert ways.follow(pairs) == list(found.values())  # as often as one likes


@given(networks(services=3, bridges=4, length=20))
def test_the_least_rate_is_that_of_all_epochs(case: Case) -> None:
    plan = decode(encode(contents(*case)))
    timeline = Schedule(plan, RunOptions())
    rates: dict[int, int] = {}
    for step in timeline.steps:
        for link, state in enumerate(plan.folded_at(step.epoch.at_ns).links):
            if state.rate_bps:
                rates[link] = min(rates.get(link, state.rate_bps), state.rate_bps)
    assert Ways(plan, timeline).least_bps == rates


def chosen(
    text: str, seed: int = 1, most: int = MOST_PAIRS
) -> tuple[Plan, tuple[ConnectedPair, ...], int]:
    plan = compile_source(text, filename="exp.tdl", seed=seed).plan
    found = choose(plan, Schedule(plan, RunOptions()), most)
    return plan, found.ways, found.of


def test_few_instances_have_all_their_pairs_probed() -> None:
    _, ways, of = chosen(
        "service a img=x replicas=14\nbridge s1\nlink a--s1 latency=1\nat 0s a join\nat 1s quit\n"
    )
    assert len({(way.src, way.dst) for way in ways}) == len(ways) == of == 14 * 13


def test_interfaces_are_probed_and_what_an_instance_sends_itself_is_not() -> None:
    text = (
        "service a img=x interfaces\nservice b img=x replicas={}\nbridges s1 s2 s3\n"
        "link a--s1 latency=1\nlink a--s2 latency=2\nlink s1--s3\nlink s2--s3\nlink b--s3\n"
        "at 0s a join\nat 0s b join\nat 1s quit\n"
    )
    _, ways, of = chosen(text.format(1))
    assert {(way.src, way.dst) for way in ways} == {(0, 1), (1, 0), (2, 1), (1, 2)}
    assert of == len(ways)
    plan, sampled, of = chosen(text.format(30), most=40)
    assert of == 30 * 29 + 2 * 30 * 2
    assert len(sampled) == 40
    nodes = plan.topology.nodes
    for way in sampled:
        assert nodes[way.src].owner != way.dst and nodes[way.dst].owner != way.src
    assert {0, 31} <= {end for way in sampled for end in (way.src, way.dst)}


def test_who_never_reaches_another_is_not_probed() -> None:
    _, ways, of = chosen(
        "service a img=x\nservice b img=x\nservice c img=x\nbridges s1 s2\n"
        "link a--s1 latency=1\nlink b--s1 latency=1\nlink c--s2 latency=1\n"
        "at 0s a join\nat 0s b join\nat 0s c join\nat 1s quit\n"
    )
    assert [(way.src, way.dst) for way in ways] == [(0, 1), (1, 0)]
    assert of == 6


def grid(replicas: int) -> str:
    """Bridges in a ring with a chord, so that some links are on few ways only."""
    ring = 12
    lines = ["bridges " + " ".join(f"b{n}" for n in range(ring))]
    for n in range(ring):
        lines.append(f"service v{n} img=x replicas={replicas}")
        lines.append(f"link v{n}--b{n} latency=1ms")
        lines.append(f"link b{n}--b{(n + 1) % ring} latency={n + 1}ms")
        lines.append(f"at 0s v{n} join")
    return "\n".join([*lines, "link b0--b6 latency=1ms", "at 1s quit", ""])


def test_a_sample_has_every_instance_and_every_link() -> None:
    for seed in range(5):
        plan, ways, of = chosen(grid(8), seed)
        assert of == 96 * 95
        assert len(ways) == len({(way.src, way.dst) for way in ways}) == MOST_PAIRS
        assert {way.src for way in ways} == {way.dst for way in ways} == set(range(96))
        full = Ways(plan, Schedule(plan, RunOptions()))
        every = [(a, b) for a in range(96) for b in range(96) if a != b]
        routed = {link for way in full.follow(every) for link in way.links}
        assert {link for way in ways for link in way.links} == routed


def test_a_sample_is_the_seeds() -> None:
    first, second = (chosen(grid(4), seed)[1] for seed in (1, 2))
    assert first == chosen(grid(4), 1)[1]
    assert first != second


def test_more_instances_than_pairs() -> None:
    _, ways, of = chosen(grid(50))
    assert of == 600 * 599
    assert len(ways) == MOST_PAIRS
    assert len({end for way in ways for end in (way.src, way.dst)}) == 2 * MOST_PAIRS


def test_pairs_of_expectations_are_in_every_sample() -> None:
    """Both ways where round trips are expected; the others of the sample are as many fewer."""
    plan = compile_source(grid(8), filename="exp.tdl", seed=1).plan
    timeline = Schedule(plan, RunOptions())
    without = {(way.src, way.dst) for way in choose(plan, timeline, MOST_PAIRS).ways}
    wanted = [(a, 95 - a) for a in range(40) if (a, 95 - a) not in without][:20]
    of_pairs = {"text": "", "line": 1, "pairs": tuple(wanted)}
    plan.__dict__["expectations"] = (PlannedExpectation(kind=RTT, **of_pairs),)  # type: ignore[arg-type]
    found = [(way.src, way.dst) for way in choose(plan, timeline, MOST_PAIRS).ways]
    assert len(found) == len(set(found)) == MOST_PAIRS
    assert set(found[:40]) == {*wanted, *(pair[::-1] for pair in wanted)}


@given(st.integers(2, 60), st.integers(1, 7200))
def test_whoever_is_probed_in_a_short_run_is_probed_often_enough(many: int, seconds: int) -> None:
    """40 probes of each pair prove something of 200 (certify/chances.py), at most 500 a second."""
    plan = compile_source(f"service a\nbridge s\nlink a--s\nat {seconds}s quit\n").plan
    timeline = Schedule(plan, RunOptions())
    most = most_pairs(timeline)
    assert FEWEST_PAIRS <= most <= MOST_PAIRS
    pairs = min(many * (many - 1), most)
    base = base_ns(pairs, timeline.end_due_ns, virtual=False)
    assert timeline.end_due_ns // base >= min(40, 10 * seconds)
    assert pairs * 10**9 <= 500 * base
    assert most == MOST_PAIRS or seconds < 16


@pytest.mark.parametrize(("jitter", "large"), [("", 2), (" jitter=1ms", 0)])
def test_large_probes_do_not_crowd_the_jitter_of_the_kernel(jitter: str, large: int) -> None:
    """It draws for each packet: beside large ones none of the others would be judged."""
    text = f"service a img=x replicas=2\nbridge s\nlink a--s latency=20ms{jitter}\nat 9s quit\n"
    plan = compile_source(text).plan
    options = RunOptions(hosts=2, datapath="kernel")
    assert len(chosen_of_run(plan, Schedule(plan, options)).large) == large
    assert len(chosen_of_run(plan, Schedule(plan, RunOptions(hosts=2))).large) == 2
