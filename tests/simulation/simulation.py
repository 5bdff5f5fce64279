"""Agents in a simulation: their real code over a simulated network, datapath and clock.

Every host has a Sharing and an exchange of metadata (the real Metadata, or Plain below), which see
only what an agent sees: counters of its own paths, datagrams, the time. A path is a fluid queue
with the limit that its agent has set; sources (tests.simulation.sources) fill it. Datagrams take
`delay_ns` and get lost with `loss`. Everything follows from the seed.

Events are ordered by time, then by kind and number, so that two runs are the same.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runtime.agent.share.sharing import Sharing
from runtime.agent.vocabulary import (
    Change,
    LocalFlow,
    PathChange,
    PathDelay,
    RemoteFlow,
    Usage,
    View,
)
from tests.simulation.sources import SEGMENT_BYTES, Source

MS = 1_000_000
NS_PER_S = 1_000_000_000
PERIOD_NS = 25 * MS
STEP_NS = 5 * MS  # of the fluid queues, at most
RESUME_TICKS = 4  # as runtime.agent.process.hostrun
REFRESH_TICKS = 10
FORGET_NS = 2 * NS_PER_S

Pair = tuple[int, int]
_START, _CHANGE, _DATAGRAM, _TICK = range(4)


class Exchange(Protocol):
    """How an agent hears of the flows of others (runtime.agent.metadata.metadata.Metadata)."""

    def outgoing(self, now_ns: int, flows: Sequence[LocalFlow]) -> Sequence[tuple[int, bytes]]: ...

    def incoming(self, now_ns: int, datagram: bytes) -> None: ...

    def remote(self, now_ns: int) -> Sequence[RemoteFlow]: ...


class Plain:
    """A simple exchange, for what is not about metadata: the contract of the real one in JSON.

    A flow is told to the hosts with a path over one of its limited links; to one that has none over
    its bottleneck as wanting what it gets. At once when it changed by 3 %, and now and then again.
    """

    def __init__(self, me: int, view: View, interest: Mapping[int, frozenset[int]]) -> None:
        self._me = me
        self._view = view
        self._interest = interest  # link -> hosts
        self._told: dict[tuple[int, Pair], tuple[int, bool]] = {}
        self._known: dict[Pair, RemoteFlow] = {}
        self._heard: dict[Pair, int] = {}
        self._ticks = 0

    def epoch(self, view: View, interest: Mapping[int, frozenset[int]]) -> None:
        self._view, self._interest = view, interest

    def outgoing(self, now_ns: int, flows: Sequence[LocalFlow]) -> list[tuple[int, bytes]]:
        self._ticks += 1
        messages: dict[int, list[list[int]]] = {}
        current: set[tuple[int, Pair]] = set()
        for flow in flows:
            path = self._view.path(flow.src, flow.dst)
            links = path.links if path else ()
            hosts = frozenset[int]().union(*(self._interest.get(link, ()) for link in links))
            for host in sorted(hosts - {self._me}):
                blind = flow.bottleneck >= 0 and host not in self._interest[flow.bottleneck]
                amount = flow.wait_ns if flow.greedy else flow.used_bps
                value = (flow.allocation_bps, False) if blind else (amount, flow.greedy)
                key = host, (flow.src, flow.dst)
                current.add(key)
                if self._news(key, value):
                    self._told[key] = value
                    messages.setdefault(host, []).append([flow.src, flow.dst, *value])
        for key in sorted(set(self._told) - current):
            host, pair = key
            messages.setdefault(host, []).append([*pair, 0, False])
            del self._told[key]
        return [
            (host, json.dumps([self._me, told]).encode()) for host, told in sorted(messages.items())
        ]

    def _news(self, key: tuple[int, Pair], value: tuple[int, bool]) -> bool:
        told = self._told.get(key)
        if told is None or told[1] != value[1] or (self._ticks + key[0]) % REFRESH_TICKS == 0:
            return True
        return not value[1] and abs(value[0] - told[0]) * 33 > told[0]

    def incoming(self, now_ns: int, datagram: bytes) -> None:
        host, told = json.loads(datagram)
        for src, dst, amount, greedy in told:
            if amount or greedy:
                both = (0, True, host, 0, amount) if greedy else (amount, False, host, 0)
                self._known[src, dst] = RemoteFlow(src, dst, *both)
                self._heard[src, dst] = now_ns
            else:
                self._known.pop((src, dst), None)

    def remote(self, now_ns: int) -> list[RemoteFlow]:
        for pair in [pair for pair in self._known if now_ns - self._heard[pair] > FORGET_NS]:
            del self._known[pair]
        return [self._known[pair] for pair in sorted(self._known)]


@dataclass
class _Path:
    """One path's fluid queue and the counters of its datapath."""

    limit_bps: int
    queue_bytes: int
    rtt_ns: int
    at_ns: int
    grain: int
    sources: list[tuple[Source, int]] = field(default_factory=list)  # with the time of their end
    backlog: float = 0.0
    sent: float = 0.0
    dropped: float = 0.0
    told: tuple[int, int, int] = (0, 0, 0)

    def advance(self, now_ns: int) -> None:
        if not self.sources and not self.backlog:
            self.at_ns = now_ns
        while self.at_ns < now_ns:
            step = min(STEP_NS, now_ns - self.at_ns)
            self.at_ns += step
            self._step(step)

    def _step(self, passed_ns: int) -> None:
        if self.sources and min(end_ns for _, end_ns in self.sources) < self.at_ns:
            self.sources = [each for each in self.sources if self.at_ns <= each[1]]
        rtt = self.rtt_ns + int(self.backlog * 8 * NS_PER_S / self.limit_bps)
        offers = [source.offer(self.at_ns, passed_ns, rtt) for source, _ in self.sources]
        total = sum(offers)
        out = min(self.backlog + total, self.limit_bps * passed_ns / 8 / NS_PER_S)
        left = self.backlog + total - out
        lost = max(left - self.queue_bytes, 0.0)
        self.backlog = left - lost
        self.sent += out
        self.dropped += lost
        for (source, _), offer in zip(self.sources, offers, strict=True):
            part = offer / total if total else 0.0
            source.told(self.at_ns, out * part, lost * part, rtt)

    def counters(self) -> tuple[int, int, int]:
        """Bytes sent in whole packets or super-packets, drops in packets, bytes that wait."""
        return (
            int(self.sent // self.grain) * self.grain,
            int(self.dropped // SEGMENT_BYTES),
            int(self.backlog),
        )


@dataclass
class Host:
    """One agent and its datapath. `changes` are all limits that it ever set, with their times, if
    they are kept; `changed` is how many."""

    sharing: Sharing
    exchange: Exchange
    paths: dict[Pair, _Path] = field(default_factory=dict)
    changes: list[tuple[int, PathChange]] = field(default_factory=list)
    changed: int = 0
    alive: bool = True
    found: dict[tuple[int, int, bool], Change] = field(
        default_factory=dict
    )  # by an agent that looks first
    looking: int = 0  # for so many ticks still
    datagrams: int = 0
    bytes: int = 0


class Simulation:
    """`placement` is the host of each instance. `prepare(host, sim)` makes an exchange."""

    def __init__(
        self,
        view: View,
        placement: Sequence[int],
        prepare: Callable[[int], Exchange],
        *,
        delay_ns: int = MS,
        loss: float = 0.0,
        seed: int = 0,
        grain: int = SEGMENT_BYTES,
        keep_changes: bool = True,
    ) -> None:
        self.now_ns = 0
        self.view = view
        self._placement = placement
        self._delay_ns = delay_ns
        self._loss = loss
        self._random = random.Random(seed)
        self._grain = grain
        self._keep = keep_changes
        self._events: list[tuple[int, int, int, object]] = []
        self._serial = 0
        self.hosts = [Host(Sharing(PERIOD_NS), prepare(h)) for h in range(max(placement) + 1)]
        for number, host in enumerate(self.hosts):
            host.sharing.epoch(view, 0)
            self._push(self._random.randrange(PERIOD_NS), _TICK, number)

    def kill(self, number: int) -> None:
        """An agent dies; its datapath goes on with the limits that it has."""
        self.hosts[number].alive = False

    def restart(self, number: int, exchange: Exchange) -> None:
        """A new agent for that datapath. As the real one it looks for some ticks, and then declares
        all paths once more, with the limits that it has found."""
        host = self.hosts[number]
        host.sharing, host.exchange, host.alive = Sharing(PERIOD_NS), exchange, True
        host.found, host.looking = {}, RESUME_TICKS
        before = []
        for pair, path in sorted(host.paths.items()):
            path.advance(self.now_ns)
            path.told = path.counters()
            sent, drops, backlog = path.told
            before.append(Usage(*pair, sent // SEGMENT_BYTES, sent, drops, 0, backlog))
        host.sharing.restore(self.now_ns, before)
        host.sharing.epoch(self.view, self.now_ns)
        self._push(self.now_ns + PERIOD_NS, _TICK, number)

    def _look(self, host: Host, changes: Sequence[Change]) -> Sequence[Change]:
        """What to tell the datapath after a tick: nothing as long as the agent only looks."""
        if not host.looking:
            return changes
        for change in changes:
            host.found[change.src, change.dst, isinstance(change, PathDelay)] = change
        host.looking -= 1
        if host.looking:
            return []
        for pair, path in host.paths.items():
            declared = self._declared(pair)
            path.limit_bps, path.queue_bytes = declared.limit_bps, declared.queue_bytes
            path.rtt_ns = declared.rtt_ns
        return list(host.found.values())

    def _push(self, at_ns: int, kind: int, what: object) -> None:
        self._serial += 1
        heapq.heappush(self._events, (at_ns, kind, self._serial, what))

    def add(
        self, src: int, dst: int, source: Source, start_ns: int = 0, end_ns: int = 2**62
    ) -> None:
        """A source on the path from src to dst."""
        self._push(start_ns, _START, ((src, dst), source, end_ns))

    def change(self, at_ns: int, view: View, then: Callable[[], None] = lambda: None) -> None:
        """Another epoch; `then` is for the exchanges."""
        self._push(at_ns, _CHANGE, (view, then))

    def path(self, src: int, dst: int) -> _Path:
        """The datapath's, brought up to now."""
        path = self.hosts[self._placement[src]].paths[src, dst]
        path.advance(self.now_ns)
        return path

    def rates(self, pairs: Sequence[Pair], for_ns: int) -> dict[Pair, float]:
        """Runs on for so long; what each path has sent meanwhile, in b/s."""
        before = {pair: self.path(*pair).sent for pair in pairs}
        self.run(self.now_ns + for_ns)
        after = {pair: self.path(*pair).sent for pair in pairs}
        return {pair: (after[pair] - before[pair]) * 8 * NS_PER_S / for_ns for pair in pairs}

    def limits(self, pairs: Sequence[Pair]) -> dict[Pair, int]:
        return {pair: self.path(*pair).limit_bps for pair in pairs}

    def run(self, until_ns: int) -> None:
        while self._events and self._events[0][0] <= until_ns:
            at_ns, kind, _, what = heapq.heappop(self._events)
            self.now_ns = at_ns
            if kind == _TICK:
                self._tick(what)  # type: ignore[arg-type]
            elif kind == _DATAGRAM:
                assert isinstance(what, tuple)
                number, datagram = what
                if self.hosts[number].alive:
                    self.hosts[number].exchange.incoming(at_ns, datagram)
            elif kind == _START:
                self._start(*what)  # type: ignore[misc]
            else:
                self._change(*what)  # type: ignore[misc]
        self.now_ns = until_ns

    def _start(self, pair: Pair, source: Source, end_ns: int) -> None:
        paths = self.hosts[self._placement[pair[0]]].paths
        if pair not in paths:
            paths[pair] = self._declared(pair)
        paths[pair].advance(self.now_ns)
        paths[pair].sources.append((source, end_ns))

    def _declared(self, pair: Pair) -> _Path:
        view = self.view.path(*pair)
        assert view is not None, pair
        narrowest = min(view.links, key=lambda link: self.view.capacity(link) or 2**63)
        return _Path(
            view.rate_bps, self.view.queue(narrowest), view.rtt_ns, self.now_ns, self._grain
        )

    def _change(self, view: View, then: Callable[[], None]) -> None:
        """As the datapath does it: what differs in the collapsed figures is set."""
        before, self.view = self.view, view
        for host in self.hosts:
            for pair, path in host.paths.items():
                path.advance(self.now_ns)
                old, new = before.path(*pair), view.path(*pair)
                assert old is not None and new is not None
                declared = self._declared(pair)
                path.rtt_ns = declared.rtt_ns
                if old.rate_bps != new.rate_bps:
                    path.limit_bps, path.queue_bytes = declared.limit_bps, declared.queue_bytes
            host.sharing.epoch(view, self.now_ns)
        then()

    def _tick(self, number: int) -> None:
        host = self.hosts[number]
        if not host.alive:
            return
        usage = []
        for (src, dst), path in sorted(host.paths.items()):
            path.advance(self.now_ns)
            counters = path.counters()
            if counters != path.told:
                path.told = counters
                sent, drops, backlog = counters
                usage.append(Usage(src, dst, sent // SEGMENT_BYTES, sent, drops, 0, backlog))
        tick = host.sharing.tick(self.now_ns, usage, host.exchange.remote(self.now_ns))
        for change in self._look(host, tick.changes):
            path = host.paths[change.src, change.dst]
            if isinstance(change, PathDelay):
                view = self.view.path(change.src, change.dst)
                assert view is not None
                path.rtt_ns = view.rtt_ns + change.delay_ns - view.delay_ns
                continue
            path.limit_bps, path.queue_bytes = change.rate_bps, change.queue_bytes
            host.changed += 1
            if self._keep:
                host.changes.append((self.now_ns, change))
        for other, datagram in host.exchange.outgoing(self.now_ns, tick.flows):
            host.datagrams += 1
            host.bytes += len(datagram)
            if self._random.random() >= self._loss:
                self._push(self.now_ns + self._delay_ns, _DATAGRAM, (other, datagram))
        self._push(tick.next_ns, _TICK, number)


def interest(
    view: View, pairs: Sequence[Pair], placement: Sequence[int]
) -> dict[int, frozenset[int]]:
    """Limited link -> the hosts with a path over it; `pairs` are all that have a path."""
    found: dict[int, set[int]] = {}
    for src, dst in pairs:
        path = view.path(src, dst)
        for link in path.links if path else ():
            if view.capacity(link):
                found.setdefault(link, set()).add(placement[src])
    return {link: frozenset(hosts) for link, hosts in found.items()}
