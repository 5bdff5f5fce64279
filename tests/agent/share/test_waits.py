"""What a link's queue makes others wait, from the queues of those that fill it."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.share.ratelimits import PathRoutes
from runtime.agent.share.solver import NO_LINK, UNLIMITED, Share
from runtime.agent.share.waits import (
    MOST_NS,
    MOST_PATHS,
    PEAK_TICKS,
    ROOT_UNIT,
    YOUNG_TICKS,
    Filler,
    QueueTime,
    Waits,
    fillers,
    link_waits,
    roots,
)
from runtime.agent.vocabulary import PathDelay, RemoteFlow
from tests.agent.share.test_sharing import MBIT, MS, NETWORK, SLOWER, Agent
from tests.simulation.networks import Network

LINK = 0  # 40 Mb/s, whose queue takes 100 ms


def routes(network: Network = NETWORK) -> PathRoutes:
    found = PathRoutes(network)
    for pair in sorted(network.routes):
        found.of(pair)
    return found


FULL = [Filler((0, 2), LINK, 30 * MBIT), Filler((7, 2), LINK, 10 * MBIT)]


def test_who_fills_a_link_wants_all_and_is_held_there() -> None:
    shares = [Share(5, LINK, 5), Share(7, NO_LINK, 9), Share(6, LINK, 6)]
    asked = [((0, 1), UNLIMITED), ((0, 2), UNLIMITED), ((0, 3), 6)]
    assert fillers(asked, shares, UNLIMITED) == [Filler((0, 1), LINK, 5)]


def test_a_wait_counts_as_much_as_the_flow_has_of_the_link() -> None:
    assert link_waits(routes(), FULL, {(0, 2): 40 * MS, (7, 2): 80 * MS}) == {LINK: 50 * MS}
    assert link_waits(routes(), FULL, {(7, 2): 80 * MS}) == {LINK: 20 * MS}
    assert link_waits(routes(), FULL, {}) == {}


def test_nobody_waits_longer_than_a_full_queue() -> None:
    assert link_waits(routes(), FULL, {(0, 2): 10**15, (7, 2): 10**15}) == {LINK: 100 * MS}


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=50))
def test_flows_count_by_their_parts(shares: list[int]) -> None:
    found = roots(Filler((n, n + 1), LINK, share) for n, share in enumerate(shares))[LINK]
    expected = sum(shares) / sqrt(sum(share**2 for share in shares))
    assert found == pytest.approx(ROOT_UNIT * expected, abs=1)
    assert ROOT_UNIT <= found <= ROOT_UNIT * sqrt(len(shares)) + 1


@given(st.lists(st.integers(0, 10**12), max_size=60), st.integers(0, 100 * ROOT_UNIT))
def test_a_shared_queue_is_at_least_as_full_as_ones_own(times_ns: list[int], root: int) -> None:
    queue = QueueTime()
    for time_ns in times_ns:
        queue.see(time_ns)
    alone, shared = queue.shared_ns(0), queue.shared_ns(root)
    assert 0 <= alone <= shared <= max([0, *times_ns])


def test_what_is_free_shrinks_with_the_root_of_the_flows() -> None:
    queue = QueueTime()
    queue.see(100 * MS)
    for _ in range(PEAK_TICKS // 10):
        queue.see(60 * MS)
    alone, four = queue.shared_ns(ROOT_UNIT), queue.shared_ns(2 * ROOT_UNIT)
    assert alone == pytest.approx(60 * MS, rel=0.01)
    assert four == pytest.approx((alone + 91 * MS) / 2, rel=0.02)
    queue.forget()
    assert queue.shared_ns(2 * ROOT_UNIT) == 0


def test_paths_that_moved_follow_the_wait_and_lose_it() -> None:
    known, waits = routes(), Waits(0)
    assert not waits
    waits.moved((1, 2), 10 * MS)
    waits.moved((1, 3), 10 * MS)  # not over a limited link
    full = {(0, 2): 40 * MS}
    assert waits.changes(known, FULL, full, ()) == [PathDelay(1, 2, 40 * MS)]
    assert waits.delayed == 1
    assert waits.changes(known, FULL, full, ()) == []
    assert waits.changes(known, FULL, {(0, 2): 40 * MS + 1000}, ()) == [], "nobody feels it"
    assert waits.changes(known, FULL, full, {(1, 2)}) == [PathDelay(1, 2, 10 * MS)]
    assert waits.changes(known, FULL, full, ()) == [PathDelay(1, 2, 40 * MS)]
    waits.declared([(1, 2)])
    assert waits.changes(known, FULL, full, ()) == [PathDelay(1, 2, 40 * MS)]
    assert waits.changes(known, [], {}, ()) == [PathDelay(1, 2, 10 * MS)]


def test_an_epoch_that_changes_the_delay_has_told_it() -> None:
    waits = Waits(0)
    waits.moved((1, 2), 10 * MS)
    full = {(0, 2): 40 * MS}
    waits.changes(routes(), FULL, full, ())
    longer = Network(4, {**NETWORK.links, 0: (40 * MBIT, 20 * MS, 500_000)}, NETWORK.routes, 1)
    waits.epoch(routes(SLOWER))
    assert waits.changes(routes(SLOWER), [], {}, ()) == [PathDelay(1, 2, 10 * MS)]
    waits.epoch(routes(longer))
    assert waits.changes(routes(longer), [], {}, ()) == []
    assert waits.changes(routes(longer), FULL, full, ()) == [PathDelay(1, 2, 50 * MS)]
    waits.epoch(PathRoutes())
    assert len(waits) == 0


def test_what_the_datapath_has_is_said_again_where_that_is_not_known() -> None:
    known, waits = routes(), Waits(0)
    waits.moved((1, 2), 10 * MS)
    full = {(0, 2): 40 * MS}
    assert waits.changes(known, FULL, full, ()) == [PathDelay(1, 2, 40 * MS)]
    waits.doubt([(1, 2), (1, 3)])
    assert waits.changes(known, FULL, full, ()) == [PathDelay(1, 2, 40 * MS)]
    assert waits.changes(known, FULL, full, ()) == []
    waits.changes(known, [], {}, ())
    waits.doubt([(1, 2)])
    assert waits.changes(known, [], {}, ()) == [PathDelay(1, 2, 10 * MS)]
    assert waits.changes(known, [], {}, ()) == []


def test_no_link_makes_anybody_wait_longer_than_an_hour() -> None:
    slow = Network(4, {**NETWORK.links, 0: (1, 10 * MS, 2**40)}, NETWORK.routes, 1)
    waits = Waits(0)
    waits.moved((1, 2), 10 * MS)
    filling = [Filler((0, 2), LINK, 1)]
    assert waits.changes(routes(slow), filling, {(0, 2): 10**25}, ()) == [
        PathDelay(1, 2, 10 * MS + MOST_NS)
    ]


def test_only_so_many_paths_are_delayed() -> None:
    count = MOST_PATHS + 2
    network = Network(
        count + 1, {0: NETWORK.links[0]}, {(source, count): (0,) for source in range(count)}
    )
    known, waits = routes(network), Waits(0)
    filling = [Filler((0, count), LINK, 40 * MBIT)]
    for source in range(1, count - 1):
        waits.moved((source, count), 10 * MS)
    assert len(waits.changes(known, filling, {(0, count): 30 * MS}, ())) == MOST_PATHS
    waits.moved((1, count), 10 * MS)
    waits.moved((count - 1, count), 10 * MS)
    assert waits.changes(known, filling, {(0, count): 30 * MS}, ()) == [
        PathDelay(2, count, 10 * MS),  # silent longest
        PathDelay(count - 1, count, 40 * MS),
    ]


# -- in the loop ----------------------------------------------------------------------------------


def test_a_flow_that_wants_little_waits_as_long_as_others_queues_are() -> None:
    agent = Agent()
    for _ in range(YOUNG_TICKS):
        agent.tick({(1, 2): 0.1 * MBIT}, greedy=False)
    assert agent.delays == {}
    agent.remote = [RemoteFlow(3, 2, 0, True, 1, 0, 40 * MS)]
    network = Network(4, NETWORK.links, {**NETWORK.routes, (3, 2): (0,)})
    agent.sharing.epoch(network, agent.now_ns)
    agent.tick({(1, 2): 0.1 * MBIT}, greedy=False)
    assert agent.delays[1, 2] == pytest.approx(50 * MS, rel=0.02)
    for _ in range(100):  # it is silent, and would wait
        agent.tick({})
    assert agent.delays[1, 2] == pytest.approx(50 * MS, rel=0.02)
    agent.remote = []
    agent.tick({})
    assert agent.delays[1, 2] == 10 * MS


def test_a_path_that_nobody_used_before_is_delayed_after_a_second() -> None:
    known, waits = routes(), Waits()
    waits.moved((1, 2), 10 * MS)
    told = [waits.changes(known, FULL, {(0, 2): 40 * MS}, ()) for _ in range(YOUNG_TICKS + 1)]
    assert told == [*[[]] * YOUNG_TICKS, [PathDelay(1, 2, 40 * MS)]]


def test_who_fills_a_link_is_not_delayed_by_others_that_do() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=40)
    assert (0, 2) not in agent.delays or agent.delays[0, 2] == 10 * MS
    assert (1, 2) not in agent.delays or agent.delays[1, 2] == 10 * MS


def test_a_limit_and_a_wait_that_a_step_passed_over_may_have_undone_are_said_again() -> None:
    agent = Agent()
    network = Network(4, NETWORK.links, {**NETWORK.routes, (3, 2): (0,)})
    agent.sharing.epoch(network, agent.now_ns)
    agent.remote = [RemoteFlow(3, 2, 0, True, 1, 0, 40 * MS)]
    for _ in range(YOUNG_TICKS + 1):
        agent.tick({(1, 2): 0.1 * MBIT}, greedy=False)
    before = agent.delays.pop((1, 2))
    agent.tick({(1, 2): 0.1 * MBIT}, greedy=False)
    assert agent.delays == {}
    agent.sharing.passed_over([(1, 2), (3, 1)])
    agent.tick({(1, 2): 0.1 * MBIT}, greedy=False)
    assert agent.delays == {(1, 2): before}
    assert (1, 2) in agent.limits


def test_what_a_queue_was_at_another_rate_does_not_count() -> None:
    """A link that was slow has a long queue; when it is fast, nobody is told of that."""
    agent = Agent(SLOWER)
    tick = agent.flood((0, 2), (1, 2), ticks=40)
    slow_ns = max(flow.wait_ns for flow in tick.flows)
    agent.sharing.epoch(NETWORK, agent.now_ns)
    agent.flood((0, 2), (1, 2), ticks=3)  # until the datapath has the new limits
    tick = agent.flood((0, 2), (1, 2))
    assert 0 < max(flow.wait_ns for flow in tick.flows) < slow_ns / 2
