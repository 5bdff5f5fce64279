"""Metadata between agents: how many bytes, how much CPU time, and how both grow.

Four parts, all with the real code of runtime.agent over a simulated network and clock:

target      160 instances, 80 flows, 4 agents, with the real sharing loop (tests.simulation): at
            rest, while all applications change their rate every period, and while every flow is
            told to everybody in every tick, which is the most there can be;
growth      2 to 64 agents, 80 to 10,000 flows that all share one link, so that everybody has to
            know of every flow: without change, and with every flow told anew in every tick.
            CPU time is that of one agent, host 0, alone in its process by then;
refusal     what a datagram costs that is not taken;
interest    who shares which links, in the networks of tests.plan.topologies.

Bytes are UDP payload; with headers, 28 more a datagram (IPv4 and UDP).
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from bench.engine.probing import Record
from compiler.pipeline import compile_source
from runtime.agent.metadata.codec import MAX_DATAGRAM
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.metadata import Metadata
from runtime.agent.vocabulary import LocalFlow
from runtime.coordinator.placement import place
from tests.plan.topologies import scale_free
from tests.simulation.planned import RUN, Planned
from tests.simulation.simulation import MS, NS_PER_S, PERIOD_NS
from tests.simulation.sources import Constant, Source, Tcp

HEADER_BYTES = 28
MBIT = 1_000_000
STEADY_BOUND, CHANGE_BOUND = 50_000, 300_000  # bytes/s in all, the targets of the project
TARGET = (80, 80, 4)  # instances on each side, flows, hosts
SIDE = 200  # instances on each side, for growth
WARM_TICKS = 4
SECOND_TICKS = NS_PER_S // PERIOD_NS


def measure(quick: bool) -> list[Record]:
    """All rows; `part` says of which part."""
    grid = [(h, f) for h in (2, 4, 8, 16, 32, 64) for f in (80, 1000, 10_000)]
    if quick:
        grid = [(4, 80), (8, 1000)]
    rows = list(_targets(2 if quick else 10))
    for hosts, flows in grid:
        for change in (False, True):
            rows.append(_growth(hosts, flows, change))
    rows += _refusals(1000 if quick else 20_000)
    rows += [_interest(size) for size in ((1000,) if quick else (1000, 2000, 4000))]
    return rows


def text(side: int) -> str:
    """Two services at the ends of one link."""
    return "\n".join(
        [
            "seed 1",
            "bridges s1 s2",
            f"service left img=x replicas={side}",
            f"service right img=x replicas={side}",
            "link s1--s2 latency=5ms up=1Gb symmetric",
            "link left--s1 latency=1ms up=100Mb symmetric",
            "link right--s2 latency=1ms up=100Mb symmetric",
            "at 0s left join",
            "at 0s right join",
            "at 60s quit",
            "",
        ]
    )


# --- target ------------------------------------------------------------------------------------


class Restless:
    """UDP whose rate is another one in every period: 1 to 20 Mb/s."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._until_ns = 0
        self._now = Constant(0.0)

    def offer(self, now_ns: int, passed_ns: int, rtt_ns: int) -> float:
        if now_ns >= self._until_ns:
            self._until_ns = now_ns + PERIOD_NS
            self._now.rate_bps = self._random.uniform(1, 20) * MBIT
        return self._now.offer(now_ns, passed_ns, rtt_ns)

    def told(self, now_ns: int, delivered: float, dropped: float, rtt_ns: int) -> None:
        self._now.told(now_ns, delivered, dropped, rtt_ns)


def _at_rest(number: int) -> Source:
    """Half of them take what they get, half want 5 Mb/s."""
    return Tcp(seed=number) if number % 2 else Constant(5 * MBIT, grain=1500)


def _targets(seconds: int) -> Iterator[Record]:
    sources: dict[str, Callable[[int], Source]] = {"at rest": _at_rest, "restless": Restless}
    for what, make in sources.items():
        bound = STEADY_BOUND if what == "at rest" else CHANGE_BOUND
        yield _target(what, bound, *_simulated(make, seconds), seconds)
    side, flows, hosts = TARGET
    fleet = Fleet(side, hosts, flows, change=True)
    fleet.run(WARM_TICKS)
    fleet.run(seconds * SECOND_TICKS)
    yield _target("all told anew", CHANGE_BOUND, fleet.bytes, fleet.datagrams, seconds)


