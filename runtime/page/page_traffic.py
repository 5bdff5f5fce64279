"""samples.jsonl as series: what flowed over each link and between each pair, and what was dropped.

Input: the file's lines in order, the grid, and which links and pairs are wanted. When what has
come since a sample came is the rule of runtime/rundir/sample_reader.py. Of each bucket the mean is
exact; `lo` and `hi` are the smallest and largest rate between two samples in it, where it is longer
than a sample. Times are plan time; rates are of the run's own time, in which `pace` times as much
flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.page.grid import TimeGrid, packed
from runtime.rundir.sample_reader import LINKS, PAIRS, Key, SampleReader

LINK_NUMBERS, PAIR_NUMBERS = 6, 5  # of each bucket, at most
_DROPS = ("drop_queue", "drop_loss", "drop_down", "drop_route")


@dataclass(slots=True)
class FlowColumns:
    """What is known of one link or pair, by bucket. `low` and `high` are in bits per second."""

    size: dict[int, int] = field(default_factory=dict)
    packets: dict[int, int] = field(default_factory=dict)
    drops: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    high: dict[int, int] = field(default_factory=dict)
    covered: dict[int, int] = field(default_factory=dict)
    queue: dict[int, int] = field(default_factory=dict)  # the largest seen
    waiting: int = 0  # in the queue, when it was last told of
    counted: tuple[int, int, int] = (0, 0, 0)  # bytes, packets, drops: when it was last told of

    def news(self, size: int, packets: int, drops: int) -> tuple[int, int, int]:
        """Since it was told of before; a counter that has gone back has begun anew."""
        before = self.counted
        self.counted = (size, packets, drops)
        return (
            size - before[0] if size >= before[0] else size,
            packets - before[1] if packets >= before[1] else packets,
            drops - before[2] if drops >= before[2] else drops,
        )

    def rate(self, bucket: int, bps: int, covered_ns: int) -> None:
        if bps > self.high.get(bucket, -1):
            self.high[bucket] = bps
        if bps < self.low.get(bucket, bps + 1):
            self.low[bucket] = bps
        self.covered[bucket] = self.covered.get(bucket, 0) + covered_ns

    def hold(self, bucket: int, backlog: int) -> None:
        """A queue that was not empty before still was when this bucket began."""
        if backlog or self.waiting or bucket in self.queue:
            self.queue[bucket] = max(self.queue.get(bucket, 0), backlog)
        self.waiting = backlog


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Where in a row of one kind what stands; -1: nowhere."""

    size: int
    packets: int
    drops: tuple[int, ...]
    backlog: int


def _table(columns: Sequence[str], size: str, packets: str) -> RowPositions:
    place = {name: number for number, name in enumerate(columns)}
    drops = tuple(place[name] for name in _DROPS if name in place)
    return RowPositions(
        place.get(size, -1),
        place.get(packets, -1),
        drops,
        place.get("backlog_bytes", -1),
    )


@dataclass(frozen=True, slots=True)
class _Between:
    """What one line tells of: (from_ns, at_ns], in `first` to `last` of the grid."""

    from_ns: int
    at_ns: int
    first: int
    last: int


class Flows:
    """Takes the lines of the file. `links` and `pairs` have those that are wanted, by number."""

    def __init__(
        self,
        grid: TimeGrid,
        links: Iterable[int],
        pairs: Iterable[tuple[int, int]],
        *,
        some: bool,
        pace: int,
    ) -> None:
        self._grid, self._pace = grid, pace
        self.reader = SampleReader(some=some)
        self._bits = 8 * 10**9 * pace  # per second, of a byte per ns of plan time
        self.links: dict[Key, FlowColumns] = {link: FlowColumns() for link in links}
        self.pairs: dict[Key, FlowColumns] = {pair: FlowColumns() for pair in pairs}
        self._links = self._pairs = _table((), "", "")
        self._span_ns = 1  # what the longest line tells of

    def take(self, record: Mapping[str, Any]) -> None:
        sample = self.reader.sample(record)
        if "columns" in record:
            self._links = _table(self.reader.columns[LINKS], "out_bytes", "out_pkts")
            self._pairs = _table(self.reader.columns[PAIRS], "delivered_bytes", "delivered_pkts")
        if sample is None:
            return
        from_ns, at_ns = sample.plan_since_ns(self._pace), sample.at_ns
        self._span_ns = max(self._span_ns, at_ns - from_ns)
        when = _Between(from_ns, at_ns, self._grid.bucket(from_ns), self._grid.bucket(at_ns - 1))
        for key, row in self.reader.values(record, LINKS):
            self._add(self.links.get(key), self._links, row, when)
        for key, row in self.reader.values(record, PAIRS):
            self._add(self.pairs.get(key), self._pairs, row, when)

    def _add(
        self, flow: FlowColumns | None, table: RowPositions, row: Sequence[int], when: _Between
    ) -> None:
        """Called for each row of each line: it saves what it can."""
        if flow is None:
            return
        size, packets, drops = flow.news(
            row[table.size] if table.size >= 0 else 0,
            row[table.packets] if table.packets >= 0 else 0,
            sum([row[place] for place in table.drops]),
        )
        last = when.last
        if size:
            if when.first == last:
                flow.size[last] = flow.size.get(last, 0) + size
            else:
                for bucket, part in self._grid.parts(when.from_ns, when.at_ns, size):
                    flow.size[bucket] = flow.size.get(bucket, 0) + part
            span = when.at_ns - when.from_ns
            if self._grid.step_ns > span:
                flow.rate(last, size * self._bits // span, span)
        if packets:
            flow.packets[last] = flow.packets.get(last, 0) + packets
        if drops:
            flow.drops[last] = flow.drops.get(last, 0) + drops
        if table.backlog >= 0:
            flow.hold(last, row[table.backlog])

    def link_record(self, link: int) -> dict[str, Any]:
        flow = self.links[link]
        return {
            "link": link,
            **self._rates(flow),
            "queue": packed(flow.queue, self._grid.count),
            "drops": packed(flow.drops, self._grid.count),
        }

    def pair_record(self, key: tuple[int, int]) -> dict[str, Any]:
        flow = self.pairs[key]
        packets = {bucket: flow.packets.get(bucket, 0) for bucket in {**flow.packets, **flow.drops}}
        return {
            **self._rates(flow),
            "pkts": packed(packets, self._grid.count),
            "drops": packed(flow.drops, self._grid.count),
        }

    def _rates(self, flow: FlowColumns) -> dict[str, Any]:
        """Bits per second; without `lo` and `hi` where a bucket is no longer than a sample."""
        step = self._grid.step_ns
        mean = {bucket: size * self._bits // step for bucket, size in flow.size.items() if size}
        found = {"rate": packed(mean, self._grid.count)}
        if flow.high:
            low = {
                bucket: min(bps, mean.get(bucket, 0))
                for bucket, bps in flow.low.items()
                if flow.covered[bucket] + self._span_ns >= step and bps
            }
            high = {at: max(bps, mean.get(at, 0)) for at, bps in flow.high.items() if bps}
            found["lo"] = packed(low, self._grid.count)
            found["hi"] = packed(high, self._grid.count)
        return found
