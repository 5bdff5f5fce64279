"""Compares the event logs of two runs: the same events on the same targets in the same order.

Programs that end by themselves are no part of the plan; they are told apart as `exits`. A program
that could not start is told as `start`, also if it could not in either run: then the runs agree,
and say nothing of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.rundir import rundir
from runtime.rundir.eventlog import how_ended, read_events
from runtime.rundir.runfiles import EVENTS

_COMPARED = ("kind", "target", "args", "planned_ns")


@dataclass(frozen=True, slots=True)
class EventDifference:
    """`what` is 'event' (part of the plan), 'start' (a program that could not start in one of the
    runs or in both), 'end' (programs ended one of the runs, `quit when`) or 'exit' (programs that
    ended by themselves)."""

    what: str
    seq: int  # -1 for others than events
    first: str  # what the first run did, '' if nothing
    second: str
    target: str = ""  # of a start: the instance

    def __str__(self) -> str:
        place = f"event {self.seq}" if self.seq >= 0 else self.what
        return f"{place}: {self.first or 'nothing'} / {self.second or 'nothing'}"


Events = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Log:
    """What a comparison needs of a run's events."""

    events: Mapping[int, Mapping[str, Any]]  # by seq: the plan's order, not that of completion
    exits: Counter[str]  # of programs that ended by themselves
    not_started: Mapping[str, str]  # instances whose program could not start: the last reason
    quit_ns: int | None = None  # plan time of an end that nobody planned (`quit when`)


def load(run: str | Path) -> Log:
    """The events of a recorded run, read to their end. RunError."""
    directory = rundir.recorded(run)
    events: dict[int, dict[str, Any]] = {}
    exits: Counter[str] = Counter()
    not_started: dict[str, str] = {}
    quit_ns: int | None = None
    for record in read_events(directory):
        seq = record.get("seq")
        if seq in events:
            raise RunError(f"{directory / EVENTS} holds event {seq} twice", REMEDY)
        if seq is not None:
            events[seq] = {name: record[name] for name in _COMPARED}
        elif record.get("kind") == "quit":
            quit_ns = record["planned_ns"]
        elif record.get("kind") == "killed":
            exits[f"{record['target']} was killed from outside"] += 1
        elif record.get("kind") == "exit" and not record.get("asked"):
            if "error" in record:
                not_started[record["target"]] = record["error"]
            else:
                exits[f"{record['target']} ended with {how_ended(record)}"] += 1
    return Log(events, exits, not_started, quit_ns)


def _words(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return ""
    args = "".join(f" {key}={value}" for key, value in sorted(record["args"].items()))
    return f"{record['planned_ns']} ns {record['kind']} {record['target']}{args}".rstrip()


def differ(first: Log, second: Log) -> list[EventDifference]:
    """All differences, events by number, then starts and exits. Empty: the runs did the same.

    Where programs have ended one of them, what was planned later is not compared: when programs
    end is their own. That they end one run and not the other is a difference.
    """
    mine, theirs = _until_both_quit(first, second)
    differences = [
        EventDifference("event", seq, _words(mine.get(seq)), _words(theirs.get(seq)))
        for seq in sorted(mine.keys() | theirs.keys())
        if mine.get(seq) != theirs.get(seq)
    ]
    differences += [
        EventDifference("start", -1, _start(name, first), _start(name, second), name)
        for name in sorted(first.not_started.keys() | second.not_started.keys())
    ]
    if (first.quit_ns is None) != (second.quit_ns is None):
        said = ("" if log.quit_ns is None else "the run ended early" for log in (first, second))
        differences.append(EventDifference("end", -1, *said))
    for text in sorted(first.exits.keys() | second.exits.keys()):
        numbers = first.exits[text], second.exits[text]
        if numbers[0] != numbers[1]:
            counts = (f"{count} × {text}" if count else "" for count in numbers)
            differences.append(EventDifference("exit", -1, *counts))
    return differences


def _until_both_quit(first: Log, second: Log) -> tuple[Events, Events]:
    ends = [log.quit_ns for log in (first, second) if log.quit_ns is not None]
    if not ends:
        return first.events, second.events
    mine, theirs = (
        {seq: one for seq, one in log.events.items() if one["planned_ns"] < min(ends)}
        for log in (first, second)
    )
    return mine, theirs


def _start(name: str, log: Log) -> str:
    reason = log.not_started.get(name)
    return f"{name} started" if reason is None else f"{name} could not start: {reason}"
