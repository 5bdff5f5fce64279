"""Agents in the simulation reach the model's shares, wherever instances are, and stay there."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from runtime.agent.share.solver import UNLIMITED
from tests.simulation.networks import (
    Network,
    dumbbell,
    parking_lot,
    random_network,
    two_destinations,
)
from tests.simulation.planned import Planned, random_text
from tests.simulation.scenes import simulate, spread
from tests.simulation.simulation import Simulation
from tests.simulation.soak import soak
from tests.simulation.sources import Constant, OnOff, Source, Tcp

MS = 1_000_000
S = 1_000_000_000
MBIT = 1_000_000
SETTLE_NS = 12 * S
WATCH_NS = 6 * S

Pair = tuple[int, int]


def changes(sim: Simulation) -> int:
    return sum(len(host.changes) for host in sim.hosts)


def check(sim: Simulation, want: Mapping[Pair, int], *, within: float = 0.05) -> None:
    """After settling every flow has its share, and limits do not move any more."""
    sim.run(SETTLE_NS)
    before = changes(sim)
    got = sim.rates(sorted(want), WATCH_NS)
    for pair, share in want.items():
        assert got[pair] == pytest.approx(share, rel=within), (pair, got, want)
    assert changes(sim) - before <= len(want)


@pytest.mark.parametrize("hosts", [1, 2, 4])
@pytest.mark.parametrize("clients", [2, 3, 5, 6])
def test_the_dumbbell_of_the_paper(hosts: int, clients: int) -> None:
    published = {
        2: (23.08, 26.92),
        3: (18.46, 21.54, 10.0),
        5: (16.93, 19.75, 10.0, 23.70, 29.62),
        6: (15.05, 17.55, 10.0, 21.07, 26.33, 10.0),
    }
    network = dumbbell()
    sim = simulate(network, spread(12, hosts), seed=hosts)
    want = {(i, 6 + i): int(share * MBIT) for i, share in enumerate(published[clients])}
    for pair in want:
        sim.add(*pair, Tcp())
    check(sim, want)


@pytest.mark.parametrize("hosts", [1, 3])
def test_two_destinations_of_one_sender(hosts: int) -> None:
    sim = simulate(two_destinations(), spread(3, hosts))
    want = {(0, 1): 83_333_333, (0, 2): 16_666_666}
    for pair in want:
        sim.add(*pair, Tcp())
    check(sim, want)


@pytest.mark.parametrize("hops", [2, 7])
def test_a_parking_lot_over_several_hosts(hops: int) -> None:
    network = parking_lot(hops)
    sim = simulate(network, spread(network.instances, 3))
    pairs = [pair for pair in network.routes if pair[0] < pair[1]]
    for pair in pairs:
        sim.add(*pair, Tcp())
    check(sim, network.greedy(pairs))


def test_one_flow_over_two_equal_links_that_are_full() -> None:
    """Both are its bottleneck; each is shared with somebody on another host, who knows only one."""
    links = {0: (30 * MBIT, 10 * MS, 300_000), 1: (30 * MBIT, 10 * MS, 300_000)}
    network = Network(6, links, {(0, 1): (0, 1), (2, 3): (0,), (4, 5): (1,)})
    sim = simulate(network, [0, 0, 1, 1, 2, 2])
    want = network.greedy(network.routes)
    assert want == {(0, 1): 10 * MBIT, (2, 3): 20 * MBIT, (4, 5): 20 * MBIT}
    for pair in want:
        sim.add(*pair, Tcp())
    check(sim, want)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_any_network_and_placement_with_partial_knowledge(seed: int, loss: float) -> None:
    """Hosts know flows on links that their own paths use, and nothing else; some metadata is lost.
    The limits are those of somebody who knows everything."""
    source = random.Random(seed)
    network = random_network(seed, 12, 6)
    hosts = source.choice((2, 3, 6, 12))
    placement = [source.randrange(hosts) for _ in range(12)]
    sim = simulate(network, placement, seed=seed, loss=loss)
    pairs = sorted(source.sample(sorted(network.routes), 14))
    for pair in pairs:
        sim.add(*pair, Tcp(), source.randrange(2 * S))
    want = network.greedy(pairs)
    check(sim, want)
    for pair, limit in sim.limits(pairs).items():
        assert limit == pytest.approx(want[pair], rel=0.02)


@pytest.mark.parametrize("grain", [1500, 65_536])
@pytest.mark.parametrize("seed", range(4))
def test_all_kinds_of_flows_together(seed: int, grain: int) -> None:
    """Greedy and modest TCP, UDP below and far above its share, counted packet by packet or in
    super-packets of 64 KB."""
    source = random.Random(seed)
    network = random_network(seed, 12, 6)
    sim = simulate(
        network, spread(12, source.choice((2, 3, 4, 6))), seed=seed, loss=0.1, grain=grain
    )
    demands: dict[Pair, int] = {}
    for pair in sorted(source.sample(sorted(network.routes), 14)):
        rate = source.randint(1, 20) * MBIT
        kinds: list[tuple[int, Source]] = [
            (rate, Constant(rate, 1500)),
            (rate, Tcp(application_bps=rate)),
            (UNLIMITED, Constant(200 * MBIT)),
            (UNLIMITED, Tcp()),
        ]
        demands[pair], made = source.choice(kinds)
        sim.add(*pair, made, source.randrange(2 * S))
    want = network.shares(demands)
    sim.run(SETTLE_NS)
    before = changes(sim)
    got = sim.rates(sorted(want), WATCH_NS)
    within = 0.05 if grain == 1500 else 0.1
    assert got == {pair: pytest.approx(share, rel=within) for pair, share in want.items()}
    # Super-packets make steady flows look unsteady: a few changes a second for each, not more.
    bound = len(want) if grain == 1500 else 10 * len(want) * WATCH_NS // S
    assert changes(sim) - before <= bound


def test_a_modest_flow_leaves_the_rest_to_the_others() -> None:
    network = dumbbell()
    sim = simulate(network, spread(12, 2))
    sim.add(0, 6, Tcp())
    sim.add(1, 7, Constant(8 * MBIT, 1500))
    check(sim, {(0, 6): 42 * MBIT, (1, 7): 8 * MBIT}, within=0.03)


def test_tcp_held_by_losses_on_its_way_leaves_the_rest_to_the_others() -> None:
    network = dumbbell()
    sim = simulate(network, spread(12, 2))
    sim.add(0, 6, Tcp())
    sim.add(1, 7, Tcp(loss_ppb=3_000_000))
    sim.run(SETTLE_NS)
    got = sim.rates([(0, 6), (1, 7)], 20 * S)
    assert got[1, 7] < 15 * MBIT
    assert sum(got.values()) == pytest.approx(50 * MBIT, rel=0.05)


@pytest.mark.parametrize("on_ms", [5, 20, 100, 1000])
def test_on_and_off_starves_nobody(on_ms: int) -> None:
    """A flood that is on for a tenth of the time. If that is long enough to be seen, it has its
    share (27 Mb/s) for so long; if not, it is a flow of a tenth of its rate, in bursts."""
    network = dumbbell()
    sim = simulate(network, spread(12, 2))
    sim.add(0, 6, Tcp())
    sim.add(1, 7, OnOff(Constant(60 * MBIT), on_ms * MS, 9 * on_ms * MS))
    sim.run(SETTLE_NS)
    got = sim.rates([(0, 6), (1, 7)], 40 * S)
    assert (0.42 if on_ms < 100 else 0.25) * 10 * MBIT <= got[1, 7] <= 6.1 * MBIT
    assert 30 * MBIT <= got[0, 6] <= 46 * MBIT
    assert changes(sim) < 25 * sim.now_ns / S


def test_short_queues_waste_little_and_starve_nobody() -> None:
    """A tenth of the usual queue, and TCP that halves its window: less than a full link."""
    network = dumbbell()
    links = {
        number: (rate, delay, max(q // 10, 15_000))
        for number, (rate, delay, q) in network.links.items()
    }
    network = Network(12, links, network.routes)
    sim = simulate(network, spread(12, 4))
    want = network.greedy([(i, 6 + i) for i in range(6)])
    for pair in want:
        sim.add(*pair, Tcp(backoff=0.5))
    sim.run(SETTLE_NS)
    got = sim.rates(sorted(want), 20 * S)
    assert sum(got.values()) >= 0.9 * 100 * MBIT
    for pair, share in want.items():
        assert got[pair] >= 0.8 * share


# --- with the real metadata ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_the_real_metadata_is_enough(seed: int, loss: float) -> None:
    source = random.Random(seed)
    planned = Planned(random_text(seed, 12, 6), source.choice((2, 3, 4, 6)))
    sim = planned.simulate(loss=loss, seed=seed)
    everyone = [(a, b) for a in range(12) for b in range(12) if a != b]
    pairs = sorted(source.sample(everyone, 14))
    for pair in pairs:
        sim.add(*pair, Tcp(), source.randrange(2 * S))
    want = planned.shares(planned.view(), dict.fromkeys(pairs, UNLIMITED))
    check(sim, want)


# The soak, short: real agents' code on a simulated clock neither leaks nor drifts.
#
# `python -m bench --only sharing-model` makes it two hours long.


def test_five_minutes_neither_leak_nor_drift() -> None:
    found = soak(300, 5)
    assert [each.at_s for each in found] == [60, 120, 180, 240, 300]
    for each in found:
        assert each.worst_error <= 0.05
    # By the second checkpoint every path has been used; after that nothing is kept.
    settled, last = found[1], found[-1]
    assert last.objects <= settled.objects + 300
    # Four agents tick every 25 ms, and at most twice as rarely while they are idle.
    assert 4 * 300 * 20 <= last.ticks <= 4 * 300 * 40 + 4
    # Flows that come and go need limits, but not without end.
    assert last.changes <= 5 * 300


def test_two_soaks_are_the_same() -> None:
    first, second = soak(40, 1, seed=3), soak(40, 1, seed=3)
    assert [(each.worst_error, each.changes, each.ticks) for each in first] == [
        (each.worst_error, each.changes, each.ticks) for each in second
    ]


def test_memory_does_not_grow() -> None:
    found = soak(90, 3, seed=2, trace=True)
    assert found[-1].memory_bytes <= found[1].memory_bytes + 30_000
