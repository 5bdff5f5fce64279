"""What failed in a run: expectations by their text, and programs by their instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.foreign import INTEGER, NOTHING, TEXT, OneOf, Shape, check
from runtime.judge.programs import counts
from runtime.options import RunOptions

_SHAPE = Shape([{"text": TEXT, "state": TEXT, "at_ns?": OneOf(INTEGER, NOTHING)}])


@dataclass(frozen=True, slots=True, order=True)
class Failure:
    what: str  # `expectation` or `program`
    name: str

    @property
    def words(self) -> str:
        return self.name if self.what == "expectation" else f"the program of {self.name}"


def of(summary: Mapping[str, Any], options: RunOptions, place: str) -> dict[Failure, int | None]:
    """When each was decided, in plan time, as far as that is known. RunError if it is damaged."""
    rows = summary.get("expectations", [])
    check(rows, _SHAPE, f"{place}: expectations")
    found: dict[Failure, int | None] = {}
    for row in rows:
        if row["state"] == "failed":
            found.setdefault(Failure("expectation", row["text"]), row.get("at_ns"))
    asked = options.fail_on_exit or options.fail_fast
    for one in summary.get("failures", ()):
        if counts(one, fail_on_exit=asked):
            found.setdefault(Failure("program", one["target"]), None)
    return found
