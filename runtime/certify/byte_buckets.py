"""Bytes by key over time, in buckets.

Of each key there are the buckets in which something was counted, in order, and how much it was.
What is added waits until somebody asks or PENDING numbers of it are there: a run of additions of
the same keys is turned from rows into columns at once. Memory is bounded: with more than
MOST_ENTRIES buckets they become twice as long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import compress, groupby
from operator import itemgetter

BUCKET_NS = 200_000_000  # two samples
MOST_ENTRIES = 2_000_000
PENDING = 200_000

Keys = Sequence[int]
Run = tuple[list[int], list[Sequence[int]]]  # buckets, and of each how much was counted of each key


class ByteBuckets:
    def __init__(self) -> None:
        self.bucket_ns = BUCKET_NS
        self._rows: dict[int, tuple[list[int], list[int]]] = {}
        self._entries = 0
        self._pending: list[tuple[Keys, int, Sequence[int]]] = []
        self._waiting = 0  # numbers in there

    def add(self, at_ns: int, keys: Keys, counts: Sequence[int]) -> None:
        """What was counted at one moment of each key, 0 or more. No key is there twice."""
        self._pending.append((keys, at_ns, counts))
        self._waiting += len(keys)
        if self._waiting > PENDING:
            self.settle()

    def settle(self) -> None:
        """After this `bucket_ns` is true of what was added so far."""
        for keys, additions in groupby(self._pending, itemgetter(0)):
            for buckets, rows in self._runs(additions):
                for key, column in zip(keys, zip(*rows, strict=True), strict=True):
                    if 0 in column:
                        self._append(key, list(compress(buckets, column)), [*filter(None, column)])
                    else:
                        self._append(key, buckets, column)
        self._pending, self._waiting = [], 0
        before = self._entries + 1
        while MOST_ENTRIES < self._entries < before:
            before = self._entries
            self._coarsen()

    def _runs(self, additions: Iterator[tuple[Keys, int, Sequence[int]]]) -> Iterator[Run]:
        """Of the same keys: buckets that follow each other, each of them once."""
        buckets: list[int] = []
        rows: list[Sequence[int]] = []
        for _, at_ns, counts in additions:
            bucket = at_ns // self.bucket_ns
            if buckets and bucket < buckets[-1]:
                yield buckets, rows
                buckets, rows = [], []
            if buckets and bucket == buckets[-1]:
                rows[-1] = tuple(map(sum, zip(rows[-1], counts, strict=True)))
            else:
                buckets.append(bucket)
                rows.append(counts)
        yield buckets, rows

    def _append(self, key: int, buckets: Sequence[int], counts: Sequence[int]) -> None:
        if not buckets:
            return
        own, sums = self._rows.setdefault(key, ([], []))
        self._entries -= len(own)
        late = bisect_left(buckets, own[-1] + 1) if own else 0
        for bucket, count in zip(buckets[:late], counts[:late], strict=True):
            at = bisect_left(own, bucket)  # hosts' samples are not in order
            if own[at] == bucket:
                sums[at] += count
            else:
                own.insert(at, bucket)
                sums.insert(at, count)
        own.extend(buckets[late:])
        sums.extend(counts[late:])
        self._entries += len(own)

    def _coarsen(self) -> None:
        self.bucket_ns *= 2
        self._entries = 0
        for key, (buckets, sums) in self._rows.items():
            longer: dict[int, int] = {}
            for bucket, count in zip(buckets, sums, strict=True):
                longer[bucket // 2] = longer.get(bucket // 2, 0) + count
            self._rows[key] = [*longer], [*longer.values()]
            self._entries += len(longer)

    def _row(self, key: int) -> tuple[Sequence[int], Sequence[int]]:
        if self._pending:
            self.settle()
        return self._rows.get(key, ((), ()))

    def within(self, key: int, begin_ns: int, end_ns: int) -> int:
        """Bytes that may have been counted from `begin_ns` to `end_ns`: a bucket more at either
        end, since a sample tells of the time before it."""
        buckets, sums = self._row(key)
        first = bisect_left(buckets, begin_ns // self.bucket_ns)
        last = bisect_left(buckets, end_ns // self.bucket_ns + 2, first)
        return sum(sums[first:last])

    def between(self, key: int, begin_ns: int, end_ns: int) -> tuple[Sequence[int], Sequence[int]]:
        """The buckets that began from `begin_ns` on and before `end_ns`: when they began, and their
        bytes."""
        buckets, sums = self._row(key)
        first = bisect_left(buckets, -(-begin_ns // self.bucket_ns))
        last = bisect_left(buckets, -(-end_ns // self.bucket_ns), first)
        return [bucket * self.bucket_ns for bucket in buckets[first:last]], sums[first:last]

    def whole_ns(self, begin_ns: int, end_ns: int) -> int:
        """How long the buckets of between() are together, those without bytes as well."""
        return (-(-end_ns // self.bucket_ns) - -(-begin_ns // self.bucket_ns)) * self.bucket_ns

    def moved(self, key: int) -> list[tuple[int, int]]:
        """(when a bucket began, its bytes), by time."""
        buckets, sums = self._row(key)
        return [(bucket * self.bucket_ns, n) for bucket, n in zip(buckets, sums, strict=True)]
