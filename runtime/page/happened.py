"""events.jsonl as columns: each event, when it was planned and when it was applied.

Input: the lines of the file. Times are plan time; lags are real time. At most MOST_PLANNED events
of the plan and MOST_OTHERS others are listed, the first ones; how many there are is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.results.eventwords import details
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

    def __init__(self, clock: PlanClock) -> None:
        self._clock = clock
        self._kinds, self._targets = Words(), Words()
        self.rows: list[list[Any]] = []
        self.planned = self.others = self.strange = 0
        self.last_ns = 0  # plan time

    def take_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """RunError where the file is damaged; what came before it is kept."""
        for record in records:
            self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        of_plan = record.get("seq") is not None
        applied = record.get("applied_ns")
        at_ns = self._clock.plan_time(applied) if type(applied) is int else None
        planned = record.get("planned_ns")
        planned = planned if type(planned) is int else None
        self.last_ns = max(self.last_ns, at_ns or 0)
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
        lag = record.get("lag_ns")
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
            ]
        )

    def note(self, notes: list[str]) -> None:
        for what, count, most in (
            ("events of the plan", self.planned, MOST_PLANNED),
            ("other events", self.others, MOST_OTHERS),
        ):
            if count > most:
                notes.append(f"of {count} {what} the first {most} are listed")
        if self.strange:
            notes.append(f"{self.strange} events are left out: they are damaged")

    def record(self) -> dict[str, Any]:
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
        )
        return {
            "columns": list(columns),
            "kinds": self._kinds.words(),
            "targets": self._targets.words(),
            "rows": self.rows,
        }
