"""One agent's sharing loop against a network of two links, tick by tick."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agent.share.sharing import IDLE_AFTER_TICKS, LINGER_TICKS, Sharing, Tick
from runtime.agent.vocabulary import LocalFlow, PathChange, RemoteFlow, Usage
from tests.simulation.networks import Network, parking_lot, two_destinations

MS = 1_000_000
MBIT = 1_000_000
PERIOD_NS = 25 * MS
S = 1_000_000_000

# Instances 0 and 1 send to 2 over link 0 (40 Mb/s); 1 also to 3 over link 1 (unlimited).
QUEUE = 500_000
NETWORK = Network(
    4,
    {0: (40 * MBIT, 10 * MS, QUEUE), 1: (0, 10 * MS, 0), 2: (100 * MBIT, 0, QUEUE)},
    {(0, 2): (2, 0), (1, 2): (0,), (1, 3): (1,), (2, 0): (1,), (2, 1): (1,), (3, 1): (1,)},
)


SLOWER = replace(
    NETWORK, links={**NETWORK.links, 0: (10 * MBIT, 10 * MS, QUEUE)}, epoch=1, _known={}
)


class Agent:
    """A Sharing, and what its paths have sent."""

    def __init__(self, network: Network = NETWORK) -> None:
        self.sharing = Sharing(PERIOD_NS)
        self.now_ns = 0
        self.sharing.epoch(network, 0)
        self.network = network
        self.sent: dict[tuple[int, int], int] = {}
        self.drops: dict[tuple[int, int], int] = {}
        self.limits: dict[tuple[int, int], PathChange] = {}
        self.delays: dict[tuple[int, int], int] = {}
        self.remote: list[RemoteFlow] = []
        self.moving: set[tuple[int, int]] = set()

    def tick(self, rates: Mapping[tuple[int, int], float], greedy: bool = True) -> Tick:
        """Each path has sent at that rate, `greedy` with a queue that overflows."""
        self.now_ns += PERIOD_NS
        usage = []
        for pair, rate in rates.items():
            self.sent[pair] = self.sent.get(pair, 0) + round(rate * PERIOD_NS / 8e9)
            self.drops[pair] = self.drops.get(pair, 0) + greedy
            backlog = 50_000 * greedy
            usage.append(Usage(*pair, 1, self.sent[pair], self.drops[pair], 0, backlog))
        stopped = self.moving - rates.keys()
        usage += [Usage(*p, 1, self.sent[p], self.drops[p], 0, 0) for p in sorted(stopped)]
        self.moving = set(rates)
        tick = self.sharing.tick(self.now_ns, usage, self.remote)
        for change in tick.changes:
            if isinstance(change, PathChange):
                self.limits[change.src, change.dst] = change
            else:
                self.delays[change.src, change.dst] = change.delay_ns
        return tick

    def flood(self, *pairs: tuple[int, int], ticks: int = 1) -> Tick:
        """Each sends all that its limit allows, and more gets lost."""
        for _ in range(ticks):
            tick = self.tick({pair: self.rate(pair) for pair in pairs})
        return tick

    def rate(self, pair: tuple[int, int]) -> int:
        if pair in self.limits:
            return self.limits[pair].rate_bps
        path = self.network.path(*pair)
        assert path is not None
        return path.rate_bps


def test_nothing_happens_while_nothing_moves() -> None:
    agent = Agent()
    for _ in range(5):
        assert agent.tick({}) == ([], [], agent.now_ns + PERIOD_NS)
    assert not agent.sharing.active
    assert agent.sharing.counters()["solved"] == 0


def test_a_lone_flow_keeps_the_whole_path() -> None:
    agent = Agent()
    tick = agent.flood((0, 2), ticks=4)
    assert agent.limits == {}
    [flow] = tick.flows
    assert flow == LocalFlow(0, 2, flow.used_bps, True, 40 * MBIT, 0, flow.wait_ns)
    assert flow.used_bps == pytest.approx(40 * MBIT, rel=0.02)
    assert agent.sharing.active


def test_two_flows_share_by_their_round_trips_from_the_first_tick_on() -> None:
    agent = Agent()
    tick = agent.flood((0, 2), (1, 2))
    assert [change.rate_bps for change in tick.changes] == [20 * MBIT, 20 * MBIT]
    assert [flow.allocation_bps for flow in tick.flows] == [20 * MBIT, 20 * MBIT]
    # The queue takes as long to empty as the link's.
    assert [change.queue_bytes for change in tick.changes] == [QUEUE // 2, QUEUE // 2]


def test_the_two_destinations_of_one_sender() -> None:
    agent = Agent(two_destinations())
    agent.flood((0, 1), (0, 2), ticks=3)
    assert agent.limits[0, 1].rate_bps == 83_333_333
    assert agent.limits[0, 2].rate_bps == 16_666_666


def test_a_newcomer_has_its_share_within_two_periods() -> None:
    agent = Agent()
    agent.flood((0, 2), ticks=100)
    assert agent.rate((1, 2)) == 40 * MBIT  # like on an idle network
    agent.flood((0, 2), (1, 2), ticks=2)
    assert agent.rate((0, 2)) == agent.rate((1, 2)) == 20 * MBIT


def test_a_newcomer_that_wants_little_is_not_limited_and_takes_little() -> None:
    agent = Agent()
    agent.flood((0, 2), ticks=100)
    for _ in range(20):
        sent = {(0, 2): agent.rate((0, 2)), (1, 2): 4 * MBIT}
        agent.sent[1, 2] = agent.sent.get((1, 2), 0)
        usage = []
        agent.now_ns += PERIOD_NS
        for pair, rate in sent.items():
            agent.sent[pair] += rate * PERIOD_NS // 8_000_000_000
            waiting = 50_000 if pair == (0, 2) else 0
            usage.append(Usage(*pair, 1, agent.sent[pair], agent.drops.get(pair, 0), 0, waiting))
        for change in agent.sharing.tick(agent.now_ns, usage, []).changes:
            if isinstance(change, PathChange):
                agent.limits[change.src, change.dst] = change
    assert agent.rate((0, 2)) == pytest.approx(36 * MBIT, rel=0.02)
    assert agent.rate((1, 2)) == 40 * MBIT


def test_a_flow_that_stops_leaves_its_share_within_three_ticks() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=50)
    agent.flood((0, 2), ticks=3)
    assert agent.rate((0, 2)) == 40 * MBIT
    assert agent.rate((1, 2)) == 40 * MBIT  # for when it comes back


def test_nothing_is_enforced_while_nothing_changes() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=10)
    before = agent.sharing.counters()
    for _ in range(100):
        assert agent.flood((0, 2), (1, 2)).changes == []
    after = agent.sharing.counters()
    assert (after["changes"], after["solved"]) == (before["changes"], before["solved"])
    assert after["ticks"] == before["ticks"] + 100


def test_a_flow_of_another_host_takes_its_part() -> None:
    agent = Agent()
    agent.remote = [RemoteFlow(1, 2, 5 * MBIT, False, 1, 0)]
    agent.flood((0, 2), ticks=2)
    assert agent.rate((0, 2)) == 35 * MBIT
    agent.remote = [RemoteFlow(1, 2, 5 * MBIT, True, 1, 0)]
    agent.flood((0, 2), ticks=2)
    assert agent.rate((0, 2)) == 20 * MBIT
    agent.remote = []
    agent.flood((0, 2), ticks=2)
    assert agent.rate((0, 2)) == 40 * MBIT


def test_a_difference_of_one_percent_is_not_enforced() -> None:
    agent = Agent()
    for demand in (10.0, 10.2, 10.1, 9.9, 10.2):
        agent.remote = [RemoteFlow(1, 2, int(demand * MBIT), False, 1, 0)]
        agent.flood((0, 2), ticks=2)
        assert agent.rate((0, 2)) == 30 * MBIT
    agent.remote = [RemoteFlow(1, 2, 11 * MBIT, False, 1, 0)]
    agent.flood((0, 2))
    assert agent.rate((0, 2)) == 29 * MBIT


def test_paths_without_limits_are_left_alone() -> None:
    agent = Agent()
    for _ in range(5):
        tick = agent.tick({(1, 3): 10**12})
        assert tick == ([], [], agent.now_ns + PERIOD_NS)
    assert not agent.sharing.active


def test_remote_flows_without_a_path_or_limit_are_passed_over() -> None:
    agent = Agent()
    agent.remote = [RemoteFlow(3, 0, 9, True, 1, 0), RemoteFlow(3, 1, 9, True, 1, 0)]
    assert agent.flood((0, 2), ticks=3).flows[0].allocation_bps == 40 * MBIT


def test_an_epoch_with_another_rate_is_followed_at_the_next_tick() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=10)
    agent.network = SLOWER
    agent.sharing.epoch(SLOWER, agent.now_ns)
    tick = agent.flood((0, 2), (1, 2))
    assert {change.rate_bps for change in tick.changes} == {5 * MBIT}
    # And back: what the datapath has meanwhile is not known, so it is told in any case.
    agent.sharing.epoch(NETWORK, agent.now_ns)
    agent.network = NETWORK
    assert {change.rate_bps for change in agent.flood((0, 2), (1, 2)).changes} == {20 * MBIT}


def test_an_epoch_without_the_path_forgets_it() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=10)
    routes = {pair: links for pair, links in NETWORK.routes.items() if pair != (1, 2)}
    agent.sharing.epoch(replace(NETWORK, routes=routes, epoch=1, _known={}), agent.now_ns)
    tick = agent.flood((0, 2), (1, 2))
    assert [flow.src for flow in tick.flows] == [0]
    assert agent.rate((0, 2)) == 40 * MBIT
    agent.sharing.epoch(NETWORK, agent.now_ns)
    agent.limits.clear()  # a path that comes back is declared anew
    agent.flood((0, 2), (1, 2), ticks=2)
    assert agent.rate((0, 2)) == agent.rate((1, 2)) == 20 * MBIT


def test_what_was_declared_again_is_limited_again() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=10)
    agent.sharing.declared([(1, 2), (3, 0)])
    tick = agent.flood((0, 2), (1, 2))
    assert tick.changes == [PathChange(1, 2, 20 * MBIT, QUEUE // 2)]


def test_a_limit_that_is_not_in_force_is_told_again() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=10)
    found = [agent.tick({(0, 2): 20 * MBIT, (1, 2): 30 * MBIT}).changes for _ in range(8)]
    told = [changes for changes in found if changes]
    assert told == [[PathChange(1, 2, 20 * MBIT, QUEUE // 2)]] * 2
    assert agent.sharing.counters()["overruns"] == 2


def test_a_restarted_agent_counts_from_what_was_sent_before() -> None:
    agent = Agent()
    agent.flood((0, 2), (1, 2), ticks=40)
    before = [Usage(*pair, 1, sent, agent.drops[pair], 0, 0) for pair, sent in agent.sent.items()]
    agent.sharing = Sharing(PERIOD_NS)
    agent.sharing.restore(agent.now_ns, before)
    agent.sharing.epoch(NETWORK, agent.now_ns)
    agent.limits.clear()
    assert agent.tick({}).flows == []
    agent.flood((0, 2), (1, 2), ticks=2)
    assert agent.rate((0, 2)) == agent.rate((1, 2)) == 20 * MBIT


def test_a_restarted_agent_knows_greed_by_the_queue_while_limits_are_unknown() -> None:
    """Both are held to 5 Mb/s by limits of before, an eighth of what the new agent could think."""
    agent = Agent()
    agent.sharing.restore(agent.now_ns, [])
    rates = {(0, 2): 5 * MBIT, (1, 2): 5 * MBIT}
    agent.tick(rates)
    agent.tick(rates)
    assert agent.rate((0, 2)) == agent.rate((1, 2)) == 20 * MBIT
    modest = Agent()
    modest.sharing.restore(modest.now_ns, [])
    for _ in range(4):
        tick = modest.tick(rates, greedy=False)
    assert not any(flow.greedy for flow in tick.flows)
    assert modest.limits == {}


def test_counters_that_go_backwards_begin_again() -> None:
    agent = Agent()
    agent.flood((0, 2), ticks=10)
    agent.sent[0, 2] = agent.drops[0, 2] = 0
    tick = agent.flood((0, 2))
    assert agent.sharing.counters()["resets"] == 1
    assert tick.flows[0].used_bps == pytest.approx(40 * MBIT, rel=0.02)


def test_nobody_gets_nothing() -> None:
    """However little the share, a limit of 0 would mean none."""
    slow = Network(3, {0: (2000, MS, 3000)}, {(0, 2): (0,), (1, 2): (0,)})
    agent = Agent(slow)
    agent.remote = [RemoteFlow(1, 2, 0, True, 1, 0)]
    agent.tick({(0, 2): 10**6})
    assert agent.limits[0, 2] == PathChange(0, 2, 1000, 3000)
    crowd = Network(102, {0: (2000, MS, 3000)}, {(i, 101): (0,) for i in range(101)})
    agent = Agent(crowd)
    agent.remote = [RemoteFlow(i, 101, 0, True, 1, 0) for i in range(1, 101)]
    agent.tick({(0, 101): 10**6})
    assert agent.limits[0, 101].rate_bps == 1000


def test_an_idle_agent_looks_less_often_and_wakes_up() -> None:
    agent = Agent()
    agent.flood((0, 2))
    waits = {agent.tick({}).next_ns - agent.now_ns for _ in range(IDLE_AFTER_TICKS)}
    assert waits == {PERIOD_NS}
    agent.tick({})
    assert agent.tick({}).next_ns - agent.now_ns == 2 * PERIOD_NS
    assert agent.flood((0, 2)).next_ns - agent.now_ns == PERIOD_NS


def test_what_is_over_is_forgotten() -> None:
    agent = Agent(parking_lot(20))
    pairs = [(2 + 2 * i, 3 + 2 * i) for i in range(20)]
    agent.flood(*pairs, (0, 1), ticks=5)
    for _ in range(LINGER_TICKS + 10):
        agent.tick({})
    counters = agent.sharing.counters()
    assert (counters["flows"], counters["limited"]) == (0, 0)
    assert agent.sharing._paths == {}


numbers = st.one_of(st.integers(0, 10**6), st.integers(0, 2**63))
lines = st.builds(
    Usage, st.integers(0, 4), st.integers(0, 4), numbers, numbers, numbers, numbers, numbers
)
remotes = st.builds(
    RemoteFlow, st.integers(0, 4), st.integers(0, 4), numbers, st.booleans(), st.just(1), numbers
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**11),
            st.lists(lines, max_size=5),
            st.lists(remotes, max_size=5),
            st.sampled_from(["", "", "epoch", "declared", "restore"]),
        ),
        max_size=25,
    )
)
@settings(max_examples=150, deadline=None)
def test_whatever_comes_limits_are_sound(
    ticks: list[tuple[int, list[Usage], list[RemoteFlow], str]],
) -> None:
    """Counters that jump, paths that do not exist, the same path twice, time that stands still."""
    sharing, now_ns = Sharing(PERIOD_NS), 0
    sharing.epoch(NETWORK, 0)
    for passed_ns, usage, remote, happening in ticks:
        now_ns += passed_ns
        if happening == "epoch":
            sharing.epoch(SLOWER, now_ns)
        elif happening == "declared":
            sharing.declared([(0, 2), (1, 2), (4, 4)])
        elif happening == "restore":
            sharing.restore(now_ns, usage)
        tick = sharing.tick(now_ns, usage, remote)
        assert tick.next_ns > now_ns
        for change in tick.changes:
            assert 1000 <= change.rate_bps <= 40 * MBIT
            assert 3000 <= change.queue_bytes <= QUEUE
        for flow in tick.flows:
            assert 0 < flow.allocation_bps <= 40 * MBIT or not (flow.greedy or flow.used_bps)
            assert flow.used_bps <= 2 * 10**14


def test_the_same_input_gives_the_same_output() -> None:
    def run() -> list[Tick]:
        source, agent = random.Random(7), Agent()
        ticks = []
        for _ in range(200):
            rates = {
                pair: source.choice((0, 1, 5, 20, 60)) * MBIT
                for pair in ((0, 2), (1, 2), (1, 3))
                if source.random() < 0.7
            }
            ticks.append(agent.tick(rates, greedy=source.random() < 0.5))
        return ticks

    assert run() == run()


def test_all_flows_that_are_told_have_figures_that_can_be() -> None:
    source, agent = random.Random(8), Agent(parking_lot(4))
    pairs = sorted(pair for pair in agent.network.routes if pair[0] < pair[1])
    for _ in range(300):
        moving = source.sample(pairs, source.randint(0, len(pairs)))
        tick = agent.tick({pair: source.randint(0, 90) * MBIT for pair in moving}, False)
        assert [(flow.src, flow.dst) for flow in tick.flows] == sorted(
            (flow.src, flow.dst) for flow in tick.flows
        )
        for flow in tick.flows:
            assert 0 < flow.allocation_bps <= 60 * MBIT
            assert flow.used_bps > 0 or flow.greedy
            assert (
                flow.bottleneck == -1 or flow.bottleneck in agent.network.routes[flow.src, flow.dst]
            )
        for change in tick.changes:
            assert 1000 <= change.rate_bps <= 60 * MBIT
            assert change.queue_bytes >= 3000
