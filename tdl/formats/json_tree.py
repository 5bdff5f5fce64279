"""JSON to the tree that YAML becomes, in which each value has its place, within bounds of time and
memory.

Input: the bytes of a file. Output: one Value; numbers keep their text. Strings are the standard
library's, the rest follows the grammar. Source: RFC 8259.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.bad_file import BadFileError
from tdl.formats.yaml_tree import MAX_NESTING, Value

MAX_BYTES = 4 << 20
_STRINGS = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null", re.ASCII
)


def read(data: bytes, file: str, sink: Sink) -> Value | None:
    """None after a report."""
    try:
        return _JsonReader(data, file).document()
    except BadFileError as bad:
        sink.error(*bad.problem)
    return None


class _JsonReader:
    def __init__(self, data: bytes, file: str) -> None:
        self._file = file
        start = Span(1, 1, 1, 2, file)
        if len(data) > MAX_BYTES:
            message = f"the file has more than {MAX_BYTES >> 20} MiB"
            raise BadFileError("TS0506", start, message)
        try:
            self._text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            place = Span(line, 1, line, 2, file)
            raise BadFileError("TS0508", place, "this is not UTF-8", "save it as UTF-8") from None
        self._starts = [0, *(match.end() for match in re.finditer("\n", self._text))]
        self._at = 0
        self._depth = 0

    def document(self) -> Value:
        value = self._value()
        if self._next():
            raise self._bad("something stands behind the end")
        return value

    def _next(self) -> str:
        """The character that is next after spaces; '' at the end."""
        found = _SPACE.match(self._text, self._at)
        assert found
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Value:
        mark, begin = self._next(), self._at
        if mark == '"':
            string = self._string()
            return Value(self._span(begin, self._at), string)
        if mark in ("{", "["):
            return self._inner(mark)
        word = _WORD.match(self._text, begin)
        if word is None:
            raise self._bad("a value is missing here")
        self._at = word.end()
        text = None if word[0] == "null" else word[0]
        return Value(self._span(begin, self._at), text, plain=True)

    def _inner(self, mark: str) -> Value:
        span = self._span(self._at, self._at + 1)
        self._depth += 1
        if self._depth > MAX_NESTING:
            message = f"more than {MAX_NESTING} values in one another"
            raise BadFileError("TS0506", span, message)
        self._at += 1
        value = self._map(span) if mark == "{" else self._list(span)
        self._depth -= 1
        return value

    def _map(self, span: Span) -> Value:
        entries: dict[str, tuple[Span, Value]] = {}
        while self._goes_on("}", first=not entries):
            if self._next() != '"':
                raise self._bad("a key in quotes is missing here")
            begin = self._at
            name = self._string()
            place = self._span(begin, self._at)
            if name in entries:
                raise BadFileError("TS0508", place, f"'{name[:40]}' stands here twice")
            if self._next() != ":":
                raise self._bad("a ':' is missing here")
            self._at += 1
            entries[name] = (place, self._value())
        return Value(span, entries=entries)

    def _list(self, span: Span) -> Value:
        items: list[Value] = []
        while self._goes_on("]", first=not items):
            items.append(self._value())
        return Value(span, items=tuple(items))

    def _goes_on(self, end: str, *, first: bool) -> bool:
        """Whether one more comes; goes over the comma before it, or over the end."""
        mark = self._next()
        if mark == end:
            self._at += 1
            return False
        if first:
            return True
        if mark != ",":
            raise self._bad(f"a ',' or '{end}' is missing here")
        comma = self._at
        self._at += 1
        if self._next() == end:
            self._at = comma
            raise self._bad("nothing stands behind this ','")
        return True

    def _string(self) -> str:
        try:
            found, self._at = _STRINGS.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            raise self._bad(error.msg) from None
        return str(found)

    def _span(self, begin: int, end: int) -> Span:
        line = bisect_right(self._starts, begin)
        col = begin - self._starts[line - 1] + 1
        return Span(line, col, line, col + max(1, end - begin), self._file)

    def _bad(self, why: str) -> BadFileError:
        return BadFileError("TS0508", self._span(self._at, self._at), f"this is not JSON: {why}")
