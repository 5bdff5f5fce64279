"""What flowed, from samples.jsonl: bytes of pairs and of links over time, in buckets.

Where no process sees a link (over hosts) its bytes are those of the pairs whose paths it is on.
Times are real ns since the start of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from operator import itemgetter, lt, sub
from typing import Any

from runtime.certify.byte_buckets import BUCKET_NS, ByteBuckets
from runtime.certify.planned_paths import Pair, Planned, find_begun

MOST_LATE_NS = (
    2_000_000_000  # of a sample; a run that stands still for longer is told by its stalls
)
_LINK = ("link", "bytes")
_PAIR = ("src", "dst", "offered_bytes", "offered_pkts", "delivered_bytes", "delivered_pkts")

Rows = Sequence[Sequence[int]]


class Traffic:
    """`links` by their numbers; `offered` and `delivered` by `key` of a pair; `into` and `out` by
    node: what was delivered to it and what it offered."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.links, self.offered, self.delivered = ByteBuckets(), ByteBuckets(), ByteBuckets()
        self.into, self.into_packets = ByteBuckets(), ByteBuckets()
        self.out, self.out_packets = ByteBuckets(), ByteBuckets()
        self.pairs: set[Pair] = set()
        self.sees_links = False
        self._links = Gains(1, self._add_links)
        self._pairs = Gains(4, self._add_pairs)
        self._ends: Columns = ()  # of the pairs that were sampled last
        self._keys: Sequence[int] = ()
        self._grouped: Sequence[int] = ()  # keys of which the next two are
        self._sources, self._dests = _Groups(), _Groups()
        self._of_links = _picked((), _LINK)
        self._of_pairs = _picked((), _PAIR)
        self._times: dict[str, list[int]] = defaultdict(list)  # of samples, by who took them
        self.last_ns = 0  # of all samples

    def key(self, pair: Pair) -> int:
        return pair[0] * self._nodes + pair[1]

    def sent(self, pair: Pair) -> int:
        """Bytes that it has offered in all."""
        return sum(count for _, count in self.offered.moved(self.key(pair)))

    def take(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Lines of samples.jsonl that were checked, all of them; rows of another width, or of
        nodes that the plan does not have, are left out."""
        for record in records:
            if "columns" in record:
                columns = record["columns"]
                self.sees_links = bool(columns["links"])
                self._of_links = _picked(columns["links"], _LINK)
                self._of_pairs = _picked(columns["pairs"], _PAIR)
            else:
                self._take_sample(record)
        self._links.end()
        self._pairs.end()
        for series in (
            *(self.links, self.offered, self.delivered),
            *(self.into, self.into_packets, self.out, self.out_packets),
        ):
            series.settle()

    def _take_sample(self, record: Mapping[str, Any]) -> None:
        at_ns = max(int(record.get("elapsed_ns", 0)), 0)
        self._times[str(record.get("host", ""))].append(at_ns)
        self.last_ns = max(self.last_ns, at_ns)
        links, *counts = self._of_links(record["links"])
        self._links.take(at_ns, links, counts)
        sources, dests, *counts = self._of_pairs(record["pairs"])
        if self._ends != (sources, dests):
            nodes = range(self._nodes)
            known = [a in nodes and b in nodes for a, b in zip(sources, dests, strict=True)]
            if not all(known):
                found = [sources, dests, *counts]
                kept: Columns = [tuple(compress(column, known)) for column in found]
                sources, dests, *counts = kept
            self._ends = sources, dests
            pairs = list(zip(sources, dests, strict=True))
            self._keys = tuple(map(self.key, pairs))
            self.pairs.update(pairs)
        self._pairs.take(at_ns, self._keys, counts)

    def _add_links(self, links: Sequence[int], at_ns: int, counts: Columns) -> None:
        self.links.add(at_ns, links, counts[0])

    def _add_pairs(self, keys: Sequence[int], at_ns: int, counts: Columns) -> None:
        """`counts`: as in _PAIR."""
        out, out_packets, into, into_packets = counts
        self.offered.add(at_ns, keys, out)
        self.delivered.add(at_ns, keys, into)
        if keys is not self._grouped:
            self._grouped = keys
            self._sources = _Groups([key // self._nodes for key in keys])
            self._dests = _Groups([key % self._nodes for key in keys])
        for series, groups, column in (
            (self.out, self._sources, out),
            (self.out_packets, self._sources, out_packets),
            (self.into, self._dests, into),
            (self.into_packets, self._dests, into_packets),
        ):
            series.add(at_ns, groups.keys, groups.sums(column))

    # A counter is read between the sample before and the moment that its own one has: so one sample
    # more is looked at in either direction. On a busy machine they are far from each other.

    def told_by(self, at_ns: int) -> int:
        """By then samples have told what was counted until `at_ns`."""
        latest = at_ns
        for times in self._times.values():
            place = bisect_left(times, at_ns) + 1  # the second sample from then on, or the last one
            told_ns = times[place] if place < len(times) else times[-1]
            if told_ns > latest:
                latest = told_ns
        return min(latest, at_ns + MOST_LATE_NS)

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
                if way:
                    self.links.add(at_ns, way.links, (count,) * len(way.links))
        self.links.settle()


class _Groups:
    """The places that each node has in a column; `keys`: the nodes."""

    def __init__(self, nodes: Sequence[int] = ()) -> None:
        places: dict[int, list[int]] = defaultdict(list)
        for place, node in enumerate(nodes):
            places[node].append(place)
        self.keys = tuple(places)
        self._takers = [_taker(group) for group in places.values()]

    def sums(self, column: Sequence[int]) -> tuple[int, ...]:
        return tuple([sum(take(column)) for take in self._takers])


def _taker(places: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Takes these places out of a sequence."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def _picked(columns: Sequence[str], wanted: Sequence[str]) -> Callable[[Rows], Columns]:
    """Takes rows apart: the wanted columns of those that are as wide as their columns. None where
    one is missing."""
    nothing = [()] * len(wanted)
    if not set(wanted) <= set(columns):
        return lambda _rows: nothing
    values = itemgetter(*map(columns.index, wanted))
    width = len(columns)

    def take(rows: Rows) -> Columns:
        if not set(map(len, rows)) <= {width}:
            rows = [row for row in rows if len(row) == width]
        found: Columns = values(list(zip(*rows, strict=True))) if rows else nothing
        return found

    return take


def _before(times: Sequence[int], at_ns: int) -> int:
    """Of the second sample before the first one from `at_ns` on."""
    place = bisect_left(times, at_ns) - 2
    return times[place] if place >= 0 else 0


# What counters have gained since they were told last, in sums of a bucket.
#
# Samples come oftener than buckets end, and mostly tell of the same keys again. So a sample is only
# compared with the one before, column by column, and what was gained is summed up when the bucket
# ends, or when a sample tells of other keys. A counter that fell has begun anew: it gained nothing.

Columns = Sequence[Sequence[int]]  # of each counter its values, in the order of keys
Tell = Callable[[Sequence[int], int, Columns], None]


class Gains:
    """Calls `tell` with keys, a time in the bucket, and what each counter has gained in it."""

    def __init__(self, width: int, tell: Tell) -> None:
        """`width`: counters of each key."""
        self._tell = tell
        self._nothing = (0,) * width
        self._before: dict[int, tuple[int, ...]] = {}  # of keys that are not in `_keys`
        self._keys: Sequence[int] = ()
        self._told: Columns = ()
        self._last: Columns = ()
        self._at_ns = 0

    def take(self, at_ns: int, keys: Sequence[int], columns: Columns) -> None:
        """A sample; a key may be there several times."""
        if not keys:
            return
        if keys != self._keys:
            if len(set(keys)) < len(keys):
                for place, key in enumerate(keys):
                    self.take(at_ns, (key,), [(column[place],) for column in columns])
                return
            self.end()
            self._begin(keys)
        elif at_ns // BUCKET_NS != self._at_ns // BUCKET_NS:
            self._sum_up()
        self._at_ns = at_ns
        if any(any(map(lt, now, before)) for now, before in zip(columns, self._last, strict=True)):
            self._sum_up()
            self._told = [
                tuple(map(min, now, before))
                for now, before in zip(columns, self._last, strict=True)
            ]
        self._last = columns

    def _begin(self, keys: Sequence[int]) -> None:
        self._keys = keys
        found = [self._before.pop(key, self._nothing) for key in keys]
        self._told = self._last = list(zip(*found, strict=True))

    def _sum_up(self) -> None:
        gained = [
            tuple(map(sub, now, before)) for now, before in zip(self._last, self._told, strict=True)
        ]
        self._told = self._last
        self._tell(self._keys, self._at_ns, gained)

    def end(self) -> None:
        """Tells the rest."""
        if self._keys:
            self._sum_up()
            self._before.update(zip(self._keys, zip(*self._last, strict=True), strict=True))
            self._keys = ()
