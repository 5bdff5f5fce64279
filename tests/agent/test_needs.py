"""What an agent computes for its own instances, against single paths, in every epoch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.paths.path import Paths, path
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan, decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from runtime.agent.path import lines
from runtime.agent.path.path_updates import (
    PART_LINES,
    PathLine,
    PathUpdates,
    StagedPaths,
)
from runtime.agent.path.prefetcher import PlanView
from runtime.datapath import dialect
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.doubles.told import Told
from tests.examples.test_compile import EXAMPLES, NAMES
from tests.plan.networks import MS, PLAIN, SECOND, build, contents, networks, timeline

Case = tuple[Topology, tuple[Event, ...]]


def expected(plan: Plan, state: NetworkState, own: Iterable[int]) -> dict[tuple[int, int], object]:
    """All that the datapath is to have open, found path by path and link by link."""
    paths, names = Paths(state), [node.name for node in plan.topology.nodes]
    wanted: dict[tuple[int, int], object] = {}
    for src in own:
        for dst in range(plan.core.endpoints):
            found = paths.path(src, dst) if src != dst else None
            if found is None or not found.reachable:
                continue
            states = [state.links[link] for link in found.links]
            narrow = min(states, key=lambda link: link.rate_bps or 1 << 70)  # the first of several
            unsteady = max(states, key=lambda link: link.jitter_ns)
            wanted[src, dst] = {
                "rate": found.totals.rate_bps,
                "delay": found.totals.delay_ns,
                "jitter": found.totals.jitter_ns,
                "loss": found.totals.loss_ppb,
                "queue": narrow.queue_bytes,
                "dist": unsteady.distribution if unsteady.jitter_ns else "normal",
                "seed": lines.path_seed(plan.seed, names[src], names[dst]),
                "up": 1,
            }
    return wanted


def told_for(plan: Plan) -> Told:
    told = Told()
    nodes = plan.topology.nodes[: plan.core.endpoints]
    told.take(dialect.node_line(index, node.ipv4, node.ipv6) for index, node in enumerate(nodes))
    return told


def texts(part: Iterable[PathLine]) -> Iterator[str]:
    for line in part:
        assert line.text.startswith(f"path {line.src} {line.dst} ")
        yield line.text


def follow(plan: Plan, own: Sequence[int], options: RunOptions) -> int:
    """Tells a datapath everything, and compares at each step. Returns how many steps there were."""
    schedule = Schedule(plan, options)
    steps = schedule.steps
    needs = PathUpdates(plan, schedule, own)
    told = told_for(plan)
    for part in needs.begin():
        told.take(texts(part))
    state = plan.state_at(options.start_at_ns)
    assert told.open_paths() == expected(plan, state, own)
    seen = [0]
    for stage in needs.later():
        if stage is None:
            continue
        for part in stage.parts:
            assert 0 < len(part) <= PART_LINES
            told.take(texts(part))
        epoch = steps[stage.step].epoch
        assert (stage.state.epoch, stage.state.at_ns) == (epoch.index, epoch.at_ns)
        state = plan.state_at(epoch.at_ns)
        assert told.open_paths() == expected(plan, state, own)
        assert list(stage.state.nodes) == list(state.nodes)
        seen.append(stage.step)
    assert seen == list(range(len(steps)))
    return len(steps)


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    plan = compile_source((EXAMPLES / f"{name}.tdl").read_bytes(), filename=name, seed=None).plan
    everybody = range(plan.core.endpoints)
    assert follow(plan, everybody, RunOptions()) == len(plan.epochs)
    for host in range(3):
        follow(plan, everybody[host::3], RunOptions())


def plan_of(case: Case) -> Plan:
    return decode(encode(contents(*case)))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=5, bridges=8, length=15), st.integers(0, 2**32))
def test_random_plans(case: Case, seed: int) -> None:
    plan, rnd = plan_of(case), random.Random(seed)
    everybody = range(plan.core.endpoints)
    own = sorted(rnd.sample(everybody, rnd.randint(0, len(everybody))))
    start = rnd.choice([0, 0, SECOND, 3 * SECOND])
    follow(plan, own, RunOptions(start_at_ns=min(start, plan.end_ns)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=4, bridges=5, length=15), st.integers(0, 2**32))
def test_beginning_in_the_middle_after_somebody_else(case: Case, seed: int) -> None:
    """Whatever the datapath was told before, all is as it should be afterwards."""
    plan, rnd = plan_of(case), random.Random(seed)
    own = range(plan.core.endpoints)
    schedule = Schedule(plan, RunOptions())
    told = told_for(plan)
    before, first = sorted(rnd.choices(range(len(schedule.steps)), k=2))
    early = PathUpdates(plan, schedule, own, before)
    for part in early.begin(everything=rnd.random() < 0.5):
        told.take(texts(part))
    needs = PathUpdates(plan, schedule, own, first)
    for part in needs.begin(everything=True):
        told.take(texts(part))
    assert told.open_paths() == expected(plan, needs.state, own)
    for stage in needs.later():
        if isinstance(stage, StagedPaths):
            for part in stage.parts:
                told.take(texts(part))
            assert told.open_paths() == expected(plan, stage.state, own)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=4, bridges=5, length=10), st.integers(0, 2**32))
def test_all_about_some_nodes(case: Case, seed: int) -> None:
    plan, rnd = plan_of(case), random.Random(seed)
    everybody = range(plan.core.endpoints)
    own = sorted(rnd.sample(everybody, rnd.randint(0, len(everybody))))
    some = rnd.sample(everybody, rnd.randint(0, len(everybody)))
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), own)
    state = plan.state_at(plan.end_ns)
    told = told_for(plan)
    for part in needs.about(state, some):
        told.take(texts(part))
    touching = {
        (src, dst) for src in own for dst in everybody if src != dst and {src, dst} & set(some)
    }
    assert told.paths.keys() == touching
    wanted = expected(plan, state, own)
    assert told.open_paths() == {pair: wanted[pair] for pair in touching if pair in wanted}


def test_only_what_changes_is_told() -> None:
    topology = build(
        [("a", 2), ("b", 1)], ["s"], [("a", "s", PLAIN, PLAIN), ("s", "b", PLAIN, PLAIN)]
    )
    events = [
        *timeline(topology),
        Event(3, SECOND, "set", "a.0->s", {"loss_ppb": 1000}, 1),
        Event(4, 2 * SECOND, "set", "a.0->s", {"rate_bps": 10**6, "queue_bytes": 40_000}, 1),
        Event(5, 3 * SECOND, "link_down", "s->b.0", {}, 1),
        Event(6, 4 * SECOND, "link_up", "s->b.0", {}, 1),
        Event(7, 5 * SECOND, "set", "a.1->s", {"jitter_ns": 5}, 1),
    ]
    plan = plan_of((topology, tuple(events)))
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), [0])
    assert sum(map(len, needs.begin())) == 2
    stages = [stage for stage in needs.later() if stage is not None]
    said = [[line.text for part in stage.parts for line in part] for stage in stages]
    seed = lines.path_seed(plan.seed, "a.0", "b.0")
    assert said == [
        ["path 0 1 loss=1000", "path 0 2 loss=1000"],
        ["path 0 1 rate=1000000 queue=40000", "path 0 2 rate=1000000 queue=40000"],
        ["path 0 2 up=0"],
        [
            "path 0 2 rate=1000000 delay=2000000 jitter=0 loss=1000 queue=40000 dist=normal"
            f" seed={seed} up=1"
        ],
        [],
    ]
    assert (
        stages[-1].state.table is stages[0].state.table
    )  # no route has changed: nothing is kept twice


def test_work_comes_in_small_pieces() -> None:
    topology = build([("a", 40)], ["s"], [("a", "s", PLAIN, PLAIN)])
    events = [*timeline(topology), Event(40, SECOND, "set", "s->a.7", {"delay_ns": 5 * MS}, 1)]
    plan = plan_of((topology, tuple(events)))
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), range(40))
    assert [len(part) for part in needs.begin()] == [39] * 40
    found = list(needs.later())
    assert found[:-1] == [None] * 80  # each source before and after
    assert isinstance(found[-1], StagedPaths)
    assert sum(map(len, found[-1].parts)) == 39


def test_parts_are_filled() -> None:
    topology = build([("a", 30)], ["s"], [("a", "s", PLAIN, PLAIN)])
    events = [Event(30 + n, SECOND, "set", f"a.{n}->s", {"delay_ns": 7}, 1) for n in range(30)]
    plan = plan_of((topology, (*timeline(topology), *events)))
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), range(30))
    assert sum(map(len, needs.begin())) == 870
    (stage,) = [found for found in needs.later() if found is not None]
    assert [len(part) for part in stage.parts] == [500, 370]
    pairs = [(line.src, line.dst) for part in stage.parts for line in part]
    assert pairs == [(src, dst) for src in range(30) for dst in range(30) if src != dst]


def test_seeds_are_those_of_the_document() -> None:
    assert lines.path_seed(7, "client.0", "server.1") == 0x4191_4340_703B_9CCB
    assert lines.path_seed(7, "client.0", "server.1") != lines.path_seed(7, "server.1", "client.0")


def test_queue_and_distribution_are_those_of_the_links_that_matter() -> None:
    def link(rate: int, queue: int, jitter: int, dist: str) -> LinkState:
        return LinkState(True, rate, MS, jitter, 0, queue, dist)

    first, second = link(0, 1, 5, "uniform"), link(50, 2, 0, "pareto")
    third, last = link(50, 3, 9, "pareto"), link(60, 4, 9, "uniform")
    chain = [("a", "s", first, first), ("s", "t", second, second), ("t", "u", third, third)]
    topology = build([("a", 1), ("b", 1)], ["s", "t", "u"], [*chain, ("u", "b", last, last)])
    plan = plan_of((topology, timeline(topology)))
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), [0, 1])
    told = told_for(plan)
    for part in needs.begin():
        told.take(texts(part))
    there, back = told.paths[0, 1], told.paths[1, 0]
    assert (there["rate"], there["queue"], there["dist"]) == (50, 2, "pareto")
    assert (back["rate"], back["queue"], back["dist"]) == (50, 3, "uniform")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(services=4, bridges=5, length=10))
def test_a_view_says_what_the_plan_says(case: Case) -> None:
    plan = plan_of(case)
    state = plan.state_at(plan.end_ns)
    view = PlanView(state)
    assert view.epoch == state.epoch
    for src in range(plan.core.endpoints):
        for dst in range(plan.core.endpoints):
            if src == dst:
                continue
            found, seen = path(state, src, dst), view.path(src, dst)
            assert view.path(src, dst) is seen
            if not found.reachable:
                assert seen is None
                continue
            assert seen is not None
            assert (seen.links, seen.rate_bps) == (found.links, found.totals.rate_bps)
            assert seen.rtt_ns == (found.rtt_ns or 2 * (found.totals.delay_ns or 0))
    for index, link in enumerate(state.links):
        assert (view.capacity(index), view.queue(index)) == (link.rate_bps, link.queue_bytes)
