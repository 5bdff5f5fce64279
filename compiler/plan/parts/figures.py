"""Figures of an experiment's own: numbers that its programs give. The contract between statements
`figure NAME = …` and whoever reads the numbers; to and from figures.json (docs/plan.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from compiler.plan import format as form
from compiler.plan.format import Place

MAX_FIGURES = 1_000
MAX_TEXT = 1_000  # characters of a pattern, a path, a key


@dataclass(frozen=True, slots=True)
class PlannedFigure:
    """Each of its instances gives a number: the group of `pattern` in the last line of its log that
    has the pattern, or what is at `key` of the JSON file at `path` in its directory."""

    name: str
    text: str  # the statement in canonical form
    line: int  # of the source
    file: str  # the included file that the line is in, '' = the source itself
    nodes: tuple[int, ...]  # instances, ascending
    pattern: str = ""
    path: str = ""
    key: str = ""


_FIELDS = tuple(sorted(field.name for field in fields(PlannedFigure)))
_TEXTS = ("file", "key", "name", "path", "pattern", "text")


def to_json(found: Sequence[PlannedFigure]) -> list[dict[str, object]]:
    return [{**asdict(one), "nodes": list(one.nodes)} for one in found]


def from_json(value: Any, instances: int) -> tuple[PlannedFigure, ...]:
    """Of a plan with so many instances, which come first among its nodes. PlanError."""
    outer = Place(form.FIGURES, 1)
    items = outer.items(value)
    if len(items) > MAX_FIGURES:
        outer.fail(f"more than {MAX_FIGURES} figures")
    found = []
    for number, item in enumerate(items):
        place = Place(form.FIGURES, 1, f"figure {number}")
        said = dict(zip(_FIELDS, place.fields(item, *_FIELDS), strict=True))
        texts = {name: place.text(said[name], name) for name in _TEXTS}
        nodes = [place.integer(n, "nodes", 0, instances - 1) for n in place.items(said["nodes"])]
        found.append(
            PlannedFigure(**texts, line=place.integer(said["line"], "line"), nodes=tuple(nodes))
        )
    check(found)
    return tuple(found)


def check(found: Sequence[PlannedFigure]) -> None:
    """Raises PlanError for what no source can have said."""
    names: set[str] = set()
    for number, one in enumerate(found):
        wrong = _wrong(one) or ("a name that another has" if one.name in names else "")
        if wrong:
            Place(form.FIGURES, 1, f"figure {number}").fail(wrong)
        names.add(one.name)


def _wrong(one: PlannedFigure) -> str:
    """'' for nothing."""
    if not one.name or not one.nodes or any(a >= b for a, b in pairwise(one.nodes)):
        return "no name, or nodes that are not ascending"
    if bool(one.pattern) == bool(one.path and one.key) or bool(one.path) != bool(one.key):
        return "neither a pattern nor a place in a file, or both"
    if max(map(len, (one.pattern, one.path, one.key))) > MAX_TEXT:
        return "a text that is too long"
    if one.path.startswith("/") or ".." in one.path.split("/") or "\0" in one.path:
        return "a file that is not in the directory of the instance"
    try:
        good = not one.pattern or re.compile(one.pattern).groups == 1
    except (re.error, OverflowError, RecursionError):
        good = False
    return "" if good else "a pattern that cannot be read, or has not one group"
