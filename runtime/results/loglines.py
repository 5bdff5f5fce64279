"""Lines of logs and events of a run, by time.

The times of lines are bounds: a line was written after `from_ns` and at `until_ns` at the latest.
They come from logs.jsonl (when logs grew) and from the run's own marks in the logs, whichever is
narrower. Where neither says anything `from_ns` is None (before time 0) and `until_ns` None (to the
end).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from runtime.errors import RunError
from runtime.rundir import logmarks
from runtime.rundir.directory import HeldDirectory
from runtime.rundir.eventlog import read_events
from runtime.rundir.records import read_lines
from runtime.rundir.runfiles import EVENTS, LOG_TIMES, LOGS

SUFFIX = ".log"
MAX_BYTES = 1 << 40
LINE_BYTES = 1 << 16  # a longer line is shown in pieces
TOLD = frozenset({"join", "leave", "crash", "pause", "resume"})  # marks that events say again
_EVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Line:
    """Of the log of `instance`; an event if `record` says so, then `until_ns` is its moment."""

    from_ns: int | None
    until_ns: int | None
    instance: str
    text: str = ""
    record: Mapping[str, Any] | None = None

    @property
    def place_ns(self) -> int:
        """Among others."""
        known = self.until_ns if self.from_ns is None else self.from_ns
        return _EVER if known is None else known

    def may_be_within(self, low_ns: int, high_ns: int) -> bool:
        begin = -_EVER if self.from_ns is None else self.from_ns
        end = _EVER if self.until_ns is None else self.until_ns
        return begin <= high_ns and end >= low_ns


class Merger:
    """Reads a run directory, which may be anybody's. RunError."""

    def __init__(self, run: HeldDirectory) -> None:
        self._run = run
        try:
            self._logs = run.enter(LOGS)
        except OSError as error:
            raise RunError(f"cannot read {run / LOGS}: {error.strerror}") from error
        self._grown = _growth(run)

    def instances(self) -> list[str]:
        """Those that have a log."""
        names = [name for name in self._logs.names() if name.endswith(SUFFIX)]
        return [name.removesuffix(SUFFIX) for name in names]

    def merged(self, instances: Collection[str], wanted: Callable[[Line], bool]) -> list[Line]:
        """By the beginning of the interval in which they were written, else by its end; lines of a
        log stay in their order. Events are those of these instances and those that are of none."""
        found: list[tuple[int, Line]] = []
        for name in instances:
            place = -_EVER
            for line in self.lines(name):
                place = max(place, line.place_ns)
                if wanted(line):
                    found.append((place, line))
        found += [(line.place_ns, line) for line in self._events(instances) if wanted(line)]
        return [line for _, line in sorted(found, key=lambda one: one[0])]

    def _events(self, instances: Collection[str]) -> Iterator[Line]:
        own, known = frozenset(instances), frozenset(self.instances())
        if not self._run.has(EVENTS):
            return
        for record in read_events(self._run):
            target, at_ns = str(record.get("target", "")), record.get("applied_ns")
            if at_ns is not None and (target in own or target not in known):
                yield Line(at_ns, at_ns, target, record=record)

    def lines(self, name: str) -> Iterator[Line]:
        """Of one log, in its order; marks bound the lines before and after them."""
        growth = self._grown.get(name, Growth())
        with self._logs.reading(f"{name}{SUFFIX}", MAX_BYTES) as file:
            yield from lines_of(file, name, growth)


def lines_of(
    file: BinaryIO, name: str, growth: Growth, begin: int = 0, end: int = MAX_BYTES
) -> Iterator[Line]:
    """Of one log; marks bound the lines before and after them, unless that contradicts when the log
    grew: a program may print what looks like one, as whoever shows the log of another run. With
    `begin` and `end` only lines that begin in that part of the file, from the first whole one on.
    """
    waiting: list[Line] = []
    marked_ns: int | None = None
    file.seek(begin)
    at = begin + (len(file.readline(LINE_BYTES)) if begin else 0)
    while at < end and (data := file.readline(LINE_BYTES)):
        at += len(data)
        text = data.rstrip(b"\n").decode("utf-8", "backslashreplace")
        mark = logmarks.parse(text)
        if mark is not None and mark.at_ns is not None:
            yield from (_until(line, mark.at_ns) for line in waiting)
            waiting, marked_ns = [], mark.at_ns
            if mark.text not in TOLD:
                yield Line(marked_ns, marked_ns, name, text)
        else:
            from_ns, until_ns = growth.bounds(at)
            if marked_ns is not None and (until_ns is None or marked_ns <= until_ns):
                from_ns = marked_ns if from_ns is None else max(from_ns, marked_ns)
            waiting.append(Line(from_ns, until_ns, name, text))
    yield from waiting


def _until(line: Line, at_ns: int) -> Line:
    if line.from_ns is not None and at_ns < line.from_ns:
        return line
    until_ns = at_ns if line.until_ns is None else min(line.until_ns, at_ns)
    return Line(line.from_ns, until_ns, line.instance, line.text)


class Growth:
    """How long one log was at which moments."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._times: list[tuple[int, int]] = []

    def add(self, size: int, from_ns: int, until_ns: int) -> None:
        """A log that has become shorter was written by somebody else: what is known of it goes."""
        if self._sizes and size < self._sizes[-1]:
            self._sizes, self._times = [], []
        self._sizes.append(size)
        self._times.append((from_ns, until_ns))

    def __len__(self) -> int:
        return len(self._sizes)

    def thin(self) -> None:
        """Forgets every other moment; the bounds of lines become wider, and stay right."""
        kept = range((len(self._sizes) + 1) % 2, len(self._sizes), 2)  # the last one is
        self._times = [(self._times[max(at - 1, 0)][0], self._times[at][1]) for at in kept]
        self._sizes = [self._sizes[at] for at in kept]

    def bounds(self, end: int) -> tuple[int | None, int | None]:
        """Of a line that ends there in the file."""
        number = bisect_left(self._sizes, end)
        if number < len(self._times):
            from_ns, until_ns = self._times[number]
            return (from_ns if number else None), until_ns
        return (self._times[-1][1] if self._times else None), None


def _growth(run: HeldDirectory) -> dict[str, Growth]:
    found: dict[str, Growth] = {}
    if run.has(LOG_TIMES):
        for row in read_lines(run, LOG_TIMES):
            for name, size in row["bytes"].items():
                growth = found.setdefault(name, Growth())
                growth.add(size, row["from_ns"], row["elapsed_ns"])
    return found
