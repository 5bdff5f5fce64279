"""On random networks, whatever changes and gets lost: every host knows in the end exactly what
docs/metadata.md says it is told, computed here from the paths of all pairs."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.plan.paths.path import Paths
from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from runtime.agent.metadata.codec import code_of, rate_of
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.ledger import AGE_NS, LOOK_NS
from runtime.agent.metadata.metadata import HELLO_NS, VERDICTS, Metadata
from runtime.agent.metadata.outgoing import REFRESH_NS
from runtime.agent.vocabulary import LocalFlow
from tests.agent.hosts import KEY, RUN, TICK_NS, telling
from tests.agent.hosts import told as what_is_known
from tests.plan.networks import contents, networks

Told = dict[tuple[int, int], tuple[int, bool]]
REFRESHED_TICKS = (REFRESH_NS + HELLO_NS) // TICK_NS + 3
FORGOTTEN_TICKS = (AGE_NS + LOOK_NS) // TICK_NS + 1


class World:
    """Agents of one plan. `lost` is the share of datagrams that do not arrive."""

    def __init__(self, rnd: random.Random, topology: Topology, events: tuple[Event, ...]) -> None:
        self.rnd = rnd
        plan = decode(encode(contents(topology, events)))
        self.states = [plan.state_at(epoch.at_ns) for epoch in plan.epochs]
        self.hosts = rnd.randint(2, 5)
        self.count = self.states[0].core.endpoints
        self.placement = [rnd.randrange(self.hosts) for _ in range(self.count)]
        self.starts = [1] * self.hosts
        self.untold: list[int] = []
        self.now_ns = 0
        self.lost = 0.0
        self.enter(self.states[0])
        self.agents = [self.started(host) for host in range(self.hosts)]
        self.flows: list[list[LocalFlow]] = [[] for _ in range(self.hosts)]

    def enter(self, state: NetworkState) -> None:
        self.state = state
        self.interest = Interest(state, self.placement, self.hosts)

    def started(self, host: int) -> Metadata:
        made = Metadata(KEY, RUN, host, self.starts)
        made.epoch(self.state.epoch, self.interest, self.now_ns)
        return made

    def tick(self) -> None:
        self.now_ns += TICK_NS
        if self.untold:
            self.agents[self.untold.pop()].announce(self.starts)
        for agent, flows in zip(self.agents, self.flows, strict=True):
            for to, datagram in agent.outgoing(self.now_ns, flows):
                if self.rnd.random() >= self.lost:
                    self.agents[to].incoming(self.now_ns, datagram)

    def draw_flows(self) -> None:
        """Some flows of each host: of any pair, with a bottleneck that is any link or none."""
        rnd, links = self.rnd, len(self.state.links)
        for host in range(self.hosts):
            own = [i for i in range(self.count) if self.placement[i] == host]
            pairs = {
                (rnd.choice(own), rnd.randrange(self.count))
                for _ in range(rnd.randint(0, 6))
                if own
            }
            self.flows[host] = [
                LocalFlow(
                    src, dst, rnd.choice([10, 1000, 10**7, rnd.randrange(1, 10**9)]),
                    rnd.random() < 0.5, rnd.randrange(1, 10**9), rnd.randrange(-1, links),
                    rnd.choice([0, 10**5, rnd.randrange(10**11)]),
                )
                for src, dst in sorted(pairs) if src != dst
            ]  # fmt: skip

    def happen(self) -> None:
        """One thing of those that happen."""
        kind = self.rnd.randrange(5)
        if kind == 0:
            self.enter(self.rnd.choice(self.states))
            for agent in self.agents:
                agent.epoch(self.state.epoch, self.interest, self.now_ns)
        elif kind == 1:
            host = self.rnd.randrange(self.hosts)
            self.starts[host] += 1
            self.agents[host] = self.started(host)
            self.untold = list(range(self.hosts))
            self.rnd.shuffle(self.untold)  # the coordinator's word comes when it comes
        else:
            self.draw_flows()
        for _ in range(self.rnd.choice([1, 1, 2, 5])):
            self.tick()


def sharing(world: World) -> tuple[dict[tuple[int, int], tuple[int, ...]], list[set[int]]]:
    """Links of every pair's path, and the hosts that share each limited link."""
    state, paths = world.state, Paths(world.state)
    ways = {
        (src, dst): paths.path(src, dst).links
        for src in range(world.count)
        for dst in range(world.count)
        if src != dst
    }
    hosts: list[set[int]] = [set() for _ in state.links]
    for (src, _), links in ways.items():
        for link in links:
            if state.links[link].rate_bps:
                hosts[link].add(world.placement[src])
    return ways, hosts


def expected(world: World) -> list[Told]:
    """What each host is told, by the rules."""
    ways, hosts = sharing(world)
    told: list[Told] = [{} for _ in range(world.hosts)]
    for owner, flows in enumerate(world.flows):
        for flow in flows:
            pair = flow.src, flow.dst
            interested = set[int]().union(*(hosts[link] for link in ways[pair])) - {owner}
            for host in interested:
                if flow.bottleneck >= 0 and host not in hosts[flow.bottleneck]:
                    told[host][pair] = (rate_of(code_of(flow.allocation_bps)), False)
                else:
                    told[host][pair] = telling(flow)
    return told


def known(world: World) -> list[Told]:
    return [
        {(one.src, one.dst): what_is_known(one) for one in agent.remote(world.now_ns)}
        for agent in world.agents
    ]


@settings(max_examples=60, deadline=None)
@given(networks(services=3, bridges=5, length=8), st.integers(0, 2**32), st.sampled_from([0, 0.3]))
def test_every_host_knows_what_the_rules_say(
    network: tuple[Topology, tuple[Event, ...]], seed: int, lost: float
) -> None:
    world = World(random.Random(seed), *network)
    world.lost = lost
    for _ in range(12):
        world.happen()
    world.lost = 0.0
    for _ in range(FORGOTTEN_TICKS if lost else REFRESHED_TICKS):
        world.tick()
    assert known(world) == expected(world)
    for agent in world.agents:
        counters = agent.counters()
        refused = {name for name in VERDICTS[1:] if counters[name]}
        assert refused <= {"stale", "unannounced"}, refused
