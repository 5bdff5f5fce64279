"""What was planned beside what was measured, of each pair and epoch: the rows of certificate.json.

Foreign data: a row of another shape is counted and left out. At most MOST_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    INTEGER,
    NOTHING,
    REMEDY,
    TEXT,
    OneOf,
    Shape,
    parse,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import (
    CERTIFICATE,
    MAX_BYTES,
    MEASURED_FIGURES,
    OPEN_PROBES,
    PLANNED_FIGURES,
    PROBE_COUNTS,
)

MOST_ROWS = 20_000
_MAYBE = OneOf(INTEGER, NOTHING)
_MEASURED = {
    **dict.fromkeys(PROBE_COUNTS, COUNT),
    **dict.fromkeys(MEASURED_FIGURES, _MAYBE),
}
_ROW = Shape({"from": TEXT, "to": TEXT, "epoch": {"from_ns": INTEGER, "to_ns": INTEGER}})
_PLANNED_SHAPE = Shape(dict.fromkeys(PLANNED_FIGURES, COUNT))
_MEASURED_SHAPE = Shape({**_MEASURED, f"{OPEN_PROBES}?": COUNT})
COLUMNS = (
    *("pair", "from_ns", "to_ns"),
    *(f"planned_{name}" for name in PLANNED_FIGURES),
    *_MEASURED,
    OPEN_PROBES,
)


def read(directory: HeldDirectory) -> Mapping[str, Any]:
    """certificate.json; empty if there is none. RunError."""
    if not directory.has(CERTIFICATE):
        return {}
    place = str(directory / CERTIFICATE)
    found = parse(directory.read(CERTIFICATE, MAX_BYTES[CERTIFICATE]), place)
    if type(found) is not dict:
        raise RunError(f"{place} is no certificate", REMEDY)
    return found


def record(
    certificate: Mapping[str, Any], pairs: Mapping[tuple[str, str], int], notes: list[str]
) -> dict[str, Any]:
    """A row for each pair of `pairs` and epoch; null where nothing was planned or measured."""
    told = certificate.get("pairs")
    rows: list[list[Any]] = []
    strange = left_out = 0
    for one in told if isinstance(told, list) else ():
        row = _row(one, pairs)
        if row is None:
            strange += not _ROW.fits(one)
        elif len(rows) < MOST_ROWS:
            rows.append(row)
        else:
            left_out += 1
    if strange:
        notes.append(f"{strange} rows of {CERTIFICATE} are left out: they are damaged")
    if left_out:
        notes.append(
            f"of {left_out + MOST_ROWS} epochs of pairs the first {MOST_ROWS} are listed here;"
            f" {CERTIFICATE} has the others"
        )
    return {"columns": list(COLUMNS), "rows": rows}


def _row(one: Any, pairs: Mapping[tuple[str, str], int]) -> list[Any] | None:
    if not _ROW.fits(one):
        return None
    pair = pairs.get((one["from"], one["to"]))
    if pair is None:
        return None
    planned = _values(one.get("planned"), _PLANNED_SHAPE, PLANNED_FIGURES)
    measured = _values(one.get("measured"), _MEASURED_SHAPE, (*_MEASURED, OPEN_PROBES))
    return [pair, one["epoch"]["from_ns"], one["epoch"]["to_ns"], *planned, *measured]


def _values(found: Any, shape: Shape, names: Sequence[str]) -> list[Any]:
    if not shape.fits(found):
        return [None] * len(names)
    return [found.get(name) for name in names]
