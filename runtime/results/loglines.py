"""Lines of logs and events of a run, by time.

The times of lines are bounds: a line was written after `from_ns` and at `until_ns` at the latest.
They come from logs.jsonl (when logs grew) and from the run's own marks in the logs, whichever is
narrower. Where neither says anything `from_ns` is None (before time 0) and `until_ns` None (to the
end).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, BinaryIO, NamedTuple

from compiler.plan.event_kinds import PROCESS_KINDS
from runtime.errors import RunError
from runtime.rundir import logmarks
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import EVENTS, LOG_TIMES, LOGS
from runtime.system import process_limits

SUFFIX = ".log"
MAX_BYTES = 1 << 40
LINE_BYTES = 1 << 16  # a longer line is cut
SKIPPED_BYTES = 1 << 20  # of the rest of such a line, at a time
WAITING_BYTES = 1 << 20  # of the lines of a log that a mark may still bound
_EVER = 1 << 62
REST_NS = -1  # of what goes on with a line in which a mark stands: it has no beginning, ever


class LogRecord(NamedTuple):  # of a large log there are millions, and this is the fastest
    """Of the log of `instance`; an event if `record` says so, then `until_ns` is its moment. `cut`:
    bytes of it that are not in `text`. `torn_ns`: since when the program has not ended the line,
    unless it had ended by itself before; None for one that it has ended."""

    from_ns: int | None
    until_ns: int | None
    instance: str
    text: str = ""
    record: Mapping[str, Any] | None = None
    cut: int = 0
    torn_ns: int | None = None

    @property
    def place_ns(self) -> int:
        """Among others."""
        known = self.until_ns if self.from_ns is None else self.from_ns
        return _EVER if known is None else known

    def may_be_within(self, low_ns: int, high_ns: int) -> bool:
        begin = -_EVER if self.from_ns is None else self.from_ns
        end = _EVER if self.until_ns is None else self.until_ns
        return begin <= high_ns and end >= low_ns


def logs_of(run: HeldDirectory) -> HeldDirectory:
    """Where they are. RunError."""
    try:
        return run.enter(LOGS)
    except OSError as error:
        raise RunError(f"cannot read {run / LOGS}: {error.strerror}") from error


class Merger:
    """Reads a run directory, which may be anybody's. RunError."""

    def __init__(self, run: HeldDirectory) -> None:
        self._run = run
        self._logs = logs_of(run)
        self._grown = _growth(run)

    def instances(self) -> list[str]:
        """Those that have a log."""
        names = [name for name in self._logs.names() if name.endswith(SUFFIX)]
        return [name.removesuffix(SUFFIX) for name in names]

    def merged(
        self, instances: Collection[str], wanted: Callable[[LogRecord], bool]
    ) -> Iterator[LogRecord]:
        """By the beginning of the interval in which they were written, else by its end; lines of a
        log stay in their order. Events are those of these instances and those that are of none.
        Of logs of any length only a part is in memory."""
        process_limits.raise_limit(0)  # all logs are open at once
        return filter(wanted, in_order(map(self.lines, instances), self._events(instances)))

    def why_incomplete(self, name: str) -> str:
        """Why lines of this log are missing; '' if none is known to be."""
        grown = self._grown.get(name, Growth())
        status = self._logs.status(f"{name}{SUFFIX}")
        if status is None:
            had_lines = grown.size or grown.has_shrunk
            return f"the log of {name} has been removed" if had_lines else ""
        shorter = grown.has_shrunk or status.st_size < grown.size
        return f"the log of {name} has become shorter" if shorter else ""

    def _events(self, instances: Collection[str]) -> Iterator[LogRecord]:
        if self._run.has(EVENTS):
            yield from events_of(read_events(self._run), instances, self.instances())

    def lines(self, name: str) -> Iterator[LogRecord]:
        """Of one log, in its order; marks bound the lines before and after them."""
        growth = self._grown.get(name, Growth())
        with self._logs.reading(f"{name}{SUFFIX}", MAX_BYTES) as file:
            yield from lines_of(file, name, growth)


def in_order(
    logs: Iterable[Iterator[LogRecord]], events: Iterable[LogRecord]
) -> Iterator[LogRecord]:
    """Lines of several logs and events, by place."""
    placed = sorted(((line.place_ns, line) for line in events), key=_place)
    return (line for _, line in merge(*(map(_Placed(), log) for log in logs), placed, key=_place))


def events_of(
    records: Iterable[Mapping[str, Any]], instances: Collection[str], known: Collection[str]
) -> Iterator[LogRecord]:
    """Events of these instances, and of what is no instance."""
    instances, known = frozenset(instances), frozenset(known)
    for record in records:
        target, at_ns = str(record.get("target", "")), record.get("applied_ns")
        if at_ns is not None and (target in instances or target not in known):
            yield LogRecord(at_ns, at_ns, target, record=record)


class _Placed:
    """The lines of a log with their places, none of which is before that of the line before."""

    def __init__(self) -> None:
        self._place = -_EVER

    def __call__(self, line: LogRecord) -> tuple[int, LogRecord]:
        self._place = max(self._place, line.place_ns)
        return self._place, line


