"""events.jsonl as columns: each event, when it was planned and when it was applied. And packets.

Input: the lines of the file, and which ends of programs are failures. Times are plan time; lags
are real time. At most MOST_PLANNED events of the plan and MOST_OTHERS others are listed, the first
ones; how many there are is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.plan.reader import Plan
from runtime.judge.judge_programs import ended_badly
from runtime.results.failed import End, changed, details
from runtime.results.sent_packets import PROBE, recorded_packets, thinned
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import PlanClock

MOST_PLANNED, MOST_OTHERS = 20_000, 5_000
MOST_CHARACTERS = 500


class Words:
    """Numbers of words that occur often."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    def words(self) -> list[str]:
        return list(self._numbers)


class Happened:
    """Takes the lines; a line of no known shape is counted and left out."""

    def __init__(self, clock: PlanClock, failures: frozenset[End] | None) -> None:
        self._clock, self._failures = clock, failures
        self._kinds, self._targets = Words(), Words()
        self.rows: list[list[Any]] = []
        self.planned = self.others = self.strange = 0
        self._by_hand = self._by_when = 0
        self.last_ns = 0  # plan time
        self.early_ns: int | None = None  # the end of a run that ended before its plan did
        self.later = 0  # than that: they are left out

    def take_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """RunError where the file is damaged; what came before it is kept."""
        for record in records:
            self.take(record)

    def take(self, record: Mapping[str, Any]) -> None:
        of_plan = record.get("seq") is not None
        applied = record.get("applied_ns")
        at_ns = self._clock.plan_time(applied) if type(applied) is int else None
        if self.early_ns is not None and at_ns is not None and at_ns > self.early_ns:
            self.later += 1
            return
        planned = record.get("planned_ns")
        planned = planned if type(planned) is int else None
        if record.get("kind") == "quit" and not of_plan:
            self.early_ns = planned
        self.last_ns = max(self.last_ns, at_ns or 0)
        self._by_hand += record.get("kind") == "do"
        self._by_when += record.get("kind") == "when" and "refused" not in record
        self.planned += of_plan
        self.others += not of_plan
        count, most = (self.planned, MOST_PLANNED) if of_plan else (self.others, MOST_OTHERS)
        if count > most:
            return
        try:
            words = details(record)[:MOST_CHARACTERS]
        except (LookupError, TypeError, ValueError):
            self.strange += 1
            return
        lag, started = record.get("lag_ns"), record.get("started_ns")
        self.rows.append(
            [
                record.get("seq"),
                self._kinds.number(str(record.get("kind", ""))),
                self._targets.number(str(record.get("target", ""))),
                planned,
                at_ns,
                lag if type(lag) is int else None,
                words,
                record["line"] if type(record.get("line")) is int else 0,
                int(bool(record.get("asked"))),
                int(self._is_failure(record)),
                self._clock.plan_time(started) if type(started) is int else None,
            ]
        )

    def _is_failure(self, record: Mapping[str, Any]) -> bool:
        """Of the end of a program; where nobody has judged it, any that was a bad one."""
        if record.get("kind") not in ("exit", "killed") or record.get("asked"):
            return False
        if self._failures is None:
            return ended_badly(record)
        return (str(record.get("target", "")), record.get("applied_ns", -1)) in self._failures

    def changed(self) -> str:
        """In words, that the run was changed while it went on."""
        return changed(self._by_hand, self._by_when)

    def planned_by_kind(self) -> dict[str, int]:
        """How many events of the plan were carried out."""
        kinds = self._kinds.words()
        return dict(Counter(kinds[row[1]] for row in self.rows if row[0] is not None))

    def note(self, notes: list[str]) -> None:
        for what, count, most in (
            ("events of the plan", self.planned, MOST_PLANNED),
            ("other events", self.others, MOST_OTHERS),
        ):
            if count > most:
                notes.append(f"of {count} {what} the first {most} are listed")
        if self.later:
            notes.append(
                f"the run ended early: events of its winding down are not shown ({self.later})"
            )
        if self.strange:
            notes.append(f"{self.strange} events are left out: they are damaged")

    def record(self, first: int = 0) -> dict[str, Any]:
        """Of the rows from this one on."""
        columns = (
            "seq",
            "kind",
            "target",
            "planned_ns",
            "at_ns",
            "lag_ns",
            "text",
            "line",
            "asked",
            "failed",
            "started_ns",
        )
        kinds, targets, rows = self._kinds, self._targets, self.rows
        if first:
            kinds, targets, rows = self._with_own_words(rows[first:])
        return {
            "columns": list(columns),
            "kinds": kinds.words(),
            "targets": targets.words(),
            "rows": rows,
        }

    def _with_own_words(self, rows: list[list[Any]]) -> tuple[Words, Words, list[list[Any]]]:
        """Few rows need few of the words."""
        kinds, targets = Words(), Words()
        known_kinds, known_targets = self._kinds.words(), self._targets.words()
        own = [
            [row[0], kinds.number(known_kinds[row[1]]), targets.number(known_targets[row[2]])]
            for row in rows
        ]
        return kinds, targets, [[*mine, *row[3:]] for mine, row in zip(own, rows, strict=True)]


# The packets of a run that kept them (`--packets`), for the diagram of who sent what to whom.
#
# Output: at most MOST_PACKETS rows in order of sending, spread over SLICES equal parts of the
# run, and of each part how many more there are.

MOST_PACKETS, SLICES = 20_000, 500


def packets(
    directory: HeldDirectory,
    plan: Plan,
    clock: PlanClock,
    manifest: Mapping[str, Any],
    end_ns: int,
    notes: list[str],
) -> dict[str, Any] | None:
    """None where there is no such record. RunError for what is damaged."""
    start: object = manifest.get("start_unix_ns")
    found = recorded_packets(directory, plan, clock, start if type(start) is int else 0)
    if found is None:
        return None
    notes += found.told()
    begin_ns = clock.start_at_ns
    there = [one for one in found.packets if one.sent_ns <= end_ns]
    kept, left_out = thinned(there, MOST_PACKETS, begin_ns, end_ns, SLICES)
    if any(left_out):
        notes.append(f"of {len(there)} packets {len(kept)} are shown, spread over the run")
    causes, said = Words(), Words()
    causes.number("")
    rows = [
        [
            one.src,
            one.dst,
            one.sent_ns,
            one.end_ns - one.sent_ns,
            causes.number(one.cause),
            one.link,
            said.number(one.words),
            one.size,
            int(one.words == PROBE),
        ]
        for one in kept
    ]
    return {
        "rows": rows,
        "causes": causes.words(),
        "words": said.words(),
        "begin_ns": begin_ns,
        "step_ns": max((end_ns - begin_ns) // SLICES, 1),
        "left_out": left_out if any(left_out) else [],
    }
