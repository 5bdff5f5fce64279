"""What a file of another tool says of a thing: words by name, each with its place."""

from __future__ import annotations

from typing import NamedTuple

from tdl.ast import Span


class Attribute(NamedTuple):
    text: str
    span: Span


Attributes = dict[str, Attribute]
