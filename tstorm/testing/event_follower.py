"""Events of a run while they are written: each look reads what has come since the one before.

Input: events.jsonl of a run directory, foreign data as everywhere (runtime/rundir/runfiles.py).
"""

from __future__ import annotations

from typing import Any

from runtime.errors import RunError
from runtime.json_schema import REMEDY, parse
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import EVENTS, HEADER, LINE_CHECKS, MAX_BYTES, MAX_LINE_BYTES


class EventFollower:
    """`header` is None before time 0 is fixed; `events` are all so far."""

    def __init__(self, directory: HeldDirectory) -> None:
        self._directory = directory
        self._read = 0  # bytes
        self._lines = 0
        self.header: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []

    def look(self) -> None:
        """RunError for what is no record of an event."""
        if not self._directory.has(EVENTS):
            return
        most, path = MAX_LINE_BYTES[EVENTS], str(self._directory / EVENTS)
        with self._directory.reading(EVENTS, MAX_BYTES[EVENTS]) as file:
            file.seek(self._read)
            while (line := file.readline(most + 1)).endswith(b"\n"):
                self._read += len(line)
                self._lines += 1
                self._take(line, f"{path}:{self._lines}")
            if len(line) > most:
                raise RunError(f"{path}: a line is longer than {most:,} bytes", REMEDY)

    def _take(self, line: bytes, place: str) -> None:
        record = parse(line, place)
        LINE_CHECKS[EVENTS](record, place)
        if record.get("kind") == HEADER:
            self.header = record
        else:
            self.events.append(record)
