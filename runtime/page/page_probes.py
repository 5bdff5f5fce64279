"""probes.jsonl as series: how long packets took between pairs, how many were lost, and how the
delays of each pair are distributed.

Input: the lines of the file, whole or in part, and the grid. A bucket has the mean of its probes
and the smallest and largest. Open ones (docs/probes.md) are counted apart. The distribution is told
by percentiles of all probes of the run, or of the first MOST_KEPT of a pair.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runtime.page.grid import TimeGrid, packed, percentiles, since

NUMBERS = 5  # of each bucket
MOST_KEPT = 20_000  # delays of a pair
PERMILLE = (
    *range(0, 1000, 10),
    *range(991, 1001),
)  # of the distribution: each percent, and the tail more closely
MOST_DELAY_NS = (1 << 63) - 1


class Probes:
    """`pairs` are those of the header that are shown. `changed`: as of page_traffic.Flows."""

    def __init__(
        self, grid: TimeGrid, header: Mapping[str, Any], most_pairs: int, pace: int
    ) -> None:
        self._grid, self._pace = grid, pace
        self.measure = str(header["measure"])
        named: list[list[str]] = header["pairs"]
        self.pairs = [(src, dst) for src, dst in named[:most_pairs]]
        self.left_out = len(named) - len(self.pairs)
        self.of = int(header["of"])
        self.not_probed = len(header.get("not_probed", ()))
        self.intervals_ns: Sequence[int] = header["intervals_ns"]
        self._buckets: list[dict[int, list[int]]] = [{} for _ in self.pairs]
        self._open: list[Counter[int]] = [Counter() for _ in self.pairs]  # of few buckets
        self._delays = [array("q") for _ in self.pairs]
        self.sent = [0] * len(self.pairs)
        self.lost = [0] * len(self.pairs)
        self.last_ns: list[int | None] = [None] * len(self.pairs)  # delay of the last that came
        self.changed = self._latest = 0

    def take(self, record: Mapping[str, Any]) -> None:
        for pair, sent_ns, delay_ns in record.get("probes", ()):
            if pair >= len(self.pairs):
                continue
            bucket = self._look_at(sent_ns)
            found = self._buckets[pair].setdefault(bucket, [0, MOST_DELAY_NS, 0, 0, 0])
            self.sent[pair] += 1
            if delay_ns is None:
                found[4] += 1
                self.lost[pair] += 1
                continue
            delay = self.last_ns[pair] = min(delay_ns, MOST_DELAY_NS)
            found[0] += delay
            found[1] = min(found[1], delay)
            found[2] = max(found[2], delay)
            found[3] += 1
            if len(self._delays[pair]) < MOST_KEPT:
                self._delays[pair].append(delay)
        for pair, sent_ns in record.get("open", ()):
            if pair < len(self.pairs):
                self._open[pair][self._look_at(sent_ns)] += 1

    def open_counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Of each pair, how many are open so far."""
        for pair, buckets in zip(self.pairs, self._open, strict=True):
            yield pair, buckets.total()

    def _look_at(self, sent_ns: int) -> int:
        """The bucket of this time, which changes."""
        bucket = self._grid.bucket(sent_ns)
        self.changed = min(self.changed, bucket)
        self._latest = max(self._latest, bucket)
        return bucket

    def cut(self) -> int:
        """Of how many pairs only the first delays are in the distribution."""
        return sum(sent - lost > MOST_KEPT for sent, lost in zip(self.sent, self.lost, strict=True))

    def coarsen(self) -> None:
        """Goes over to buckets of twice the length."""
        self._grid, self._latest = self._grid.coarser(), self._latest // 2
        self._buckets = [_coarser(buckets) for buckets in self._buckets]
        for pair, counts in enumerate(self._open):
            self._open[pair] = Counter(at // 2 for at in counts.elements())

    def record(self, pair: int) -> dict[str, Any]:
        """All of it."""
        spread = percentiles(sorted(self._delays[pair]), PERMILLE, 1000)
        return {**self.series(pair), "cdf": spread}

    def series(self, pair: int, first: int = 0) -> dict[str, Any]:
        """From the bucket `first` on."""
        count = self._grid.count
        buckets = since(self._buckets[pair], first, self._latest + 1)
        there = {at: one for at, one in buckets.items() if one[3]}
        found = {
            "mean": packed({at: one[0] // one[3] for at, one in there.items()}, count),
            "got": packed({at: one[3] for at, one in there.items()}, count),
            "lost": packed({at: one[4] for at, one in buckets.items() if one[4]}, count),
            "sent": self.sent[pair],
            "missing": self.lost[pair],
            "interval_ns": self._interval(pair),
        }
        if open_ := {at: n for at, n in sorted(self._open[pair].items()) if at >= first}:
            found["open"] = packed(open_, count)
        if any(one[3] > 1 for one in there.values()):
            found["lo"] = packed({at: one[1] for at, one in there.items()}, count)
            found["hi"] = packed({at: one[2] for at, one in there.items()}, count)
        return found

    def _interval(self, pair: int) -> int:
        """Plan time, as the grid is."""
        return self.intervals_ns[pair] * self._pace if pair < len(self.intervals_ns) else 0


def _coarser(buckets: Mapping[int, list[int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for bucket, (whole, low, high, got, lost) in buckets.items():
        one = found.setdefault(bucket // 2, [0, MOST_DELAY_NS, 0, 0, 0])
        one[0] += whole
        one[1], one[2] = min(one[1], low), max(one[2], high)
        one[3] += got
        one[4] += lost
    return found
