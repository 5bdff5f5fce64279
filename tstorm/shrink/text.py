"""Places in a TDL text, and the text with something else in them.

Input: a text, and ranges of it as the parser counts them: lines and columns from 1, after a byte
order mark; a line ends with LF, CRLF or CR. Output: the text with other words in these ranges. A
line of which nothing or only a comment would be left goes; everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tdl import ast
from tdl.tokens.lexer import Token

Place = tuple[int, int]
_NEWLINE = re.compile(r"\r\n|\r|\n")
_MARK = "\ufeff"


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """The end is not included."""

    begin: Place
    end: Place

    @classmethod
    def of(cls, spans: Sequence[ast.Span | Token]) -> Range:
        """From the first to the last of them."""
        first, last = spans[0], spans[-1]
        end = last.span if isinstance(last, Token) else last
        return cls((first.line, first.col), (end.end_line, end.end_col))


class SourceText:
    def __init__(self, text: str) -> None:
        self.text = text
        mark = len(_MARK) if text.startswith(_MARK) else 0
        ends = [found.end() for found in _NEWLINE.finditer(text)]
        self._starts = [mark, *ends]
        self._ends = [*ends, len(text)]

    def offset(self, place: Place) -> int:
        return self._starts[place[0] - 1] + place[1] - 1

    def part(self, where: Range) -> str:
        return self.text[self.offset(where.begin) : self.offset(where.end)]

    def line(self, number: int) -> str:
        """With its end."""
        return self.lines(number, number)

    def lines(self, first: int, last: int) -> str:
        return self.text[self._starts[first - 1] : self._ends[last - 1]]

    def indent(self, number: int) -> str:
        line = self.line(number)
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def newline(self) -> str:
        """How its lines end."""
        found = _NEWLINE.search(self.text)
        return found[0] if found else "\n"

    def changed(self, changes: Iterable[tuple[Range, str]]) -> str:
        """The ranges do not overlap."""
        text = self.text
        for where, instead in sorted(changes, reverse=True):  # from the end: places stay right
            begin, end = self.offset(where.begin), self.offset(where.end)
            low, high = self._starts[where.begin[0] - 1], self._ends[where.end[0] - 1]
            left = text[low:begin] + text[end:high]
            if not instead and (not left.strip() or left.lstrip().startswith("#")):
                begin, end = low, high
            text = text[:begin] + instead + text[end:]
        return text

    def with_lines(self, first: int, last: int, instead: str) -> str:
        """Other lines in place of these."""
        return self.text[: self._starts[first - 1]] + instead + self.text[self._ends[last - 1] :]


# What of a text can be chosen: some of several parts of it, of which others go.


@dataclass(frozen=True, slots=True)
class Subset:
    """`text` makes the text with these parts only, by their numbers in order; None: it cannot be
    written. `what` the parts are, for people; `at` is where the first one stands. `possible` is
    asked once, before anything is tried."""

    at: Place
    what: str
    count: int
    text: Callable[[Sequence[int]], str | None]
    possible: Callable[[], bool] = lambda: True
