"""YAML to a tree in which each value has its place, within bounds of time and memory.

Input: the bytes of a file. Output: one Value. PyYAML's events are followed with a stack of our own:
nesting, the number of nodes, and what aliases stand for together are limited before anything is
made of them. Merges (`<<`) are carried out. Tags other than YAML's own are kept for the reader.
Source: YAML 1.2.2, chapters 3 and 7; the merge key of YAML 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.bad_file import BadFileError
from tdl.tokens.lexer import source_lines

MAX_BYTES = 256 << 10
MAX_NESTING = 64
MAX_NODES = 50_000  # with every alias as many as what it stands for
_MERGE = "<<"
_NULLS = ("", "~", "null", "Null", "NULL")
_START = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_END = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar (`text`, None for null), a list (`items`) or a map (`entries`, by key, with the
    key's own place). `tag` is one that is not YAML's own: `!reset`."""

    span: Span
    text: str | None = None
    items: tuple[Value, ...] | None = None
    entries: dict[str, tuple[Span, Value]] | None = None
    tag: str = ""
    plain: bool = False  # a scalar without quotes
    literal: bool = False  # a scalar whose lines are those of the file, below its own (`|`)

    @property
    def kind(self) -> str:
        if self.entries is not None:
            return "a map"
        return "a list" if self.items is not None else "a value"

    @property
    def is_null(self) -> bool:
        return self.text is None and self.items is None and self.entries is None

    def get(self, key: str) -> Value | None:
        found = (self.entries or {}).get(key)
        return None if found is None else found[1]

    def values(self) -> Iterator[tuple[str, Span, Value]]:
        """Of a map: keys, their places, values."""
        for key, (span, value) in (self.entries or {}).items():
            yield key, span, value

    def with_entries(self, entries: dict[str, tuple[Span, Value]]) -> Value:
        return replace(self, text=None, items=None, entries=entries)


@dataclass(slots=True)
class _Open:
    """A list or a map that is being read."""

    span: Span
    anchor: str | None
    tag: str
    is_map: bool
    items: list[Value] = field(default_factory=list)
    size: int = 1


def read(data: bytes, file: str, sink: Sink) -> Value | None:
    """The one document of a file; None after a report."""
    try:
        return _Reader(data, file).document()
    except BadFileError as bad:
        sink.error(*bad.problem)
    return None


class _Reader:
    def __init__(self, data: bytes, file: str) -> None:
        self._file = file
        start = Span(1, 1, 1, 2, file)
        if len(data) > MAX_BYTES:
            message = f"the file has more than {MAX_BYTES >> 10} KiB"
            raise BadFileError("TS0506", start, message, "a person's Compose file is far smaller")
        try:
            self._text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            place = Span(line, 1, line, 2, file)
            raise BadFileError("TS0500", place, "this is not UTF-8", "save it as UTF-8") from None
        self._lines = source_lines(self._text)
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._stack: list[_Open] = []
        self._root: Value | None = None

    def document(self) -> Value:
        documents = 0
        try:
            for event in yaml.parse(self._text, Loader=yaml.SafeLoader):
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        raise self._bad("TS0500", event, "a second document", "keep one of them")
                else:
                    self._take(event)
        except yaml.YAMLError as error:
            raise self._syntax(error) from None
        except RecursionError:
            raise BadFileError("TS0506", Span(1, 1, 1, 2, self._file), "too deep") from None
        if self._root is None:
            raise BadFileError("TS0500", Span(1, 1, 1, 2, self._file), "the file is empty")
        return self._root

    def _take(self, event: Any) -> None:
        if isinstance(event, _START):
            if len(self._stack) >= MAX_NESTING:
                raise self._bad("TS0506", event, f"more than {MAX_NESTING} values in one another")
            is_map = isinstance(event, yaml.MappingStartEvent)
            self._stack.append(_Open(self._span(event), event.anchor, _tag(event), is_map))
        elif isinstance(event, _END):
            done = self._stack.pop()
            value = self._map(done) if done.is_map else _list(done)
            self._add(value, done.size, done.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), 1, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _alias(self, event: Any) -> None:
        if any(one.anchor == event.anchor for one in self._stack):
            raise self._bad("TS0506", event, f"*{event.anchor} stands in what it stands for")
        known = self._anchors.get(event.anchor)
        if known is None:
            message = f"there is no &{event.anchor} before this"
            raise self._bad("TS0500", event, message)
        self._add(*known, None)

    def _add(self, value: Value, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self._root = value
            return
        inner = self._stack[-1]
        inner.size += size
        if inner.size > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, what aliases stand for included"
            raise BadFileError("TS0506", inner.span, message)
        inner.items.append(value)

    def _scalar(self, event: Any) -> Value:
        plain = event.style is None
        tag = _tag(event)
        text = None if plain and event.value in _NULLS else event.value
        return Value(self._span(event), text, tag=tag, plain=plain, literal=event.style == "|")

    def _map(self, done: _Open) -> Value:
        entries: dict[str, tuple[Span, Value]] = {}
        merged: list[Value] = []
        for key, value in zip(done.items[::2], done.items[1::2], strict=True):
            name = key.text
            if name is None:
                raise BadFileError("TS0500", key.span, "a key is a word")
            if name == _MERGE and key.plain:
                merged += self._merged(value)
            elif name in entries:
                raise BadFileError("TS0500", key.span, f"'{name[:40]}' stands here twice")
            else:
                entries[name] = (key.span, value)
        for one in merged:
            for name, found in (one.entries or {}).items():
                entries.setdefault(name, found)
        return Value(done.span, entries=entries, tag=done.tag)

    def _merged(self, value: Value) -> tuple[Value, ...]:
        found = (value,) if value.items is None else value.items
        for one in found:
            if one.entries is None:
                raise BadFileError("TS0500", one.span, "'<<' takes a map, or a list of maps")
        return found

    def _span(self, event: Any) -> Span:
        """On one line: of a value with several lines the first."""
        start, end = event.start_mark, event.end_mark
        line, col = start.line + 1, start.column + 1
        length = len(self._lines[line - 1]) if line <= len(self._lines) else col
        stop = end.column + 1 if end.line == start.line else length + 1
        if isinstance(event, _START):
            stop = col + 1
        return Span(line, col, line, max(stop, col + 1), self._file)

    def _bad(self, code: str, event: Any, message: str, hint: str | None = None) -> BadFileError:
        return BadFileError(code, self._span(event), message, hint)

    def _syntax(self, error: yaml.YAMLError) -> BadFileError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line, col = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if isinstance(error, yaml.reader.ReaderError):
            line = self._text.count("\n", 0, error.position) + 1
        if mark and line > len(self._lines):  # the end of the file
            line, col = len(self._lines), 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "no YAML"
        span = Span(line, col, line, col + 1, self._file)
        hint = "indent with spaces" if "'\\t'" in problem else None
        return BadFileError("TS0500", span, f"this is not YAML: {problem}", hint)


def _list(done: _Open) -> Value:
    return Value(done.span, items=tuple(done.items), tag=done.tag)


def _tag(event: Any) -> str:
    tag = event.tag or ""
    return "" if tag.startswith("tag:yaml.org,") or tag == "!" else tag
