"""What a probe may meet on a path: the planned delay, and what queues and order may add to it.

A queue can hold a probe up no longer than it takes to send what was offered to its link lately, nor
longer than to send a full queue. Times are ns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.plan.parts.delay_tables import measured
from compiler.plan.properties import LinkState, least_queue, least_rate, most_queue
from runtime.certify.planned_paths import PlannedStretch, PlannedWay
from runtime.certify.traffic import Traffic
from runtime.probing.probe_intervals import is_heavy
from runtime.thresholds import PPB_WHOLE

PACKET_BYTES = 1500  # one that is being sent holds up the next one, however short the queue is
SMALL_BYTES = 64  # of a packet, where only bytes are known: as many packets as there may be
PROBE_BYTES = 128  # the longest of those that are not LARGE_BYTES, and what it is told apart by
MOST_LOOK_BACK_NS = 60_000_000_000
_TAILED = 80.0  # of tables that end at 23 deviations
_KURTOSIS = {"normal": 3.0, "uniform": 1.8, "pareto": _TAILED, "paretonormal": _TAILED}
_SMOOTH = 0.02  # jitters by which a table may say that its earliest are earlier than they are
APART, HEAVY_APART = 8, 24  # jitters from one probe to the next that met another jitter


@dataclass(frozen=True, slots=True)
class ExpectedDelay:
    """Of what one probe measures: one way, or there and back."""

    delay_ns: int
    jitter_ns: int  # as the plan composes it
    deviation_ns: float  # standard deviation that it means
    loss_ppb: int  # with what arrives corrupt, which no receiver takes, and what is rejected
    heavy: bool  # some jitter has a long tail
    kurtosis: float
    mixed: bool  # jitters of several distributions on one path
    cut: bool  # so much jitter that delays end at 0
    apart: int = APART  # jitters from one probe to the next that met another jitter
    clump: float = 1.0  # by how much bursts of losses raise the variance of their mean
    apart_ns: int = 0  # what all links may add to a packet that keeps no order
    apart_share: float = 0.0  # of packets that one of them adds to, at most
    apart_mean_ns: float = 0.0  # what they add on average
    varies: bool = False  # the network does, by a trace: parts are not like the whole

    @property
    def loss_variance(self) -> float:
        """Of the mean of one probe's loss, 0 or 1; of n probes it is a part of n of that."""
        share = self.loss_ppb / PPB_WHOLE
        return share * (1 - share) * self.clump

    @property
    def loses_all(self) -> bool:
        return self.loss_ppb >= PPB_WHOLE


def ways(stretch: PlannedStretch, *, both: bool) -> tuple[PlannedWay, ...]:
    """What a probe crosses; empty if there is no path."""
    if stretch.there is None or (both and stretch.back is None):
        return ()
    return (stretch.there, stretch.back) if both and stretch.back else (stretch.there,)


def expected(crossed: tuple[PlannedWay, ...]) -> ExpectedDelay:
    passed, squares, spread = 1.0, 0, 0.0
    kinds: set[str] = set()
    cut = False
    for way in crossed:
        passed *= 1 - way.totals.loss_ppb / 1e9
        squares += way.totals.jitter_ns**2
        for state in way.states:
            passed *= (1 - state.corrupt_ppb / 1e9) * (1 - state.reject_ppb / 1e9)
            if state.jitter_ns:
                kinds.add(state.distribution)
                spread += _variance(state)
                cut |= state.delay_ns < reach(state)
    heavy = any(map(is_heavy, kinds))
    tables = [table for table in map(measured, kinds) if table is not None]
    tailed = max((_KURTOSIS.get(kind, 0.0) for kind in kinds), default=3.0)
    states = [state for way in crossed for state in way.states]
    stray = [(state.reorder_ppb / 1e9, state.reorder_ns) for state in states if state.reorder_ns]
    return ExpectedDelay(
        delay_ns=sum(way.totals.delay_ns for way in crossed),
        jitter_ns=math.isqrt(squares),
        deviation_ns=math.sqrt(spread + sum(p * (1 - p) * by**2 for p, by in stray)),
        loss_ppb=round((1 - passed) * 1e9),
        heavy=heavy,
        kurtosis=max(tailed, *(table.kurtosis for table in tables), 0.0),
        apart=max(HEAVY_APART if heavy else APART, *(table.apart for table in tables), 0),
        mixed=len(kinds) > 1 or bool(stray),
        cut=cut,
        clump=max(map(_clump, states), default=1.0),
        apart_ns=sum(by for _, by in stray),
        apart_share=sum(p for p, _ in stray),
        apart_mean_ns=sum(p * by for p, by in stray),
    )


def _clump(state: LinkState) -> float:
    """Of two states whose correlation falls by `1 - begins - ends` from packet to packet."""
    burst, dense = state.burst_milli / 1000, 1 - state.burst_pass_ppb / 1e9
    loss, gap = state.loss_ppb / 1e9, state.gap_loss_ppb / 1e9
    if not burst or not gap < loss < dense:
        return 1.0
    ends = 1 / burst
    begins = ends * (loss - gap) / (dense - loss)
    return max(1.0, (2 - begins - ends) / (begins + ends))


def _variance(state: LinkState) -> float:
    return float(state.jitter_ns**2) / (3 if state.distribution == "uniform" else 1)


