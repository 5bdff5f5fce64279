"""Whether programs did what is right: what their services expect (`expect=`), or what the options
of the run ask for (--fail-on-exit).

Input: what services expect, and the records of events.jsonl in order of completion. Nothing is read
here. What the timeline ends (leave, crash, kill) is never judged: nobody knows what it would have
done.

success   the program ends with status 0 before the end of the run
run       it goes on to the end of the run
any       whatever it does is right, once it has been started
''        not stated: it does not fail; what --fail-on-exit judges, and a warning elsewhere
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compiler.plan.event_kinds import PROGRAM_ENDINGS

SUCCESS, RUN, ANY = "success", "run", "any"
STILL_RUNNING = "still_running"  # in a failure's record: the program was, at the end of the run
_ENDS = frozenset({"exit", "killed"})
_LIVES_BEGIN = frozenset({"join", "start"})

Record = Mapping[str, Any]


def ended_badly(record: Record) -> bool:
    """Of a record of kind `exit` or `killed`: it could not start, or ended with another status than
    0, by a signal, or with its whole instance."""
    if record.get("kind") == "killed" or record.get("killed") or "error" in record:
        return True
    return bool(record.get("status") or record.get("signal"))


def is_failure(expect: str, record: Record) -> bool:
    """Whether this end of a program, which the run did not ask for, is a failure."""
    if expect == ANY:
        return "error" in record
    return expect == RUN or ended_badly(record)


@dataclass(slots=True)
class _Program:
    """The present life of an instance's program, as far as the records say."""

    is_there: bool = False
    ended_ns: int | None = None

    def begin(self, started_ns: int | None) -> None:
        """A life begins, its program started then. One that ran before time 0 may have ended before
        its join was done."""
        self.is_there = started_ns is not None
        if self.ended_ns is not None and (started_ns is None or self.ended_ns < started_ns):
            self.ended_ns = None


def failures(
    expected: Mapping[str, str], records: Iterable[Record], *, to_the_end: bool
) -> list[dict[str, Any]]:
    """Every failure, in order of completion.

    expected     by instance: what its service expects
    to_the_end   the run came to its end: what still ran then is judged, too

    Each has `target`, `expect`, and of the record what says how: `applied_ns`, `status`, `signal`,
    `error`, `reason`, `killed`; or `still_running`.
    """
    programs = {name: _Program() for name in expected}
    found: list[dict[str, Any]] = []
    for record in records:
        name, kind = record.get("target", ""), record.get("kind")
        program = programs.get(name)
        if program is None:
            continue
        if kind in _LIVES_BEGIN:
            program.begin(record.get("started_ns"))
        elif kind in PROGRAM_ENDINGS:
            program.is_there = False
        elif kind in _ENDS and not record.get("asked"):
            program.ended_ns = record.get("applied_ns", 0)
            if is_failure(expected[name], record):
                found.append(_failure(expected[name], record))
    if to_the_end:
        found += [
            {"target": name, "expect": SUCCESS, STILL_RUNNING: True}
            for name, program in programs.items()
            if expected[name] == SUCCESS and program.is_there and program.ended_ns is None
        ]
    return found


def _failure(expect: str, record: Record) -> dict[str, Any]:
    keys = ("target", "applied_ns", "status", "signal", "error", "reason")
    found = {key: record[key] for key in keys if key in record}
    if record["kind"] == "killed":
        found["killed"] = True
    return {**found, "expect": expect}


def counts(failure: Record, *, fail_on_exit: bool) -> bool:
    """Whether a run that has this failure ends with exit code 5."""
    return bool(failure.get("expect")) or "error" in failure or fail_on_exit