def _place(placed: tuple[int, LogRecord]) -> int:
    return placed[0]


def lines_of(
    file: BinaryIO, name: str, growth: Growth, begin: int = 0, end: int = MAX_BYTES
) -> Iterator[LogRecord]:
    """Of one log; marks bound the lines before and after them, unless that contradicts when the log
    grew: a program may print what looks like one, as whoever shows the log of another run. With
    `begin` and `end` only lines that begin in that part of the file, from the first whole one on.
    """
    waiting: deque[LogRecord] = deque()
    waiting_bytes = 0
    rest = False  # what follows goes on with a line
    marked_ns: int | None = None
    file.seek(begin)
    at = begin + (_to_its_end(file, end - begin)[0] if begin else 0)
    while at < end and (data := file.readline(LINE_BYTES)):
        at += len(data)
        cut = 0
        if len(data) == LINE_BYTES and not data.endswith(b"\n"):
            skipped, cut = _to_its_end(file, end - at)
            at += skipped
        text = data.rstrip(b"\n").decode("utf-8", "backslashreplace")
        mark = logmarks.parse(text) if text.startswith(logmarks.PREFIX) else None
        if mark is not None and mark.at_ns is not None:
            if mark.tears and waiting:
                from_ns, until_ns = _bounds(growth, at - len(data) - 1, marked_ns)
                waiting[-1] = waiting[-1]._replace(
                    from_ns=from_ns, until_ns=until_ns, torn_ns=mark.at_ns
                )
            rest = mark.goes_on and (mark.cut or rest)
            yield from (_until(line, mark.at_ns) for line in waiting)
            waiting.clear()
            waiting_bytes, marked_ns = 0, mark.at_ns
            if mark.text not in PROCESS_KINDS:
                yield LogRecord(marked_ns, marked_ns, name, text)
            continue
        torn_ns = REST_NS if rest else None if data.endswith(b"\n") or cut else _EVER
        rest = False
        from_ns, until_ns = _bounds(growth, at, marked_ns)
        waiting.append(LogRecord(from_ns, until_ns, name, text, cut=cut, torn_ns=torn_ns))
        waiting_bytes += len(text)
        while waiting_bytes > WAITING_BYTES:
            waiting_bytes -= len(waiting[0].text)
            yield waiting.popleft()
    yield from waiting


def _bounds(growth: Growth, end: int, marked_ns: int | None) -> tuple[int | None, int | None]:
    """Of a line; `end`: of what the program has written of it; `marked_ns`: of the mark before."""
    from_ns, until_ns = growth.bounds(end)
    if marked_ns is not None and (until_ns is None or marked_ns <= until_ns):
        from_ns = marked_ns if from_ns is None else max(from_ns, marked_ns)
    return from_ns, until_ns


def _to_its_end(file: BinaryIO, most: int) -> tuple[int, int]:
    """Reads on to the end of a line, so many bytes at most: how many were read, and how many of
    them belong to the line."""
    read = 0
    while read < most and (data := file.readline(min(SKIPPED_BYTES, most - read))):
        read += len(data)
        if data.endswith(b"\n"):
            return read, read - 1
    return read, read


def _until(line: LogRecord, at_ns: int) -> LogRecord:
    if line.from_ns is not None and at_ns < line.from_ns:
        return line
    until_ns = at_ns if line.until_ns is None else min(line.until_ns, at_ns)
    return line._replace(until_ns=until_ns)


class Growth:
    """How long one log was at which moments."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._times: list[tuple[int, int]] = []
        self.has_shrunk = False

    def add(self, size: int, from_ns: int, until_ns: int) -> None:
        """A log that has become shorter was written by somebody else: what is known of it goes."""
        if self._sizes and size < self._sizes[-1]:
            self.has_shrunk = True
            self._sizes, self._times = [], []
        self._sizes.append(size)
        self._times.append((from_ns, until_ns))

    @property
    def size(self) -> int:
        """At the last of them."""
        return self._sizes[-1] if self._sizes else 0

    def __len__(self) -> int:
        return len(self._sizes)

    def forget(self) -> None:
        """All but the last moment, for who reads on from there."""
        self._sizes, self._times = self._sizes[-1:], self._times[-1:]

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


# The last line of a program's log. Programs write there what they like, and may put something else
# in the file's place: nothing but a regular file is read, and nothing reaches a terminal but text.

TAIL_BYTES = 4096
LINE_CHARACTERS = 200


def last_line(run: HeldDirectory, name: str) -> str:
    """The last line that is not empty and no mark of the run's, cut to a readable length; '' if
    there is none."""
    try:
        data = run.enter(LOGS).tail(name, TAIL_BYTES)
    except (OSError, RunError):
        return ""
    lines = data.decode(errors="replace").split("\n")
    lines = [line for line in lines if line.strip() and logmarks.parse(line) is None]
    return "".join(map(_shown, lines[-1].strip()))[-LINE_CHARACTERS:] if lines else ""


def _shown(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
