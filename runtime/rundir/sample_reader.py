"""samples.jsonl taken apart: which counters have moved, to what, and in which time.

Input: lines of the file in order, whose shape was checked (runtime/rundir/line_files.py). They are
foreign data all the same: lines without times and rows of another width than their columns are left
out and counted.

A line has what has moved since the same host's line before, and counters are cumulative. What they
have grown by came evenly since then; where that is more than SPREAD intervals ago, evenly within
the last interval. For two things leave time without a line. A busy machine takes samples late, and
what flowed meanwhile is all in the next one: in less time it would be more than a link can carry.
And where nothing moves no line is written: spread over a pause, what ends it would have flowed
before it could. Four intervals, 400 ms, tell them apart: a driver, an engine or an agent that is
held up for 500 ms is a stall, with which no run is VALID (runtime/thresholds.py). With 200 ms, a
sample that is 300 ms late would double the rate of a link.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from runtime.json_schema import COUNT, Shape, check
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import SAMPLES

# A cumulative counter between its samples: it grows evenly in the time that each of them tells of,
# and otherwise not.

_BITS_NS = 8 * 10**9


class CounterGrowth:
    """Times are ns of one clock. A counter that fell has begun anew, at 0."""

    __slots__ = ("_counted", "_since_ns", "_sums", "_until_ns")

    def __init__(self) -> None:
        self._since_ns: list[int] = []
        self._until_ns: list[int] = []
        self._sums: list[int] = []  # of all growth until then
        self._counted = 0

    def add(self, since_ns: int, until_ns: int, count: int) -> None:
        """It has come to `count` in this time. What is not after the one before is left out."""
        last_ns = self._until_ns[-1] if self._until_ns else since_ns
        if until_ns <= last_ns:
            return
        count = max(count, 0)
        grown = count - self._counted if count >= self._counted else count
        self._sums.append(self._sums[-1] + grown if self._sums else grown)
        self._since_ns.append(max(since_ns, last_ns))
        self._until_ns.append(until_ns)
        self._counted = count

    def by(self, at_ns: int) -> int:
        """By how much it had grown by then, rounded down."""
        place = bisect_right(self._until_ns, at_ns)
        before = self._sums[place - 1] if place else 0
        if place == len(self._until_ns) or at_ns <= self._since_ns[place]:
            return before
        since_ns, until_ns = self._since_ns[place], self._until_ns[place]
        grown = self._sums[place] - before
        return before + grown * (at_ns - since_ns) // (until_ns - since_ns)

    def bps(self, from_ns: int, to_ns: int) -> int:
        """The mean rate of a counter of bytes, `from_ns` < `to_ns` of the run's own time."""
        return (self.by(to_ns) - self.by(from_ns)) * _BITS_NS // (to_ns - from_ns)


SPREAD = 4
LINKS, PAIRS = "links", "pairs"
_USUAL_NS = 100_000_000  # between two samples, where the first line does not say it
_TIMES = Shape({"at_ns": COUNT, "elapsed_ns": COUNT})
_KEYS = {LINKS: ("link",), PAIRS: ("src", "dst")}

Key = int | tuple[int, int]  # the number of a link; those of the nodes of a pair
Row = dict[str, int]  # counters by the names of their columns


@dataclass(frozen=True, slots=True)
class CounterSample:
    """What one host tells of the time after `since_ns`, up to `until_ns`, in ns of the run's own
    since its start. `at_ns`: when it was taken, plan time."""

    reader: SampleReader
    line: Mapping[str, Any]
    host: str
    since_ns: int
    until_ns: int
    at_ns: int

    def plan_since_ns(self, pace: int) -> int:
        """Of a run with this pace."""
        return self.at_ns - (self.until_ns - self.since_ns) * pace

    def rows(self, kind: str, wanted: Container[Key] | None = None) -> Iterator[tuple[Key, Row]]:
        """Of LINKS or PAIRS."""
        return self.reader.rows(self.line, kind, wanted)


class SampleReader:
    """With `strict` a line without times is refused. With `some` lines were left out between those
    that come, so that a long time without one is no pause.

    timeless, misshapen   lines without times, rows of another width so far
    columns               names of the columns of LINKS and PAIRS
    """

    def __init__(self, *, strict: bool = False, some: bool = False) -> None:
        self._strict, self._some = strict, some
        self._interval_ns = _USUAL_NS
        self._before: dict[str, int] = {}  # when each host was heard of last
        self._keys: dict[str, Callable[[Sequence[int]], Key]] = {}
        self.columns: Mapping[str, Sequence[str]] = {LINKS: (), PAIRS: ()}
        self.timeless = self.misshapen = 0

    def sample(self, line: Mapping[str, Any]) -> CounterSample | None:
        """None for the names of the columns, and for a line without times. RunError if strict."""
        if "columns" in line:
            self.begin(line)
            return None
        if self._strict:
            check(line, _TIMES, SAMPLES)
        elif not _TIMES.fits(line):
            self.timeless += 1
            return None
        host, until_ns = str(line.get("host", "")), line["elapsed_ns"]
        since_ns = self._since(self._before.get(host, 0), until_ns)
        self._before[host] = until_ns
        return CounterSample(self, line, host, since_ns, until_ns, line["at_ns"])

    def _since(self, before_ns: int, until_ns: int) -> int:
        longest_ns = SPREAD * self._interval_ns
        if before_ns < until_ns and (self._some or until_ns - before_ns <= longest_ns):
            return before_ns
        return until_ns - self._interval_ns

    def begin(self, header: Mapping[str, Any]) -> None:
        """The names of the columns, which come before all samples."""
        told_ns: Any = header.get("interval_ns")
        self._interval_ns = told_ns if type(told_ns) is int and told_ns > 0 else _USUAL_NS
        self.columns = header["columns"]
        self._keys = {
            kind: itemgetter(*map(self.columns[kind].index, keys))
            for kind, keys in _KEYS.items()
            if set(keys) <= set(self.columns[kind])
        }

    def rows(
        self, line: Mapping[str, Any], kind: str, wanted: Container[Key] | None = None
    ) -> Iterator[tuple[Key, Row]]:
        """Of a sample, or of a line without times; `wanted`: of these links or pairs only."""
        names = self.columns[kind]
        for key, row in self.values(line, kind):
            if wanted is None or key in wanted:
                yield key, dict(zip(names, row, strict=True))

    def values(self, line: Mapping[str, Any], kind: str) -> Iterator[tuple[Key, Sequence[int]]]:
        """The same in the order of `columns`, for whoever has no time for names."""
        width, key_of = len(self.columns[kind]), self._keys.get(kind)
        if key_of is None:  # nobody can tell whose they are
            self.misshapen += len(line[kind])
            return iter(())
        rows = [row for row in line[kind] if len(row) == width]
        self.misshapen += len(line[kind]) - len(rows)
        return zip(map(key_of, rows), rows, strict=True)


def read_samples(directory: HeldDirectory, *, strict: bool = False) -> Iterator[CounterSample]:
    """Nothing if the run has no such file. RunError for damaged lines."""
    reader = SampleReader(strict=strict)
    if directory.has(SAMPLES):
        yield from filter(None, map(reader.sample, read_lines(directory, SAMPLES)))
