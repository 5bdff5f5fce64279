"""Reactions (`when`) to and from topology.json, where they stand only if there are some.

A plan may come from elsewhere, and a pattern of it is matched: PlanError at the first value that no
source can have said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from compiler.plan.format import MAX_NODES, Place
from compiler.plan.parts.action_texts import have_fired
from compiler.plan.types import REACTIONS, PlannedReaction

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

MAX_REACTIONS = 100
MAX_FIRINGS = 10_000  # of one of them
DEFAULT_MOST = 100
MAX_TEXT = 1000  # characters of a pattern
MAX_STATUS = 255
_FIELDS = tuple(sorted(field.name for field in fields(PlannedReaction)))


def are_waited_for(plan: Plan) -> bool:
    """Whether a run of it reacts: one with what a run's reactions have done does that, and no
    more."""
    return bool(plan.topology.reactions) and not have_fired(plan.attached.includes)


def to_json(found: Sequence[PlannedReaction]) -> list[dict[str, object]]:
    return [{**asdict(one), "nodes": list(one.nodes), "every": int(one.every)} for one in found]


def from_json(value: Any, outer: Place) -> tuple[PlannedReaction, ...]:
    items = outer.items(value)
    if len(items) > MAX_REACTIONS:
        outer.fail(f"more than {MAX_REACTIONS} reactions")
    return tuple(_one(item, outer, number) for number, item in enumerate(items))


def _one(item: Any, outer: Place, number: int) -> PlannedReaction:
    place = Place(outer.file, outer.line, f"reaction {number}")
    said = dict(zip(_FIELDS, place.fields(item, *_FIELDS), strict=True))
    found = PlannedReaction(
        kind=place.word(said["kind"], "kind", REACTIONS),
        nodes=tuple(
            place.integer(node, "nodes", 0, MAX_NODES) for node in place.items(said["nodes"])
        ),
        pattern=place.text(said["pattern"], "pattern"),
        status=place.integer(said["status"], "status", -1, MAX_STATUS),
        every=place.integer(said["every"], "every", 0, 1) == 1,
        most=place.integer(said["most"], "most", 1, MAX_FIRINGS),
        after_ns=place.integer(said["after_ns"], "after_ns"),
        text=place.text(said["text"], "text"),
        file=place.text(said["file"], "file"),
        line=place.integer(said["line"], "line"),
    )
    if wrong := _wrong(found):
        place.fail(wrong)
    return found


def _wrong(one: PlannedReaction) -> str:
    """'' for nothing."""
    if not one.nodes or any(a >= b for a, b in pairwise(one.nodes)):
        return "nodes are ascending, and there are some"
    if bool(one.pattern) != (one.kind in ("log", "file")) or len(one.pattern) > MAX_TEXT:
        return "a log has a pattern and a file a path, of at most 1,000 characters"
    if one.kind == "file":
        return "" if _is_own(one.pattern) else "a path that leads out of the instance's directory"
    try:
        re.compile(one.pattern)
    except (re.error, OverflowError, RecursionError):
        return "a pattern that cannot be read"
    return ""


def _is_own(text: str) -> bool:
    path = PurePosixPath(text)
    apart = path.is_absolute() or ".." in path.parts or not path.parts
    return not apart and str(path) == text and "\0" not in text
