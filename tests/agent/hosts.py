"""A few agents' metadata on a network of no delay, for the tests: sans-I/O, a clock of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from compiler.plan.reader import decode
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology
from compiler.plan.writer import encode
from runtime.agent.metadata import codec
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.metadata import Metadata
from runtime.agent.vocabulary import LocalFlow, RemoteFlow
from tests.plan.networks import PLAIN, build, contents, joins

KEY = bytes(range(32))
RUN = b"run-1"
TICK_NS = 25_000_000
MBPS = 1_000_000


@lru_cache(maxsize=16)
def state_of(topology: Topology) -> NetworkState:
    """Everybody has joined."""
    return decode(encode(contents(topology, tuple(joins(topology))))).state_at(0)


@lru_cache(maxsize=16)
def dumbbell(pairs: int) -> Topology:
    """Instances 0 … pairs-1 on the left of one link, as many on its right."""
    ends = [("left", "s1", PLAIN, PLAIN), ("right", "s2", PLAIN, PLAIN)]
    services = [("left", pairs), ("right", pairs)]
    return build(services, ["s1", "s2"], [*ends, ("s1", "s2", PLAIN, PLAIN)])


def flow(src: int, dst: int, mbps: float, *, greedy: bool = False, **more: int) -> LocalFlow:
    """`more` are allocation_bps, bottleneck and wait_ns."""
    rate = round(mbps * MBPS)
    figures = more.get("allocation_bps", rate), more.get("bottleneck", -1), more.get("wait_ns", 0)
    return LocalFlow(src, dst, rate, greedy, *figures)


Told = dict[tuple[int, int], tuple[int, bool]]  # (src, dst) -> (rate or wait, greedy)


def told(flow: RemoteFlow) -> tuple[int, bool]:
    """What is known of it."""
    return (flow.wait_ns if flow.greedy else flow.demand_bps), flow.greedy


def telling(flow: LocalFlow) -> tuple[int, bool]:
    """The same of what was told of this one to hosts that share its bottleneck."""
    if flow.greedy:
        units = (flow.wait_ns + codec.WAIT_UNIT_NS // 2) // codec.WAIT_UNIT_NS
        return codec.rate_of(codec.code_of(units)) * codec.WAIT_UNIT_NS, True
    return codec.rate_of(codec.code_of(flow.used_bps)), False


class Hosts:
    """`place` is the host of each instance. Datagrams arrive within the tick, unless `lose`."""

    def __init__(self, topology: Topology, place: Sequence[int], hosts: int = 0) -> None:
        self.state = state_of(topology)
        self.placement = [*place, *([-1] * (len(topology.nodes) - len(place)))]
        self.count = hosts or max(place) + 1
        self.interest = Interest(self.state, self.placement, self.count)
        self.starts = [0] * self.count
        self.agents: list[Metadata] = []
        self.agents = [self.start(host) for host in range(self.count)]
        self.flows: list[list[LocalFlow]] = [[] for _ in range(self.count)]
        self.now_ns = 1_000_000_000
        self.sent: list[tuple[int, int, bytes]] = []  # in the last tick: from, to, datagram
        self.lose: Callable[[int, int, bytes], bool] = lambda *_: False

    def start(self, host: int) -> Metadata:
        """A new start of this host's agent, not yet in its place; the others are told."""
        self.starts[host] += 1
        starts = [max(start, 1) for start in self.starts]
        made = Metadata(KEY, RUN, host, starts)
        made.epoch(0, self.interest, 0)
        for agent in self.agents:
            agent.announce(starts)
        return made

    def tick(self, ticks: int = 1) -> None:
        for _ in range(ticks):
            self.now_ns += TICK_NS
            self.sent = [
                (host, to, datagram)
                for host, agent in enumerate(self.agents)
                for to, datagram in agent.outgoing(self.now_ns, self.flows[host])
            ]
            for source, to, datagram in self.sent:
                if not self.lose(source, to, datagram):
                    self.agents[to].incoming(self.now_ns, datagram)

    def settle(self) -> None:
        """Two ticks: everybody has heard of everybody."""
        self.tick(2)

    def known(self, host: int) -> Told:
        """What this host knows of others."""
        found = self.agents[host].remote(self.now_ns)
        return {(one.src, one.dst): told(one) for one in found}

    def lossy(self, share: float, seed: int = 1) -> None:
        rnd = random.Random(seed)
        self.lose = lambda *_: rnd.random() < share
