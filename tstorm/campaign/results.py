"""What the run of a point came to, and the file that keeps it: results.jsonl of a campaign.

A line is one record, written at once when its run has ended. A point may have several: the last one
counts. The file may have come from elsewhere, so what is read is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    FLAG,
    INTEGER,
    NUMERAL,
    REMEDY,
    TEXT,
    Each,
    Shape,
    check,
    parse,
)
from runtime.launch.run_result import PROGRAMS_FAILED
from runtime.options import COMPLETED, FAILED, INTERRUPTED
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import encode, whole_lines
from tstorm.campaign.points import Point

FILE = "results.jsonl"
MAX_FILE_BYTES = 1 << 30
MAX_LINE_BYTES = 1 << 22
_SHAPE = Shape(
    {
        "point": TEXT,
        "seed": COUNT,
        "params": Each(TEXT),
        "code": INTEGER,
        "outcome": TEXT,
        "verdict": TEXT,
        "failed": [TEXT],
        "expectations": {
            "passed": COUNT,
            "failed": [TEXT],
            "not_measured": COUNT,
            "happened?": [TEXT],
            "never?": [TEXT],
        },
        "message": TEXT,
        "ran": FLAG,
        "figures?": Each(NUMERAL),
    }
)


@dataclass(frozen=True, slots=True)
class ExpectationOutcomes:
    """What came of the experiment's expectations. `happened` and `never`: of what has to happen in
    some run, by name: what did in this one, and what did not."""

    passed: int = 0
    failed: tuple[str, ...] = ()  # their texts
    not_measured: int = 0
    happened: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> ExpectationOutcomes:
        """Of a run's summary.json."""
        found = summary.get("expectations", ())
        states = [str(one.get("state", "")) for one in found]
        failed = (str(one["text"]) for one in found if one.get("state") == "failed")
        happened, never = (
            tuple(dict.fromkeys(str(name) for one in found for name in one.get(key, ())))
            for key in ("happened", "never")
        )
        counts = states.count("passed"), tuple(failed), states.count("not_measured")
        return cls(*counts, happened, never)


@dataclass(frozen=True, slots=True)
class PointResult:
    """What the run of a point came to."""

    point: Point
    code: int  # what `tstorm run` would have ended with
    outcome: str
    verdict: str = ""
    failed: tuple[str, ...] = ()  # instances whose program failed
    expected: ExpectationOutcomes = field(default_factory=ExpectationOutcomes)
    message: str = ""
    ran: bool = False  # whether it has a run directory that says so
    figures: Mapping[str, str] = field(default_factory=dict)  # by `FIGURE of INSTANCE`

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody stopped it: then what it says of itself is about a part of it."""
        return self.outcome == INTERRUPTED

    @property
    def is_bad(self) -> bool:
        bad = self.code != 0 or bool(self.failed or self.expected.failed)
        return bad and not self.is_interrupted

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do again: neither interrupted nor kept from beginning."""
        return self.ran and self.outcome in (COMPLETED, FAILED)

    @property
    def exit_code(self) -> int:
        """`code`, and that expectations failed where nothing worse did."""
        return self.code or (PROGRAMS_FAILED if self.expected.failed else 0)

    def to_record(self) -> dict[str, Any]:
        return {
            "point": self.point.name,
            "seed": self.point.seed,
            "params": dict(self.point.params),
            "code": self.code,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "failed": list(self.failed),
            "expectations": {
                "passed": self.expected.passed,
                "failed": list(self.expected.failed),
                "not_measured": self.expected.not_measured,
                **({"happened": list(self.expected.happened)} if self.expected.happened else {}),
                **({"never": list(self.expected.never)} if self.expected.never else {}),
            },
            "message": self.message,
            "ran": self.ran,
            **({"figures": dict(self.figures)} if self.figures else {}),
        }


def _decode(record: Any, place: str) -> PointResult:
    check(record, _SHAPE, place)
    expected = record["expectations"]
    point = Point(record["seed"], tuple(sorted(record["params"].items())))
    if point.name != record["point"]:
        raise RunError(f"{place}: {record['point']!r:.60} is not the name of its point", REMEDY)
    return PointResult(
        point,
        record["code"],
        record["outcome"],
        record["verdict"],
        tuple(record["failed"]),
        ExpectationOutcomes(
            expected["passed"],
            tuple(expected["failed"]),
            expected["not_measured"],
            tuple(expected.get("happened", ())),
            tuple(expected.get("never", ())),
        ),
        record["message"],
        record["ran"],
        record.get("figures", {}),
    )


def read(directory: HeldDirectory) -> dict[Point, PointResult]:
    """The last record of each point. A last line that a crash has cut is left out. RunError."""
    return {found.point: found for found in _read(directory)} if directory.has(FILE) else {}


def _read(directory: HeldDirectory) -> Iterator[PointResult]:
    with directory.reading(FILE, MAX_FILE_BYTES) as file:
        for place, line in whole_lines(file, str(directory / FILE), MAX_LINE_BYTES):
            yield _decode(parse(line, place), place)


def never_happened(found: Iterable[PointResult]) -> list[str]:
    """What has to happen in some run and did in none of these, sorted. Of those that were stopped
    only what happened counts."""
    return never_in_any(
        (row.expected.happened, () if row.is_interrupted else row.expected.never) for row in found
    )


def never_in_any(runs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> list[str]:
    """The same, from the names of what happened in each run and of what did not."""
    happened: set[str] = set()
    missed: set[str] = set()
    for came, lacking in runs:
        happened.update(came)
        missed.update(lacking)
    return sorted(missed - happened)


def line(found: PointResult) -> bytes:
    return encode(found.to_record())


def lines(found: Sequence[PointResult]) -> bytes:
    """A whole file."""
    return b"".join(map(line, found))
