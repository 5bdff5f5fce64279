"""Reads what a tstorm-hold has reported (docs/hold.md): the file /tstorm/reports of its container.

The container's programs may write there, too, and may put anything in its place. So a file is
opened as runtime.agent.pod.hosts_file does it, read in small parts and no further than
MAX_BYTES; a line that is no report is counted and left out, and no report is of a time to come, or
before the one before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runtime.agent.pod.hosts_file import open_regular
from runtime.agent.pod.podprocesses import PROC
from runtime.coordinator.says import HOLD_EVENTS
from runtime.errors import RunError
from runtime.json_schema import Count, decoded, parse

FILE = ("tstorm", "reports")
PART_BYTES = 4096  # of one look; as long as the longest line of a tstorm-hold
MAX_BYTES = 1 << 20  # of one instance in a run: about 10,000 lines
MAX_NUMBER = 1 << 32
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class _Line:
    """One of the file, as docs/hold.md has it."""

    tstorm_hold: str
    monotonic_ns: Count
    pid: Count = 0
    status: Count = 0
    signal: Count = 0
    program: str = ""
    error: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """`line` counts the reports of an instance from 0, `at_ns` is of CLOCK_MONOTONIC. A number is
    0, and a text empty, where the line has none."""

    line: int
    event: str
    at_ns: int
    pid: int = 0
    status: int = 0
    signal: int = 0
    program: str = ""
    error: str = ""
    order: str = ""


class Reports:
    """What is reported of one instance, whatever container it is in."""

    def __init__(self) -> None:
        self.over = False  # there is more than is read
        self.odd = 0  # lines that are no reports
        self._file = -1
        self._identity = (0, 0)
        self._offset = 0
        self._rest = b""  # of a line that is not whole yet
        self._read = 0  # bytes, of all files
        self._lines = 0
        self._last_ns = 0

    @property
    def readable(self) -> bool:
        """Whether more of them may come."""
        return self._file >= 0 and not self.over

    def open(self, pid: int, proc: Path = PROC) -> None:
        """From now on those of the container of this process: it goes on with the file of the one
        before, if that is still there. Raises OSError."""
        file = open_regular(pid, FILE, os.O_RDONLY, proc)
        found = os.fstat(file)
        if (found.st_dev, found.st_ino) != self._identity:
            self._identity = (found.st_dev, found.st_ino)
            self._offset, self._rest = 0, b""
        self.close()
        self._file = file

    def read(self, now: Callable[[], int]) -> list[Report]:
        """What is new, a small part at a time. `now` tells CLOCK_MONOTONIC in ns, and is asked when
        the part has been read: what was written before has no later time."""
        if not self.readable:
            return []
        try:
            part = os.pread(self._file, PART_BYTES, self._offset)
        except OSError:
            return []  # the volume has gone with its pod
        now_ns = now()
        self._offset += len(part)
        self._read += len(part)
        self.over = self._read >= MAX_BYTES
        return [report for line in self._whole(part) if (report := self._report(line, now_ns))]

    def _whole(self, part: bytes) -> Iterator[bytes]:
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > PART_BYTES:  # its end comes some day, and is odd as well
            self._rest = b""
            self.odd += 1
        return iter(lines)

    def _report(self, line: bytes, now_ns: int) -> Report | None:
        try:
            found = decoded(_Line, parse(line, "a report"), "a report")
        except RunError:
            found = None
        if found is None or found.tstorm_hold not in HOLD_EVENTS:
            self.odd += 1
            return None
        self._last_ns = max(self._last_ns, min(found.monotonic_ns, now_ns))
        self._lines += 1
        return Report(
            self._lines - 1,
            found.tstorm_hold,
            self._last_ns,
            _bounded(found.pid),
            _bounded(found.status),
            _bounded(found.signal),
            _printable(found.program),
            _printable(found.error),
            _printable(found.order),
        )

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _bounded(number: int) -> int:
    return number if number < MAX_NUMBER else 0


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:MAX_TEXT])
