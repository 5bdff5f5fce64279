"""What a probe may meet where links of its way follow traces: hop by hop, from when it was sent.

At each link it is there between two moments, which are the same as long as nothing but the plan
decides. Where a trace serves the queue it leaves at the next opportunity at least, and at most when
all has left that may have waited before it. Source: docs/certificate.md, Traces. Times are ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from compiler.plan.parts.traces import FollowedTraces, Opportunities, Trace
from compiler.plan.properties import LinkState
from runtime.certify.expected_delay import (
    MOST_LOOK_BACK_NS,
    PACKET_BYTES,
    PROBE_BYTES,
    ExpectedDelay,
    Queue,
    Wait,
    links,
    queue_of,
    reach,
    wait_at,
)
from runtime.certify.planned_paths import Planned, PlannedWay
from runtime.certify.traffic import Traffic

SLOP_NS = 1_000_000  # by which a probe may be at a link before or after its computed time


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """What a link follows; times of the run, in which the trace began at `begin_ns`."""

    trace: Trace
    holds: bool
    begin_ns: int

    @property
    def serves(self) -> bool:
        return "rate_bps" in self.trace.fields

    def leaves(self, at_ns: int, size: int) -> int:
        """When the last of so many bytes has left that wait at a time."""
        since = max(at_ns - self.begin_ns, 0)
        return self.begin_ns + self.trace.when(since, size, holds=self.holds)

    def bits(self, from_ns: int, to_ns: int) -> int:
        begin, end = (max(at - self.begin_ns, 0) for at in (from_ns, to_ns))
        return self.trace.bits(begin, end, holds=self.holds) if end > begin else 0

    def delays(self, from_ns: int, to_ns: int, state: LinkState) -> tuple[int, int]:
        """The least and the greatest of what leaves the queue then."""
        if isinstance(self.trace, Opportunities) or "delay_ns" not in self.trace.fields:
            return state.delay_ns, state.delay_ns
        begin = max(from_ns - self.begin_ns, 0)
        end = max(to_ns - self.begin_ns, begin + 1)
        found = self.trace.ranges(begin, end, holds=self.holds)
        one = found[self.trace.fields.index("delay_ns")]
        return one.least, one.most

    def jittered(self, state: LinkState) -> list[LinkState]:
        """The states that it makes of a link, where it has a jitter."""
        if isinstance(self.trace, Opportunities) or "jitter_ns" not in self.trace.fields:
            return []
        places = [self.trace.fields.index(name) for name in ("delay_ns", "jitter_ns")]
        kinds = {tuple(row.values[place] for place in places) for row in self.trace.rows}
        return [state._replace(delay_ns=delay, jitter_ns=jitter) for delay, jitter in sorted(kinds)]

    def emptied(self, at_ns: int, size: int) -> int:
        """From when on so many bytes would have left by then: what came before is gone."""
        back = 10_000_000
        while back < MOST_LOOK_BACK_NS and self.bits(at_ns - back, at_ns) < 8 * size:
            back *= 2
        return max(at_ns - back, 0)


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The plan's traces in a run that begins at `start_ns` of the plan."""

    known: FollowedTraces
    start_ns: int

    def of(self, state: LinkState) -> LinkTrace | None:
        if not state.trace:
            return None
        planned, trace = self.known.content(state.trace)
        return LinkTrace(trace, planned.holds, planned.begin_ns - self.start_ns)


def of_run(planned: Planned) -> RunTraces | None:
    """None where no link ever follows one."""
    return None if planned.traces is None else RunTraces(planned.traces, planned.start_ns)


class CrossedLink(NamedTuple):
    link: int
    state: LinkState
    trace: LinkTrace | None
    queue: Queue  # where no trace serves it


class TracedWay:
    """Of ways of which a link at least follows a trace."""

    def __init__(self, hops: Sequence[CrossedLink]) -> None:
        self._hops = hops

    def expected(self, usual: ExpectedDelay) -> ExpectedDelay:
        """What varies cannot be told by the deviation of all delays."""
        varied = [hop.trace.jittered(hop.state) for hop in self._hops if hop.trace is not None]
        states = [state for found in varied for state in found]
        cut = usual.cut or any(state.delay_ns < reach(state) for state in states)
        return replace(usual, varies=True, mixed=usual.mixed or bool(states), cut=cut)

    def wait(self, traffic: Traffic, sent_ns: int, until_ns: int) -> Wait:
        """Beside the planned delay, of a probe that was on its way until then at most."""
        low, high, planned, may_drop = sent_ns, sent_ns, 0, False
        told_ns = traffic.told_by(until_ns)
        for link, state, trace, queue in self._hops:
            planned += state.delay_ns
            if trace is not None and trace.serves:
                low = max(low - SLOP_NS, sent_ns)
                begin = trace.emptied(low, state.queue_bytes + PACKET_BYTES)
                offered = traffic.links.within(link, begin, told_ns)
                size = min(max(offered, PROBE_BYTES), state.queue_bytes + PACKET_BYTES)
                low, high = trace.leaves(low, 1), trace.leaves(high + SLOP_NS, size)
                may_drop |= offered > max(state.queue_bytes, PROBE_BYTES)
            elif state.rate_bps:
                held_ns, drops = wait_at(traffic, queue, low, told_ns)
                high += held_ns
                may_drop |= drops
            least, most = (
                trace.delays(low, high + 1, state) if trace else (state.delay_ns, state.delay_ns)
            )
            low, high = low + least, high + most
        beside = sent_ns + planned
        return Wait(high - beside, may_drop, crowded=False, least_ns=low - beside)


def traced(crossed: Sequence[PlannedWay], known: RunTraces | None) -> TracedWay | None:
    """None where no link follows a trace."""
    if known is None or not any(state.trace for way in crossed for state in way.states):
        return None
    return TracedWay(list(_hops(crossed, known)))


def _hops(crossed: Sequence[PlannedWay], known: RunTraces) -> Iterator[CrossedLink]:
    for link, state, beside in links(crossed):
        queue = queue_of(link, state, beside, draws=False)
        yield CrossedLink(link, state, known.of(state), queue)


def serving(way: PlannedWay, known: RunTraces | None) -> list[LinkTrace]:
    """Of the traces of a way those that have a rate."""
    found = [known.of(state) for state in way.states] if known is not None else []
    return [one for one in found if one is not None and one.serves]
