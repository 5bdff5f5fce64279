"""What links have that share a queue: the bottleneck of several measured paths.

Input: the states of the links of one bottleneck, and how many flows are on each of them. Output:
what is available there and how long its queue is; and between which values that is, whatever flows
there are. tcal_c/pktd/core/flows.c computes the same; docs/pktd.md (Necks) specifies it.

With F flows, F_p of them on path p, A = sum of F_p A_p(F) / F: "the load on the bottleneck is the
sum of the load on all paths" (section 2.3 of "Modeling and Emulation of Internet Paths").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from compiler.plan.properties import FlowRate, LinkState, flow_rates_text, flow_table, with_flows
from compiler.plan.types import Link

LEAST_QUEUE_BYTES = 3000  # two packets: one is served while another one comes
MOST_QUEUE_BYTES = 1 << 30
_BITS_NS = 8 * 10**9


def members(links: Sequence[Link]) -> Mapping[str, tuple[int, ...]]:
    """The links of each bottleneck, by its name."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, link in enumerate(links):
        if link.state.neck:
            found[link.state.neck].append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}


def available(shares: Iterable[tuple[LinkState, int]]) -> FlowRate:
    """With so many flows on each of the links; without any it is as with one on each."""
    counted = list(shares)
    flows = max(sum(count for _, count in counted), 1)
    if not any(count for _, count in counted):
        counted = [(state, 1) for state, _ in counted]
    all_, rates, tolerated, longest_ns, capacity_bps = 0, 0, 0, 0, 0
    for state, weight in counted:
        if weight:
            found = with_flows(flow_table(state), flows)
            all_ += weight
            rates += weight * found.rate_bps
            tolerated += (weight << 64) // (_trip(state, state.rtt_ns) + max(found.queue_bytes, 1))
            longest_ns = max(longest_ns, state.rtt_ns)
            capacity_bps = state.capacity_bps
    rate = (2 * rates + all_) // (2 * all_)
    queue = (all_ << 64) // max(tolerated, 1) - longest_ns * capacity_bps // (2 * _BITS_NS)
    if longest_ns:
        queue = max(queue, rate * longest_ns // _BITS_NS, LEAST_QUEUE_BYTES)
    return FlowRate(flows, rate, min(max(queue, 0), MOST_QUEUE_BYTES))


def _trip(state: LinkState, rtt_ns: int) -> int:
    """A round trip in bytes at half the capacity: either direction holds half of what waits."""
    return rtt_ns * state.capacity_bps // (2 * _BITS_NS)


def bounds(state: LinkState, all_: Sequence[LinkState]) -> LinkState:
    """The state of one of these links with a table whose least and greatest rates and queues are
    those that the bottleneck may have."""
    rows = [(s, row) for s in all_ for row in flow_table(s)]
    rates = [row.rate_bps for _, row in rows]
    trips = [s.rtt_ns for s in all_]
    most = max(row.queue_bytes for _, row in rows)
    least = most
    if any(trips):
        most = max(most, max(rates) * max(trips) // _BITS_NS, LEAST_QUEUE_BYTES)
        whole = min(row.queue_bytes + _trip(s, s.rtt_ns) for s, row in rows)
        least = max(whole - _trip(state, max(trips)), min(rates) * min(trips) // _BITS_NS)
        least = max(least, LEAST_QUEUE_BYTES)
    most = min(most, MOST_QUEUE_BYTES)
    text = flow_rates_text([FlowRate(2, max(rates), most)])
    return state._replace(rate_bps=min(rates), queue_bytes=min(least, most), flow_rates=text)