def reach(state: LinkState) -> float:
    """How far below its delay a packet may be early (docs/pktd.md, delay and jitter)."""
    table = measured(state.distribution)
    if table is not None:
        return state.jitter_ns * (table.early - _SMOOTH)
    factors = {"normal": 3.7, "uniform": 1.0, "pareto": 0.62, "paretonormal": 2.0}
    return state.jitter_ns * factors[state.distribution]


@dataclass(frozen=True, slots=True)
class Wait:
    """`most_ns` that queues may add; whether one may have been full; whether packets were so close
    to each other that keeping their order adds to jitter (which it does to the kernel's only)."""

    most_ns: int
    may_drop: bool
    crowded: bool
    least_ns: int = 0  # that a trace adds in any case; below 0 where its delay is below the mean


@dataclass(frozen=True, slots=True)
class Queue:
    """What may hold a probe up on a link: how long a full queue and a packet that is being sent
    take to be gone (0: it has no rate), and how fast what waits leaves, which is more than that
    where others have a part of the link. `jitter_ns`: of a link that draws it for each packet."""

    link: int
    beside: tuple[int, ...]  # links that share the queue, with it; none: it has its own
    pace_bps: int
    queue_bytes: int
    spare_bytes: int  # with so many offered while it may have waited, it is not dropped
    drain_ns: int
    jitter_ns: int
    remembers_ns: int = 0  # for so long what was offered before may drop it, too

    def held_ns(self, waiting_bytes: int) -> int:
        """At most, by what waits or a full queue."""
        most = min(waiting_bytes, self.queue_bytes + PACKET_BYTES)
        return most * 8 * 10**9 // self.pace_bps


def queues(crossed: tuple[PlannedWay, ...], *, draws: bool) -> tuple[Queue, ...]:
    """Of the links at which something may happen to a probe. `draws`: they draw jitter for each
    packet, as netem does."""
    found = (queue_of(*one, draws=draws) for one in links(crossed))
    return tuple(queue for queue in found if queue.pace_bps or queue.jitter_ns)


def queue_of(link: int, state: LinkState, beside: tuple[int, ...] = (), *, draws: bool) -> Queue:
    drain_ns, queue_bytes = 0, most_queue(state)
    if state.rate_bps:
        drain_ns = (queue_bytes + PACKET_BYTES) * 8 * 10**9 // least_rate(state)
    return Queue(
        link=link,
        beside=beside,
        pace_bps=state.capacity_bps or state.rate_bps,
        queue_bytes=queue_bytes,
        spare_bytes=_spare_bytes(state),
        drain_ns=drain_ns,
        jitter_ns=state.jitter_ns if draws else 0,
        remembers_ns=MOST_LOOK_BACK_NS if state.aqm.startswith("red;") else 0,
    )


def _spare_bytes(state: LinkState) -> int:
    """A queue that drops early takes nothing of what is no more than two full packets; RED, whose
    thresholds may be anything, but what comes alone. Where packets count they may be small."""
    if state.aqm:
        return 0 if state.aqm.startswith("red;") else 2 * PACKET_BYTES
    if state.queue_packets:
        return state.queue_packets * SMALL_BYTES
    return least_queue(state)


_NO_WAIT = Wait(0, may_drop=False, crowded=False)


def wait(traffic: Traffic, met: tuple[Queue, ...], sent_ns: int, until_ns: int) -> Wait:
    """Of a probe that was on its way from `sent_ns` to `until_ns`."""
    most_ns, may_drop, crowded = 0, False, False
    told_ns = traffic.told_by(until_ns)
    for queue in met:
        if queue.pace_bps:
            held_ns, drops = wait_at(traffic, queue, sent_ns, told_ns)
            most_ns += held_ns
            may_drop |= drops
        if queue.jitter_ns:
            crowded |= _density(traffic, queue.link, sent_ns) * 4 * queue.jitter_ns > 0.2
    return Wait(most_ns, may_drop, crowded) if most_ns or may_drop or crowded else _NO_WAIT


def wait_at(traffic: Traffic, queue: Queue, from_ns: int, told_ns: int) -> tuple[int, bool]:
    """How long the queue of a link with a rate may hold up what comes from one time on and is
    counted by the other, and whether it may drop it."""

    def offered_since(at_ns: int) -> int:
        links = queue.beside or (queue.link,)
        return sum(traffic.links.within(link, max(at_ns, 0), told_ns) for link in links)

    offered = offered_since(from_ns - min(queue.drain_ns, MOST_LOOK_BACK_NS))
    held_ns = queue.held_ns(offered)
    if queue.remembers_ns:
        offered = offered_since(from_ns - queue.remembers_ns)
    return held_ns, offered > max(queue.spare_bytes, PROBE_BYTES)


def _density(traffic: Traffic, link: int, at_ns: int) -> float:
    """Packets a ns on a link around a moment, beside the probe itself."""
    span_ns = traffic.links.bucket_ns
    count = traffic.links.within(link, at_ns - span_ns, at_ns + span_ns) - PROBE_BYTES
    return max(count, 0) / SMALL_BYTES / (4 * span_ns)


def links(crossed: Sequence[PlannedWay]) -> Iterator[tuple[int, LinkState, tuple[int, ...]]]:
    """With those that share a queue with each."""
    for way in crossed:
        beside = way.beside or ((),) * len(way.links)
        yield from zip(way.links, way.states, beside, strict=True)
