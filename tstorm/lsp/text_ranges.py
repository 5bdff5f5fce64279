"""Places in a text, as the compiler and as editors have them.

The compiler counts lines and columns from 1, columns in characters. The Language Server Protocol
counts both from 0, columns in units of an encoding that client and server agree on (usually
UTF-16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tdl.ast import Span


class TextRange(NamedTuple):
    """Of the protocol: half-open, from 0 on."""

    line: int
    start: int
    end_line: int
    end: int


NOWHERE = TextRange(0, 0, 0, 0)
_UNITS: Mapping[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}


def text_range(span: Span, lines: Sequence[str], encoding: str) -> TextRange:
    """Where a span is in a text of these lines. What lies outside of them ends with them."""
    start_line, start = _place(span.line, span.col, lines, encoding)
    end_line, end = _place(span.end_line, span.end_col, lines, encoding)
    return TextRange(start_line, start, *max((start_line, start), (end_line, end)))


def _place(line: int, col: int, lines: Sequence[str], encoding: str) -> tuple[int, int]:
    if not 1 <= line <= len(lines):
        return max(0, min(line, len(lines)) - 1), 0
    return line - 1, _UNITS[encoding](lines[line - 1][: max(0, col - 1)])


def column(text: str, units: int, encoding: str) -> int:
    """How many characters of a line are in front of a place that is so many units in it."""
    taken = 0
    for index, char in enumerate(text):
        if taken >= units:
            return index
        taken += _UNITS[encoding](char)
    return len(text)
