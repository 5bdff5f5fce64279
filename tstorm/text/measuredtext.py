"""What `tstorm explain` adds for measured paths: what is available by the number of flows, what the
queues are, and the bounds between which they have to be (compiler/path_queues.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from compiler import path_queues
from compiler.phrases import number
from compiler.plan.properties import FlowRate, LinkState, flow_table, with_flows
from tstorm import output, units

if TYPE_CHECKING:
    from compiler.analysis.path_explanation import SharedQueue, Story

_MOST_LINKS = 8  # of a bottleneck that are named
_HEAD = ("FLOWS", "UP", "DOWN", "QUEUE UP", "QUEUE DOWN", "FULL", "FILLED UP TO", "LEAST UP",
         "LEAST DOWN", "MOST TOGETHER")  # fmt: skip


class MeasuredRow(NamedTuple):
    """With so many flows; pairs are of both directions. `full_ns`: a round trip while both queues
    are full (equation 1); `filled_ns`: up to that round trip flows get all that is available
    (equation 3); `least_bytes` and `most_bytes` are the bounds of the queues, of both together."""

    flows: int
    rate_bps: tuple[int, int]
    queue_bytes: tuple[int, int]
    full_ns: int
    filled_ns: int
    least_bytes: tuple[int, int]
    most_bytes: int


class MeasuredPath(NamedTuple):
    """Of a path that has both directions now. `links` are its two."""

    links: tuple[str, str]
    rtt_ns: int
    capacity_bps: tuple[int, int]
    wmax_bytes: int
    rows: tuple[MeasuredRow, ...]


def paths(story: Story) -> Iterator[MeasuredPath]:
    """Of a story's links those that are measured paths, both ways."""
    back = {hop.link: hop.state for hop in story.back.hops}
    for hop in story.there.hops:
        source, dest = hop.link.split("->")
        other = back.get(f"{dest}->{source}")
        if hop.state.wmax_bytes and other is not None:
            yield _measured((hop.link, f"{dest}->{source}"), hop.state, other)


def _measured(links: tuple[str, str], up: LinkState, down: LinkState) -> MeasuredPath:
    tables = [flow_table(state) for state in (up, down)]
    flows = sorted({row.flows for table in tables for row in table})
    rtt_ns = up.delay_ns + down.delay_ns
    both = (up.capacity_bps, down.capacity_bps)
    rows = tuple(
        _row(n, [with_flows(table, n) for table in tables], both, up.wmax_bytes, rtt_ns)
        for n in flows
    )
    return MeasuredPath(links, rtt_ns, both, up.wmax_bytes, rows)


def _row(
    flows: int, both: list[FlowRate], capacity_bps: tuple[int, int], wmax: int, rtt_ns: int
) -> MeasuredRow:
    most_bps = max(one.rate_bps for one in both)
    spare_ns = path_queues.spare_ns(flows, wmax, most_bps, rtt_ns)
    least = [path_queues.least_queue(flows, wmax, one.rate_bps, rtt_ns) for one in both]
    full = zip(both, capacity_bps, strict=True)
    bits_ns = 8 * 10**9
    return MeasuredRow(
        flows,
        (both[0].rate_bps, both[1].rate_bps),
        (both[0].queue_bytes, both[1].queue_bytes),
        rtt_ns + sum(one.queue_bytes * bits_ns // bps for one, bps in full),
        rtt_ns + spare_ns,
        (least[0], least[1]),
        max(spare_ns, 0) * sum(capacity_bps) // (2 * bits_ns),
    )


def show(story: Story) -> None:
    for path in paths(story):
        output.line("")
        both = " and ".join(dict.fromkeys(map(units.rate, path.capacity_bps)))
        output.line(
            f"{path.links[0]} is a measured path: round trip {units.duration(path.rtt_ns)},"
            f" capacity {both}, windows of {units.size(path.wmax_bytes)}"
        )
        rows = (_cells(row) for row in path.rows)
        output.emit_table(_HEAD, rows, right=range(len(_HEAD)))

    for hop in (*story.there.hops, *story.back.hops):
        if hop.shares is not None:
            _shared(hop.link, hop.shares)


def _shared(link: str, queue: SharedQueue) -> None:
    output.line("")
    links = f"{number(len(queue.links), 'link')}: {', '.join(queue.links[:_MOST_LINKS])}"
    more = ", ..." if len(queue.links) > _MOST_LINKS else ""
    output.line(
        f"{link} has its queue in the bottleneck {queue.name}, capacity"
        f" {units.rate(queue.capacity_bps)}, of {links}{more}"
    )
    rows = (
        (str(each), units.rate(row.rate_bps), units.size(row.queue_bytes))
        for each, row in queue.rows
    )
    output.emit_table(("FLOWS ON EACH", "ALL TOGETHER", "QUEUE"), rows, right=range(3))


def _cells(row: MeasuredRow) -> tuple[str, ...]:
    """Round trips to 10 us: they are bounds."""
    times = (units.duration(round(ns, -4)) for ns in (row.full_ns, row.filled_ns))
    return (
        str(row.flows),
        *map(units.rate, row.rate_bps),
        *map(units.size, row.queue_bytes),
        *times,
        *map(units.size, row.least_bytes),
        units.size(row.most_bytes),
    )
