"""Bytes that were delivered from one instance to another over time, from samples.jsonl.

A counter is known at its samples. Between two samples it is taken to grow evenly, but for no longer
than SPREAD_NS before the later one: where nothing moves there are no samples. Times are real ns
since the start of the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.certify.planned_paths import Pair

SPREAD_NS = 200_000_000  # two samples
_COLUMNS = ("src", "dst", "delivered_bytes")


@dataclass(slots=True)
class Counted:
    """Of one pair: when its counter had grown, since when at the earliest, and to what."""

    until_ns: list[int] = field(default_factory=list)
    since_ns: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    def add(self, since_ns: int, until_ns: int, count: int) -> None:
        last_ns = self.until_ns[-1] if self.until_ns else 0
        if until_ns <= last_ns or count < (self.bytes[-1] if self.bytes else 0):
            return  # not of one run: whoever wrote it is not believed
        self.since_ns.append(max(since_ns, until_ns - SPREAD_NS, last_ns))
        self.until_ns.append(until_ns)
        self.bytes.append(count)

    def by(self, at_ns: int) -> float:
        """How many had been delivered by then."""
        place = bisect_right(self.until_ns, at_ns)
        before = self.bytes[place - 1] if place else 0
        if place == len(self.until_ns) or at_ns <= self.since_ns[place]:
            return float(before)
        since_ns, until_ns = self.since_ns[place], self.until_ns[place]
        grown = self.bytes[place] - before
        return before + grown * (at_ns - since_ns) / (until_ns - since_ns)

    def bps(self, from_ns: int, to_ns: int) -> int:
        return round((self.by(to_ns) - self.by(from_ns)) * 8 * 10**9 / (to_ns - from_ns))


def counted(samples: Iterable[Mapping[str, Any]], pairs: Collection[Pair]) -> dict[Pair, Counted]:
    """Of these pairs, as far as anything moved. Rows of another width are left out."""
    found: dict[Pair, Counted] = {}
    before: dict[str, int] = {}  # the last sample, by who took it
    columns: list[str] = []
    places: list[int] = []
    for record in samples:
        if "columns" in record:
            columns = record["columns"]["pairs"]
            known = set(_COLUMNS) <= set(columns)
            places = [columns.index(name) for name in _COLUMNS] if known else []
            continue
        at_ns, host = max(int(record.get("elapsed_ns", 0)), 0), str(record.get("host", ""))
        since_ns, before[host] = before.get(host, 0), at_ns
        for row in record["pairs"] if places else ():
            if len(row) == len(columns):
                src, dst, count = (row[place] for place in places)
                if (src, dst) in pairs:
                    found.setdefault((src, dst), Counted()).add(since_ns, at_ns, count)
    return found