def _simulated(make: Callable[[int], Source], seconds: int) -> tuple[int, int]:
    """Bytes and datagrams of all agents in so many seconds, after five to settle."""
    side, flows, hosts = TARGET
    sim = Planned(text(side), hosts).simulate(seed=1, keep_changes=False)
    for number in range(flows):
        sim.add(number, side + (number + 1) % side, make(number), number * MS)
    sim.run(5 * NS_PER_S)
    before = [(host.bytes, host.datagrams) for host in sim.hosts]
    sim.run((5 + seconds) * NS_PER_S)
    spent = [(h.bytes - b, h.datagrams - d) for h, (b, d) in zip(sim.hosts, before, strict=True)]
    return sum(size for size, _ in spent), sum(count for _, count in spent)


def _target(what: str, bound: int, size: int, datagrams: int, seconds: int) -> Record:
    with_headers = (size + HEADER_BYTES * datagrams) / seconds
    return {
        "part": "target",
        "what": what,
        "instances": 2 * TARGET[0],
        "flows": TARGET[1],
        "hosts": TARGET[2],
        "seconds": seconds,
        "payload_bytes_s": round(size / seconds),
        "with_headers_bytes_s": round(with_headers),
        "datagrams_s": round(datagrams / seconds, 1),
        "bound_bytes_s": bound,
        "met": with_headers <= bound,
    }


# --- growth ------------------------------------------------------------------------------------


class Fleet:
    """So many agents' metadata, without anything else. What host 0 is sent is kept."""

    def __init__(self, side: int, hosts: int, flows: int, *, change: bool) -> None:
        planned = Planned(text(side), hosts)
        self.agents = [planned.exchange(host) for host in range(hosts)]
        rnd = random.Random(1)
        pairs = rnd.sample([(s, side + d) for s in range(side) for d in range(side)], flows)
        self._pairs: list[list[tuple[int, int]]] = [[] for _ in range(hosts)]
        for pair in sorted(pairs):
            self._pairs[planned.placement[pair[0]]].append(pair)
        self._change = change
        self._tick = 0
        self.now_ns = 0
        self.bytes = self.datagrams = 0
        self.received: list[list[bytes]] = []  # by host 0, in each tick

    def flows(self, host: int, tick: int) -> list[LocalFlow]:
        """10 Mb/s, or 10 and 20 by turns."""
        rates = [10 * MBIT, (20 if self._change and tick % 2 else 10) * MBIT]
        return [
            LocalFlow(src, dst, rates[1], False, rates[1], -1) for src, dst in self._pairs[host]
        ]

    def run(self, ticks: int) -> None:
        """The first ticks, in which agents get to know each other, reach everybody; the later ones
        are only counted, but what host 0 is sent."""
        self.bytes = self.datagrams = 0
        self.received.clear()
        for _ in range(ticks):
            self._tick += 1
            self.now_ns += PERIOD_NS
            self.received.append([])
            for host, agent in enumerate(self.agents):
                for to, datagram in agent.outgoing(self.now_ns, self.flows(host, self._tick)):
                    self._count(to, datagram)

    def _count(self, to: int, datagram: bytes) -> None:
        assert len(datagram) <= MAX_DATAGRAM
        self.bytes += len(datagram)
        self.datagrams += 1
        if self._tick <= WARM_TICKS:
            self.agents[to].incoming(self.now_ns, datagram)
        elif to == 0:
            self.received[-1].append(datagram)


