"""What came of storms, and of those that failed: the lines of results.jsonl of a hunt.

A line is one record, on the disk before the hunt goes on. The file may have come from elsewhere, so
what is read is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import REMEDY, decoded, encoded, parse
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import encode, whole_lines
from tstorm.hunt.storms import Storm

FILE = "results.jsonl"
MAX_FILE_BYTES = 1 << 34
MAX_LINE_BYTES = 1 << 24
PASSED, FAILED, SILENT = "passed", "failed", "silent"


@dataclass(frozen=True, slots=True)
class FailedAt:
    """A tstorm.shrink.failures.Failure, and when it was decided, -1 where that is not known."""

    what: str
    name: str
    by_end: bool
    at_ns: int = -1


@dataclass(frozen=True, slots=True)
class StormResult:
    """`outcome`: passed | failed | silent, which says nothing about the experiment; `message` why.
    `reached`: tstorm.hunt.novelty. `happened` and `never`: of what has to happen in some storm, by
    name: what did in this one, and what did not."""

    storm: Storm
    outcome: str
    failed: tuple[FailedAt, ...] = ()
    reached: tuple[str, ...] = ()
    message: str = ""
    happened: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FindResult:
    """What is left of a storm that failed. `find`: the number of the find that it is, by which
    its folder is called; 0: it did not fail again. `is_first`: no earlier one is the same.
    `failures`: in words. `kinds`: of the faults that are left."""

    storm: int
    find: int
    is_first: bool = False
    failures: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    seed: int = 0
    faults_before: int = 0
    faults: int = 0
    attempts: int = 0
    runs: int = 0
    message: str = ""


HuntResult = StormResult | FindResult
_KINDS: Mapping[str, type[StormResult] | type[FindResult]] = {
    "storm": StormResult,
    "find": FindResult,
}


def line(found: HuntResult) -> bytes:
    name = "storm" if isinstance(found, StormResult) else "find"
    return encode({name: encoded(found)})


def read(directory: HeldDirectory) -> Iterator[HuntResult]:
    """A last line that a crash has cut is left out. RunError."""
    with directory.reading(FILE, MAX_FILE_BYTES) as file:
        for place, row in whole_lines(file, str(directory / FILE), MAX_LINE_BYTES):
            yield _decoded(parse(row, place), place)


def _decoded(value: Any, place: str) -> HuntResult:
    names = list(value) if type(value) is dict else []
    if len(names) != 1 or names[0] not in _KINDS:
        raise RunError(f"{place} is no result of a hunt", REMEDY)
    return decoded(_KINDS[names[0]], value[names[0]], place, REMEDY)
