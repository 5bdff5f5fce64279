"""events.jsonl: a header that says when time 0 was, then what was done, in order of completion.

Something can happen before time 0 is fixed (an agent is lost); it waits until the header is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compiler.plan.parts import action_texts
from compiler.plan.reader import Plan
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile, read_lines
from runtime.rundir.runfiles import EVENTS, HEADER

FORMAT, VERSION = "thunderstorm-events", 1
ENTERED = "entered_ns"  # when an action came to a run in virtual time: so it can come again


class EventLog:
    """Owns the file."""

    def __init__(self, file: LineFile) -> None:
        self._file = file
        self._waiting: list[Mapping[str, object]] | None = []

    def begin(self, start_unix_ns: int, start_monotonic_ns: int) -> None:
        """Writes the header. Once, before time 0."""
        self._file.append(
            {
                "kind": HEADER,
                "format": FORMAT,
                "version": VERSION,
                "start_unix_ns": start_unix_ns,
                "start_monotonic_ns": start_monotonic_ns,
            }
        )
        self._write_waiting()

    def append(self, record: Mapping[str, object]) -> None:
        if self._waiting is None:
            self._file.append(record)
        else:
            self._waiting.append(record)

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for record in waiting:
            self._file.append(record)

    def close(self) -> None:
        """A run that never came to its time 0 has no header."""
        self._write_waiting()
        self._file.close()


def how_ended(record: Mapping[str, Any]) -> str:
    """Of a program's exit: by a signal, or with a status. Somebody else's summary may lack both."""
    if record.get("signal"):
        return f"signal {record['signal']}"
    return f"status {record.get('status', 'unknown')}"


def how_and_why(record: Mapping[str, Any]) -> str:
    """The same, with the reason if one is known."""
    why = f": {record['reason']}" if record.get("reason") else ""
    return how_ended(record) + why


def oom_killed(record: Mapping[str, Any]) -> str:
    """Of an `oom_kill`, what the kernel has done."""
    killed = "a process" if record["processes"] == 1 else f"{record['processes']:,} processes"
    return f"the kernel killed {killed} of it, since it wanted more memory than its mem="


def read_events(directory: HeldDirectory) -> Iterator[dict[str, Any]]:
    """Every whole record but the header. RunError, also if the file is missing."""
    return but_header(read_lines(directory, EVENTS))


def actions_beyond(directory: HeldDirectory, plan: Plan) -> list[int]:
    """Those that were carried out and are not in the plan of the directory: a run puts some of them
    there a little later, and may be killed before. RunError."""
    if not directory.has(EVENTS):
        return []
    done = {
        int(record["action"])
        for record in read_events(directory)
        if record.get("kind") in ("do", "when") and "action" in record and "refused" not in record
    }
    return sorted(done - set(map(action_texts.number_of, plan.attached.includes)))


def entered(directory: HeldDirectory) -> list[tuple[int, int, str]]:
    """Of each action that was done by hand in virtual time when it came to the run, since time 0,
    its number, and what was said. RunError."""
    if not directory.has(EVENTS):
        return []
    return [
        (int(record[ENTERED]), int(record["action"]), str(record["text"]))
        for record in read_events(directory)
        if record.get("kind") == "do" and ENTERED in record
    ]


def but_header(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Of the lines of a file of events those that are some."""
    return (record for record in records if record.get("kind") != HEADER)
