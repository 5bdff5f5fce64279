"""What failed in a run: expectations by their text, and programs by their instance.

Of each it is told whether only the end of the run has decided it. What still ran or was missing
then, and a figure of a time up to the end, say something else where a run ends earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.plan.parts.expectations import (
    ALWAYS,
    ASSERTIONS,
    EXIT,
    NO_LOG,
    OF_HISTORIES,
    RTT,
    UNREACHABLE,
    VALID,
)
from runtime.judge.judge_programs import STILL_RUNNING, counts
from runtime.options import RunOptions

if TYPE_CHECKING:
    from compiler.plan.parts.expectations import PlannedExpectation
    from compiler.plan.reader import Plan


@dataclass(frozen=True, slots=True, order=True)
class Failure:
    """`by_end`: the end of the run has decided it."""

    what: str  # `expectation` or `program`
    name: str
    by_end: bool = False

    @property
    def words(self) -> str:
        name = self.name if self.what == "expectation" else f"the program of {self.name}"
        return f"{name} (decided by the end of the run)" if self.by_end else name


def of(summary: Mapping[str, Any], options: RunOptions, plan: Plan) -> dict[Failure, int | None]:
    """When each was decided, in plan time, as far as that is known."""
    rows = summary.get("expectations", [])
    expected = {one.text: one for one in plan.expectations}
    found: dict[Failure, int | None] = {}
    for row in rows:
        if row["state"] == "failed":
            by_end = _by_end(row, expected.get(row["text"]), plan.end_ns)
            found.setdefault(Failure("expectation", row["text"], by_end), row.get("at_ns"))
    asked = options.fail_on_exit or options.fail_fast
    for one in summary.get("failures", ()):
        if counts(one, fail_on_exit=asked):
            by_end = bool(one.get(STILL_RUNNING))
            found.setdefault(Failure("program", one["target"], by_end), None)
    return found


def _by_end(row: Mapping[str, Any], expected: PlannedExpectation | None, end_ns: int) -> bool:
    """`expected`: None if the text is another one than was run."""
    if expected is None:
        return False
    figure, kind = row.get("figure"), expected.kind
    if kind == EXIT:  # the program still ran; of one that has ended a moment before that is told
        return figure is None and (row.get("at_ns") or 0) >= end_ns
    if kind == VALID:
        return True
    if expected.to_ns < end_ns:
        return False
    if kind in (NO_LOG, UNREACHABLE, *OF_HISTORIES, ALWAYS, ASSERTIONS):
        return expected.eventually
    return figure is None or not _one_decides(expected)


def _one_decides(expected: PlannedExpectation) -> bool:
    """Whether a single round trip beyond the bound is enough."""
    farthest = "max" if expected.op in ("<", "<=") else "min"
    alone = expected.kind == RTT and expected.statistic == farthest
    return alone and not (expected.of_plan or expected.eventually)
