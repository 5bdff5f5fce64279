"""Logs and events of a run that goes on, as they are written.

Lines come in parts, each of what was written since the part before it and by time in itself; a line
that was written before a part ended may come in the next one. Their times are those of loglines.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from runtime.results.loglines import (
    LINE_BYTES,
    MAX_BYTES,
    SUFFIX,
    Growth,
    LogRecord,
    events_of,
    in_order,
    lines_of,
    logs_of,
)
from runtime.rundir.eventlog import but_header
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import GrowingLines
from runtime.rundir.runfiles import EVENTS, LOG_TIMES


class Follower:
    """Reads the logs of some of the instances of a run directory, which may be anybody's. RunError.

    known        all instances that have a log: events of those that are not followed are left out
    most_bytes   of a log that is longer already only so much of its end comes
    """

    def __init__(
        self,
        run: HeldDirectory,
        instances: Sequence[str],
        known: Sequence[str],
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self._run = run
        self._logs = logs_of(run)
        self._known = frozenset(known)
        self._grown = {name: Growth() for name in instances}
        self._followed = frozenset(instances)
        self._unread: set[str] = set()  # whose logs have more than was read
        self._read = {name: max(self._size(name) - most_bytes, 0) for name in instances}  # bytes
        self._times = GrowingLines(run, LOG_TIMES)
        self._events = GrowingLines(run, EVENTS)

    def _size(self, name: str) -> int:
        status = self._logs.status(f"{name}{SUFFIX}")
        return status.st_size if status else 0

    def part(self, *, last: bool = False) -> Iterator[LogRecord]:
        """What has come since the part before. `last`: nobody writes any more, so the ends of logs
        come, too, also where they are no whole lines and have no time."""
        for row in self._times.more() if self._run.has(LOG_TIMES) else ():
            for name, size in row["bytes"].items():
                if name in self._grown:
                    self._grown[name].add(size, row["from_ns"], row["elapsed_ns"])
                    self._unread.add(name)
        records = list(but_header(self._events.more())) if self._run.has(EVENTS) else []
        some = last or bool(self._unread)  # mostly there is nothing, of thousands of logs
        names = [name for name in self._grown if last or name in self._unread] if some else []
        logs = [iter(self._lines(name, last=last)) for name in names]
        return in_order(logs, events_of(records, self._followed, self._known) if records else ())

    def _lines(self, name: str, *, last: bool) -> list[LogRecord]:
        growth, begin = self._grown[name], self._read[name]
        if not last and growth.size <= begin:
            self._unread.discard(name)
            return []
        with self._logs.reading(f"{name}{SUFFIX}", MAX_BYTES) as file:
            end = file.seek(0, 2) if last else _end_of_line(file, begin, growth.size)
            # A part of a file begins behind a line: at the end of the one that was read last. All
            # of the file begins with its first line, which is that one if it has no text.
            found = list(lines_of(file, name, growth, max(begin - 1, 0), end))[begin == 1 :]
        self._read[name] = max(begin, end)
        growth.forget()
        return found


def _end_of_line(file: BinaryIO, begin: int, size: int) -> int:
    """Of the last whole line that is in the file by then; `begin` if there is none behind it."""
    tail = max(begin, size - LINE_BYTES)
    file.seek(tail)
    found = file.read(size - tail).rfind(b"\n")
    return begin if found < 0 else tail + found + 1
