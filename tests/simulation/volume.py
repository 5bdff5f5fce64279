"""How much metadata agents tell each other: their real code, a simulated network and clock.

160 instances at both ends of one link, 80 flows over it, 4 agents with the real sharing loop: at
rest, while all applications change their rate every period, and while every flow is told to
everybody in every tick, which is the most there can be. Bytes are UDP payload; with headers, 28
more a datagram (IPv4 and UDP). They follow from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from runtime.agent.metadata.codec import MAX_DATAGRAM
from runtime.agent.vocabulary import LocalFlow
from tests.simulation.planned import Planned
from tests.simulation.simulation import MS, NS_PER_S, PERIOD_NS
from tests.simulation.sources import Constant, Source, Tcp

HEADER_BYTES = 28
MBIT = 1_000_000
STEADY_BOUND, CHANGE_BOUND = 50_000, 300_000  # bytes/s in all, the targets of the project
TARGET = (80, 80, 4)  # instances on each side, flows, hosts
WARM_TICKS = 4
SECOND_TICKS = NS_PER_S // PERIOD_NS

Record = dict[str, Any]


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


def targets(seconds: int) -> Iterator[Record]:
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
