"""How fast agents in the simulation react: newcomers, departures, epochs, lost metadata, restarts.

Times are of the simulated clock, so nothing here depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from runtime.agent.share.solver import UNLIMITED
from tests.simulation.networks import dumbbell
from tests.simulation.planned import Planned
from tests.simulation.scenes import change, plain, simulate, spread
from tests.simulation.simulation import PERIOD_NS, Simulation
from tests.simulation.sources import Constant, Tcp

MS = 1_000_000
S = 1_000_000_000
MBIT = 1_000_000
DELAY_NS = MS  # of metadata
OLD = [(0, 6), (1, 7)]
NEW = (2, 8)

Pair = tuple[int, int]


def settled(
    sim: Simulation, want: Mapping[Pair, int], within: float = 0.05, most_ns: int = 5 * S
) -> int:
    """Runs on; how long it takes until all limits are right, for good."""
    began, right_ns = sim.now_ns, None
    while sim.now_ns < began + most_ns:
        sim.run(sim.now_ns + MS)
        limits = sim.limits(sorted(want))
        if all(abs(limits[pair] - share) <= within * share for pair, share in want.items()):
            right_ns = sim.now_ns if right_ns is None else right_ns
        else:
            right_ns = None
    assert right_ns is not None, (sim.limits(sorted(want)), want)
    return right_ns - began


def with_newcomer(
    hosts: int, seed: int, source: Callable[[], Constant | Tcp], loss: float = 0.0
) -> tuple[Simulation, int]:
    """Two greedy flows for 8 s, then a third; at another moment of the period for each seed."""
    sim = simulate(dumbbell(), spread(12, hosts), seed=seed, loss=loss)
    for pair in OLD:
        sim.add(*pair, Tcp())
    start_ns = 8 * S + seed * 1_700_000
    sim.add(*NEW, source(), start_ns, start_ns + 5 * S)
    sim.run(start_ns)
    return sim, start_ns


@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_a_newcomer_has_its_share_within_100_ms(hosts: int) -> None:
    """Two periods and the way of the metadata, and the period in which it is noticed."""
    network = dumbbell()
    for seed in range(12):
        sim, _ = with_newcomer(hosts, seed, lambda: Constant(300 * MBIT))
        took = settled(sim, network.greedy([*OLD, NEW]), most_ns=S)
        assert took <= 3 * PERIOD_NS + (DELAY_NS if hosts > 1 else 0)


def test_a_newcomer_is_held_to_its_share_within_two_periods() -> None:
    """Its own limit needs no word from others."""
    network = dumbbell()
    want = network.greedy([*OLD, NEW])[NEW]
    for seed in range(12):
        sim, _ = with_newcomer(4, seed, lambda: Constant(300 * MBIT))
        assert settled(sim, {NEW: want}, most_ns=S) <= 2 * PERIOD_NS


def test_a_newcomer_that_starts_slowly_is_made_room_for() -> None:
    """TCP needs some round trips (70 ms) to show what it wants; the limits follow it."""
    network = dumbbell()
    for seed in range(6):
        sim, _ = with_newcomer(4, seed, Tcp)
        assert settled(sim, network.greedy([*OLD, NEW]), most_ns=2 * S) <= 4 * 70 * MS


def test_who_leaves_is_noticed_within_100_ms_after_its_queue_is_empty() -> None:
    network = dumbbell()
    for seed in range(6):
        sim, start_ns = with_newcomer(4, seed, Tcp)
        sim.run(start_ns + 5 * S)
        waiting = sim.path(*NEW)
        drain_ns = int(waiting.backlog * 8 * S / waiting.limit_bps)
        assert settled(sim, network.greedy(OLD), most_ns=S) <= drain_ns + 100 * MS


@pytest.mark.parametrize(
    ("source", "most_ns"),
    [(lambda: Constant(300 * MBIT), S), (Tcp, 3 * S // 2)],
    ids=["udp", "tcp"],
)
def test_losing_three_tenths_of_the_metadata_costs_about_a_second(
    source: Callable[[], Constant | Tcp], most_ns: int
) -> None:
    """Of the plain exchange, which says things again after 250 ms only."""
    network = dumbbell()
    for seed in range(6):
        sim, _ = with_newcomer(4, seed, source, loss=0.3)
        assert settled(sim, network.greedy([*OLD, NEW]), most_ns=4 * S) <= most_ns


def test_without_metadata_everybody_is_alone() -> None:
    """The check of the check: it is metadata that makes the difference."""
    network = dumbbell()
    sim, _ = with_newcomer(4, 1, lambda: Constant(300 * MBIT), loss=1.0)
    with pytest.raises(AssertionError):
        settled(sim, network.greedy([*OLD, NEW]), most_ns=S)


def test_an_epoch_with_another_rate_is_followed_within_two_periods() -> None:
    """Fig. 9 of paper 002: links change while traffic flows."""
    pairs = [*OLD, NEW]
    placement = spread(12, 4)
    sim = simulate(dumbbell(), placement)
    for pair in pairs:
        sim.add(*pair, Tcp())
    sim.run(8 * S)
    for epoch, trunk in enumerate((20, 40, 10, 50), 1):
        network = dumbbell(trunk * MBIT, epoch)
        want = network.greedy(pairs)
        change(sim, sim.now_ns, network, placement)
        # Flows may need time to fill a larger share, but their limits leave it to them at once.
        sim.run(sim.now_ns + 2 * PERIOD_NS + DELAY_NS)
        limits = sim.limits(pairs)
        assert all(limits[pair] >= 0.95 * want[pair] for pair in pairs), (trunk, limits, want)
        assert settled(sim, want, most_ns=8 * S) <= 6 * S
        sim.run(sim.now_ns + S)


def test_an_agent_that_died_leaves_its_limits_and_its_successor_finds_the_share_again() -> None:
    network, placement = dumbbell(), spread(12, 4)
    pairs = [*OLD, NEW]
    want = network.greedy(pairs)
    sim = simulate(network, placement)
    for pair in pairs:
        sim.add(*pair, Constant(200 * MBIT))
    sim.run(3 * S)
    limits = sim.limits(pairs)
    sim.kill(1)
    sim.run(4 * S)  # shorter than flows are remembered
    assert sim.limits(pairs) == limits
    sim.restart(1, plain(network, placement, 1))
    assert settled(sim, want, most_ns=2 * S) <= S // 2


def test_a_dead_agents_flows_are_forgotten_and_come_back() -> None:
    network, placement = dumbbell(), spread(12, 4)
    sim = simulate(network, placement)
    for pair in OLD:
        sim.add(*pair, Constant(200 * MBIT))
    sim.run(3 * S)
    sim.kill(1)
    sim.run(8 * S)
    assert sim.limits([(0, 6)])[0, 6] == 50 * MBIT  # nobody tells of the other any more
    sim.restart(1, plain(network, placement, 1))
    assert settled(sim, network.greedy(OLD), most_ns=2 * S) <= S // 2


PLAN = """seed 1
service a img=x
service b img=x
service c img=x
bridges l r
link a--l latency=5ms up=100Mb symmetric
link b--l latency=5ms up=100Mb symmetric
link c--r latency=5ms up=100Mb symmetric
link l--r latency=10ms up=40Mb symmetric
at 0s a join
at 0s b join
at 0s c join
at 10s set l--r up=20Mb
at 60s quit
"""


def test_the_real_metadata_follows_a_plans_epochs() -> None:
    planned = Planned(PLAN, 3)
    a, b, c = (planned.names[f"{name}.0"] for name in "abc")
    pairs = [(a, c), (b, c)]
    for loss in (0.0, 0.3):
        sim = planned.simulate(loss=loss)
        for pair in pairs:
            sim.add(*pair, Constant(200 * MBIT))
        want = planned.shares(planned.view(0), dict.fromkeys(pairs, UNLIMITED))
        assert set(want.values()) == {20 * MBIT}
        assert settled(sim, want, most_ns=5 * S) <= 1 * S
        planned.change(sim, 6 * S, 10 * S)
        sim.run(6 * S)
        want = planned.shares(planned.view(10 * S), dict.fromkeys(pairs, UNLIMITED))
        assert set(want.values()) == {10 * MBIT}
        assert settled(sim, want, most_ns=2 * S) <= 2 * PERIOD_NS + DELAY_NS


def test_a_restarted_agent_with_the_real_metadata() -> None:
    planned = Planned(PLAN, 3)
    a, b, c = (planned.names[f"{name}.0"] for name in "abc")
    sim = planned.simulate(loss=0.3, seed=3)
    want = {(a, c): 20 * MBIT, (b, c): 20 * MBIT}
    for pair in want:
        sim.add(*pair, Constant(200 * MBIT))
    sim.run(3 * S)
    sim.kill(1)
    sim.run(9 * S)
    sim.restart(1, planned.exchange(1))
    assert settled(sim, want, most_ns=4 * S) <= 1 * S


def test_an_agents_successor_limits_its_paths_without_a_gap() -> None:
    """With the real metadata it is told at once of the others, and knows greed by the queues."""
    planned = Planned(PLAN, 3)
    a, b, c = (planned.names[f"{name}.0"] for name in "abc")
    want = {(a, c): 20 * MBIT, (b, c): 20 * MBIT}
    for source in (lambda: Constant(200 * MBIT), Tcp):
        sim = planned.simulate()
        for pair in want:
            sim.add(*pair, source())
        sim.run(5 * S)
        assert sim.limits(sorted(want)) == want
        sim.kill(1)
        sim.run(6 * S)
        sim.restart(1, planned.exchange(1))
        began_ns, wrong_ns = sim.now_ns, 0
        for _ in range(200):
            sim.run(sim.now_ns + 5 * MS)
            limits = sim.limits(sorted(want))
            assert limits[b, c] == 20 * MBIT
            if limits != want:
                wrong_ns = sim.now_ns - began_ns
        # What others had heard of the one before is void, until its successor tells.
        assert wrong_ns <= 6 * PERIOD_NS
