"""What the experiment expected of its run: `expectations` of summary.json, fit for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.json_schema import (
    FLAG,
    INTEGER,
    NOTHING,
    TEXT,
    OneOf,
    Shape,
)

STATES = ("passed", "failed", "not_measured")
MOST, MOST_LINES, MOST_OPERATIONS = 5000, 20, 400
_MAYBE = OneOf(INTEGER, NOTHING)
_SHAPE = Shape(
    {
        "text": TEXT,
        "state": TEXT,
        "message": TEXT,
        "kind?": TEXT,
        "file?": TEXT,
        "line?": INTEGER,
        "figure?": _MAYBE,
        "threshold?": _MAYBE,
        "unit?": TEXT,
        "at_ns?": _MAYBE,
        "subject?": TEXT,
    }
)
_LINE = Shape({"instance": TEXT, "line": TEXT, "at_ns?": _MAYBE})
_OPERATION = Shape(
    {
        **dict.fromkeys(("process", "words"), TEXT),
        "from_ns": INTEGER,
        "to_ns": _MAYBE,
        **dict.fromkeys(("ok", "guilty"), FLAG),
    }
)
_OPERATION_KEYS = ("process", "words", "from_ns", "to_ns", "ok", "guilty")
_KEYS = (
    "text",
    "state",
    "message",
    "kind",
    "file",
    "line",
    "figure",
    "threshold",
    "unit",
    "at_ns",
    "subject",
)


def records(told: object, notes: list[str]) -> list[dict[str, Any]]:
    """In the order of the source; one of another shape is counted and left out."""
    whole = told if isinstance(told, list) else []
    fit = [one for one in whole if _SHAPE.fits(one) and one["state"] in STATES]
    if len(fit) < len(whole):
        notes.append(f"{len(whole) - len(fit)} expectations are left out: they are damaged")
    if len(fit) > MOST:
        notes.append(f"of {len(fit)} expectations the first {MOST} are shown")
    return [_record(one) for one in fit[:MOST]]


def _record(one: Mapping[str, Any]) -> dict[str, Any]:
    lines = one.get("log")
    log = [
        [line["instance"], line.get("at_ns"), line["line"][:500]]
        for line in (lines if isinstance(lines, list) else ())
        if _LINE.fits(line)
    ]
    found = {**{key: one[key] for key in _KEYS if key in one}, "log": log[:MOST_LINES]}
    drawn = one.get("operations")
    if isinstance(drawn, list):
        found["operations"] = [
            [each[key] for key in _OPERATION_KEYS]
            for each in drawn[:MOST_OPERATIONS]
            if _OPERATION.fits(each)
        ]
    return found
