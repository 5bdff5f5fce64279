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
from operator import add
from typing import Any

from runtime.page.grid import TimeGrid, coarser, packed, since
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
    latest: int = 0  # bucket of which it was told something
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

    def coarsen(self, bits: int, step_ns: int) -> None:
        """Buckets of twice the length. `bits`: as of Flows, `step_ns`: of a bucket before."""
        rates = {bucket: size * bits // step_ns for bucket, size in self.size.items()}
        self.high = coarser({**rates, **self.high}, max)
        self.low = coarser({**rates, **self.low}, min)
        self.covered = coarser({**dict.fromkeys(rates, step_ns), **self.covered}, add)
        self.size = coarser(self.size, add)
        self.packets = coarser(self.packets, add)
        self.drops = coarser(self.drops, add)
        self.queue = coarser(self.queue, max)
        self.latest //= 2


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
    """Takes the lines of the file. `links` and `pairs` have those that are wanted, by number; pairs
    that come later have `room`. `changed`: the first bucket of which a line told, until somebody
    sets it again."""

    def __init__(
        self,
        grid: TimeGrid,
        links: Iterable[int],
        pairs: Iterable[tuple[int, int]],
        *,
        some: bool,
        pace: int,
        room: int = 0,
    ) -> None:
        self._grid, self._pace = grid, pace
        self.reader = SampleReader(some=some)
        self._bits = 8 * 10**9 * pace  # per second, of a byte per ns of plan time
        self.links: dict[Key, FlowColumns] = {link: FlowColumns() for link in links}
        self.pairs: dict[Key, FlowColumns] = {pair: FlowColumns() for pair in pairs}
        self._links = self._pairs = _table((), "", "")
        self._span_ns = 1  # what the longest line tells of
        self._room = room
        self.changed = self._latest = 0

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
        self.changed = min(self.changed, when.first)
        self._latest = max(self._latest, when.last)
        for key, row in self.reader.values(record, LINKS):
            self._add(self.links.get(key), self._links, row, when)
        for key, row in self.reader.values(record, PAIRS):
            if len(self.pairs) < self._room:
                self.pairs.setdefault(key, FlowColumns())
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
        last = flow.latest = when.last
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

    def coarsen(self) -> None:
        """Goes over to buckets of twice the length."""
        for flow in (*self.links.values(), *self.pairs.values()):
            flow.coarsen(self._bits, self._grid.step_ns)
        self._grid, self._latest = self._grid.coarser(), self._latest // 2

    def link_record(self, link: int, first: int = 0) -> dict[str, Any]:
        """From the bucket `first` on, as are those below."""
        flow, count, end = self.links[link], self._grid.count, self._latest + 1
        return {
            "link": link,
            **self._rates(flow, first),
            "queue": packed(since(flow.queue, first, end), count),
            "drops": packed(since(flow.drops, first, end), count),
        }

    def pair_record(self, key: tuple[int, int], first: int = 0) -> dict[str, Any]:
        flow, count, end = self.pairs[key], self._grid.count, self._latest + 1
        drops = since(flow.drops, first, end)
        arrived = since(flow.packets, first, end)
        packets = {bucket: flow.packets.get(bucket, 0) for bucket in {**arrived, **drops}}
        return {
            **self._rates(flow, first),
            "pkts": packed(packets, count),
            "drops": packed(drops, count),
        }

    def _rates(self, flow: FlowColumns, first: int) -> dict[str, Any]:
        """Bits per second; without `lo` and `hi` where a bucket is no longer than a sample."""
        step, count, end = self._grid.step_ns, self._grid.count, self._latest + 1
        sizes = since(flow.size, first, end)
        mean = {bucket: size * self._bits // step for bucket, size in sizes.items() if size}
        found = {"rate": packed(mean, count)}
        if flow.high:
            low = {
                bucket: min(bps, mean.get(bucket, 0))
                for bucket, bps in since(flow.low, first, end).items()
                if flow.covered[bucket] + self._span_ns >= step and bps
            }
            high = {
                at: max(bps, mean.get(at, 0))
                for at, bps in since(flow.high, first, end).items()
                if bps
            }
            found["lo"] = packed(low, count)
            found["hi"] = packed(high, count)
        return found