def _growth(hosts: int, flows: int, change: bool) -> Record:
    ticks = 10 if change else SECOND_TICKS
    fleet = Fleet(SIDE, hosts, flows, change=change)
    fleet.run(WARM_TICKS)
    fleet.run(ticks)
    seconds = ticks * PERIOD_NS / NS_PER_S
    size, datagrams = fleet.bytes, fleet.datagrams
    return {
        "part": "growth",
        "hosts": hosts,
        "flows": flows,
        "change": change,
        "payload_bytes_s": round(size / seconds),
        "with_headers_bytes_s": round((size + HEADER_BYTES * datagrams) / seconds),
        "agent_bytes_s": round(size / seconds / hosts),
        "datagrams_s": round(datagrams / seconds),
        **_cpu(fleet),
    }


def _cpu(fleet: Fleet) -> Record:
    """CPU time of host 0 a tick: for what it says, for what it hears, for who asks what it knows.

    The same ticks once more, with the datagrams that were kept. The others are gone, because the
    garbage collector would look at all of them too.
    """
    agent, received, ticks = fleet.agents[0], fleet.received, len(fleet.received)
    first = fleet._tick + 1
    flows = [fleet.flows(0, first + tick) for tick in range(ticks)]
    now_ns = fleet.now_ns
    del fleet.agents[1:]
    gc.collect()
    gc.freeze()  # as an agent does when it begins
    spent: list[tuple[float, float, float]] = []
    for mine, datagrams in zip(flows, received, strict=True):
        now_ns += PERIOD_NS
        times = [time.thread_time()]
        for datagram in datagrams:
            agent.incoming(now_ns, datagram)
        times.append(time.thread_time())
        known = agent.remote(now_ns)
        times.append(time.thread_time())
        agent.outgoing(now_ns, mine)
        times.append(time.thread_time())
        spent.append((times[1] - times[0], times[2] - times[1], times[3] - times[2]))
    gc.unfreeze()
    totals = [sum(tick) * 1e3 for tick in spent]
    names = ("in_ms", "remote_ms", "out_ms")
    means = [statistics.fmean(column) * 1e3 for column in zip(*spent, strict=True)]
    return {
        **{name: round(value, 3) for name, value in zip(names, means, strict=True)},
        "tick_ms_mean": round(statistics.fmean(totals), 3),
        "tick_ms_max": round(max(totals), 3),
        "known": len(known),
    }


# --- refusals and interest ---------------------------------------------------------------------


def _refusals(count: int) -> Iterator[Record]:
    planned = Planned(text(SIDE), 2)
    me, other = planned.exchange(1), Metadata(bytes([1]) * 32, RUN, 0, [1, 1])
    planned.met(other, planned.plan.state_at(0), 0)
    [(_, forged)] = other.outgoing(0, [])
    [(_, genuine)] = planned.exchange(0).outgoing(0, [])
    me.incoming(0, genuine)
    long = forged[:-16] + bytes(MAX_DATAGRAM - len(forged)) + forged[-16:]
    cases = {
        "garbage": random.Random(1).randbytes(1000),
        "forged": forged,
        "forged, 1,400 bytes": long,
        "replayed": genuine,
    }
    for what, datagram in cases.items():
        before = time.thread_time()
        for _ in range(count):
            me.incoming(0, datagram)
        spent = time.thread_time() - before
        assert me.counters()[what.split(",")[0]] >= count
        yield {"part": "refusal", "what": what, "us": round(spent / count * 1e6, 2)}
    assert me.remote(0) == []


def _interest(size: int) -> Record:
    hosts = 64
    plan = compile_source(scale_free(size, events=2)).plan
    placement, states = place(plan.topology, hosts), [plan.state_at(at) for at in (0, NS_PER_S)]
    times = [time.thread_time()]
    first = Interest(states[0], placement, hosts)
    times.append(time.thread_time())
    again = Interest(states[1], placement, hosts, first)
    times.append(time.thread_time())
    rnd, count = random.Random(1), first.instances
    again.of_flows([rnd.randrange(count) * count + rnd.randrange(count) for _ in range(10_000)])
    times.append(time.thread_time())
    spent = [round((b - a) * 1e3, 2) for a, b in pairwise(times)]
    return {
        "part": "interest",
        "size": size,
        "hosts": hosts,
        "first_ms": spent[0],
        "epoch_ms": spent[1],
        "flows_10000_ms": spent[2],
    }
