"""What a file of another tool says of a thing: words by name, each with its place."""

from __future__ import annotations

from typing import Any, NamedTuple

from tdl.ast import Span


class Attribute(NamedTuple):
    text: str
    span: Span


Attributes = dict[str, Attribute]


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, for json.loads. A name that stands twice says two things, of which one would be
    lost: ValueError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice[:40]}' stands twice in an object")
    return found
