"""What flowed, from samples.jsonl: bytes of pairs and of links over time, in buckets.

Where no process sees a link (over hosts) its bytes are those of the pairs whose paths it is on.
Memory is bounded: with too many entries buckets become twice as long. Times are real ns since the
start of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter, sub
from typing import Any

from runtime.certify.planned import Pair, Planned, find_begun

BUCKET_NS = 200_000_000  # two samples
MOST_ENTRIES = 2_000_000
MOST_LATE_NS = (
    2_000_000_000  # of a sample; a run that stands still for longer is told by its stalls
)
_LINK = ("link", "bytes")
_PAIR = ("src", "dst", "offered_bytes", "offered_pkts", "delivered_bytes", "delivered_pkts")
_NOTHING = (0, 0, 0, 0)

Rows = Sequence[Sequence[int]]


class Series:
    """Bytes by key and bucket."""

    def __init__(self) -> None:
        self.bucket_ns = BUCKET_NS
        self._bytes: dict[int, dict[int, int]] = defaultdict(dict)
        self._entries = 0

    def add(self, key: int, at_ns: int, count: int) -> None:
        row, bucket = self._bytes[key], at_ns // self.bucket_ns
        if bucket not in row:
            self._entries += 1
        row[bucket] = row.get(bucket, 0) + count
        if self._entries > MOST_ENTRIES:
            self._coarsen()

    def _coarsen(self) -> None:
        self.bucket_ns *= 2
        self._entries = 0
        for row in self._bytes.values():
            longer: dict[int, int] = defaultdict(int)
            for bucket, count in row.items():
                longer[bucket // 2] += count
            row.clear()
            row.update(longer)
            self._entries += len(row)

    def within(self, key: int, begin_ns: int, end_ns: int) -> int:
        """Bytes that may have been counted from `begin_ns` to `end_ns`: a bucket more at either
        end, since a sample tells of the time before it."""
        row = self._bytes.get(key)
        if not row:
            return 0
        first, last = begin_ns // self.bucket_ns, end_ns // self.bucket_ns + 1
        if last - first > len(row):
            return sum(count for bucket, count in row.items() if first <= bucket <= last)
        return sum(row.get(bucket, 0) for bucket in range(first, last + 1))

    def moved(self, key: int) -> list[tuple[int, int]]:
        """(when a bucket began, its bytes), by time."""
        row = self._bytes.get(key, {})
        return [(bucket * self.bucket_ns, row[bucket]) for bucket in sorted(row)]


class Traffic:
    """`links` by their numbers; `offered` and `delivered` by `key` of a pair; `into` and `out` by
    node: what was delivered to it and what it offered."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.links, self.offered, self.delivered = Series(), Series(), Series()
        self.into, self.into_packets = Series(), Series()
        self.out, self.out_packets = Series(), Series()
        self.pairs: set[Pair] = set()
        self.sees_links = False
        self._before: dict[int, Sequence[int]] = {}  # of pairs, by key
        self._before_links: dict[int, int] = {}
        self._of_links = _picked((), _LINK)
        self._of_pairs = _picked((), _PAIR)
        self._times: dict[str, list[int]] = defaultdict(list)  # of samples, by who took them

    def key(self, pair: Pair) -> int:
        return pair[0] * self._nodes + pair[1]

    def take(self, record: Mapping[str, Any]) -> None:
        """A line of samples.jsonl that was checked; rows of another width are left out."""
        if "columns" in record:
            columns = record["columns"]
            self.sees_links = bool(columns["links"])
            self._of_links = _picked(columns["links"], _LINK)
            self._of_pairs = _picked(columns["pairs"], _PAIR)
            return
        at_ns = max(int(record.get("elapsed_ns", 0)), 0)
        self._times[str(record.get("host", ""))].append(at_ns)
        for link, count in self._of_links(record["links"]):
            more = count - self._before_links.get(link, 0)
            self._before_links[link] = count
            if more > 0:
                self.links.add(link, at_ns, more)
        for row in self._of_pairs(record["pairs"]):
            self._take_pair(at_ns, *row)

    def _take_pair(self, at_ns: int, src: int, dst: int, *counts: int) -> None:
        """`counts`: as in _PAIR."""
        key = src * self._nodes + dst
        before = self._before.get(key)
        self._before[key] = counts
        if before is None:
            self.pairs.add((src, dst))
            before = _NOTHING
        out, out_packets, into, into_packets = map(sub, counts, before)
        if out > 0:
            self.offered.add(key, at_ns, out)
            self.out.add(src, at_ns, out)
        if into > 0:
            self.delivered.add(key, at_ns, into)
            self.into.add(dst, at_ns, into)
        if out_packets > 0:
            self.out_packets.add(src, at_ns, out_packets)
        if into_packets > 0:
            self.into_packets.add(dst, at_ns, into_packets)

    # A counter is read between the sample before and the moment that its own one has: so one sample
    # more is looked at in either direction. On a busy machine they are far from each other.

    def told_by(self, at_ns: int) -> int:
        """By then samples have told what was counted until `at_ns`."""
        found = [_after(times, at_ns) for times in self._times.values()]
        return min(max(found, default=at_ns), at_ns + MOST_LATE_NS)

    def told_from(self, at_ns: int) -> int:
        """What samples tell from `at_ns` on was counted after that."""
        found = [_before(times, at_ns) for times in self._times.values()]
        return max(min(found, default=at_ns), at_ns - MOST_LATE_NS)

    def spread(self, planned: Planned) -> None:
        """Over the links of the pairs' paths, where no process has counted links."""
        if self.sees_links:
            return
        for pair, stretches in planned:
            for at_ns, count in self.offered.moved(self.key(pair)):
                at = find_begun(stretches, at_ns)
                way = stretches[at].there if at >= 0 else None
                for link in way.links if way else ():
                    self.links.add(link, at_ns, count)


def _picked(
    columns: Sequence[str], wanted: Sequence[str]
) -> Callable[[Rows], Iterator[tuple[int, ...]]]:
    """Takes rows apart: of each that is as wide as its columns the wanted values, in order. None
    where a column is missing."""
    if not set(wanted) <= set(columns):
        return lambda _rows: iter(())
    values = itemgetter(*map(columns.index, wanted))
    return lambda rows: (values(row) for row in rows if len(row) == len(columns))


def _after(times: Sequence[int], at_ns: int) -> int:
    """Of the second sample from `at_ns` on, or of the last one."""
    place = min(bisect_left(times, at_ns) + 1, len(times) - 1)
    return max(times[place], at_ns)


def _before(times: Sequence[int], at_ns: int) -> int:
    """Of the second sample before the first one from `at_ns` on."""
    place = bisect_left(times, at_ns) - 2
    return times[place] if place >= 0 else 0
