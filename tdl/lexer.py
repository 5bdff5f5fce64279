"""Text to logical lines of tokens.

A logical line is one statement: it ends at the end of the line, unless a bracket is open or the
line ends with a backslash. Algorithm: one pass with one regular expression per mode; the mode
changes only after a property that takes bare text (`img=`, `exec=`, `network=`, `env=`), after
`bootstrapper`, and in brackets. A line in which something is wrong is reported, marked broken, and
skipped by the parser; the lines after it are not affected. Source: docs/tdl.md, "Text".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tdl.ast import Span
from tdl.bounds import MAX_WORDS
from tdl.diagnostics import Sink
from tdl.words import MAX_NAME, RESERVED, STATEMENTS, TEXT_PROPERTIES


class Token(NamedTuple):
    """A word of the file. `type` is a terminal of grammar.lark; `col` counts from 1."""

    type: str
    text: str
    line: int
    col: int

    @property
    def span(self) -> Span:
        return Span(self.line, self.col, self.line, self.col + len(self.text))


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment from its `#` to the end of the line, and whether it has the line to itself."""

    text: str
    line: int
    alone: bool


@dataclass(slots=True)
class LogicalLine:
    """One statement's tokens, and the comments on its physical lines."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    broken: bool = False


_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
_SPACE = r"[ \t\u00a0]*"
_STRING = r"\"(?:[^\"\\\r\n]|\\[^\r\n])*\"|'(?:[^'\\\r\n]|\\[^\r\n])*'"
_CURLY_STRING = r"“[^“”\r\n]*”|‘[^‘’\r\n]*’"
_SHARED = rf"""
    (?P<STRING>{_STRING}|{_CURLY_STRING})
  | (?P<COMMENT>\#[^\r\n]*)
  | (?P<CONTINUE>\\[ \t]*(?:\r\n?|\n|\Z))
  | (?P<NEWLINE>\r\n?|\n)
  | (?P<SEMI>;)
"""
_PLAIN = re.compile(
    rf"""{_SPACE}(?:
    (?P<NAME>{_NAME})(?:(?P<KEY>{_SPACE}[+-]?=)|(?P<INSTANCE>\.[0-9]+(?![A-Za-z0-9_.])))?
  | (?P<DASH>--|—|–)
  | (?P<ARROW>->)
  | (?P<VALUE>[+-]?(?:[0-9]|\.[0-9])[\w.%/]*)
  | (?P<OPEN>\[)
  | (?P<CLOSE>\])
  | (?P<COMMA>,)
  | (?P<HYPHEN>[-‐‑−])
  | {_SHARED})""",
    re.VERBOSE,
)
# Bare text: an image, a program, a network. Quotes and brackets start something else.
_TEXT = re.compile(
    rf"""{_SPACE}(?:
    (?P<KEY_AHEAD>(?={_NAME}{_SPACE}=))
  | {_SHARED}
  | (?P<WORD>[^\s;\#\"'“”‘’\[\]\\]+))""",
    re.VERBOSE,
)
_ENV = re.compile(
    rf"""{_SPACE}(?:
    (?P<ENVITEM>[A-Za-z_][A-Za-z0-9_]*:(?:{_STRING}|{_CURLY_STRING}|[^\s;\#"'“”‘’]*))
  | (?P<KEY_AHEAD>(?={_NAME}{_SPACE}=))
  | {_SHARED}
  | (?P<WORD>[^\s;\#"'“”‘’\[\]\\]+))""",
    re.VERBOSE,
)
_ARRAY = re.compile(
    rf"{_SPACE}(?:(?P<CLOSE>\])|(?P<COMMA>,)|{_SHARED}|(?P<WORD>[^\s;,\#\"'“”‘’\[\]\\]+))",
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_CONTROLS = re.compile(_CONTROL.pattern + "+")
_SKIP = re.compile(r"[^\s#;,\[\]\"'=]+|(.)\1*", re.DOTALL)
_SEMI_AHEAD = re.compile(_SPACE + ";")
_STATEMENT_AHEAD = re.compile(rf"{_SPACE}(?:{'|'.join(sorted(STATEMENTS))})[ \t]+[^\s,\]]")
_SHOWN = 20  # characters of something unexpected that a message repeats


class _Scanner:
    """The state of one pass over a file."""

    def __init__(self, text: str, sink: Sink) -> None:
        self.text = text
        self.sink = sink
        self.lines: list[LogicalLine] = []
        self.current = LogicalLine()
        self.line = 1
        self.line_start = 0
        self.bracket: Token | None = None
        self.mode = _PLAIN

    def run(self) -> Iterator[LogicalLine]:
        text, end = self.text, len(self.text)
        pos = 1 if text.startswith("\ufeff") else 0
        self.line_start = pos
        while pos < end:
            match = self.mode.match(text, pos)
            if match is None:
                pos = self._unexpected(pos)
                if self.sink.full:
                    return
                continue
            pos = match.end()
            kind = match.lastgroup
            if kind == "NAME":
                self._name(match.group(kind), match.start(kind))
            elif kind == "KEY":
                self._key(match.group("NAME"), match.group(kind).strip(), match.start("NAME"), pos)
            elif kind == "VALUE" or kind == "DASH" or kind == "ARROW":
                self._add(kind, match.group(kind), match.start(kind))
            elif kind is not None:
                self._other(kind, match)
                if self.lines:
                    yield from self.lines
                    self.lines.clear()
            if len(self.current.tokens) > MAX_WORDS:
                self._too_long()
                return
        self._end_of_file()
        yield from self.lines

    def _too_long(self) -> None:
        message = f"a statement of more than {MAX_WORDS:,} words; the file is not read any further"
        self._error("TS0031", self.current.tokens[-1].span, message, "make several of it")

    def _add(self, kind: str, word: str, start: int) -> None:
        self.current.tokens.append(Token(kind, word, self.line, start - self.line_start + 1))

    def _name(self, word: str, start: int) -> None:
        kind = "NAME"
        if not self.current.tokens and word in STATEMENTS:
            kind = STATEMENTS[word]
            if kind == "BOOTSTRAPPER":
                self.mode = _TEXT
        elif word in RESERVED:
            kind = RESERVED[word]
        elif len(word) > MAX_NAME:
            column = start - self.line_start + 1
            span = Span(self.line, column, self.line, column + len(word))
            self._error("TS0006", span, f"a name has at most {MAX_NAME} characters")
        self._add(kind, word, start)

    def _key(self, name: str, op: str, start: int, end: int) -> None:
        kind = "TAGS" if name == "tags" and op == "=" else "KEY"
        self._add(kind, self.text[start:end], start)
        self.mode = _ENV if name == "env" else _TEXT if name in TEXT_PROPERTIES else _PLAIN

    def _other(self, kind: str, match: re.Match[str]) -> None:
        """The rarer tokens, and everything that is not a token."""
        start = match.start(kind)
        word = match.group(kind)
        if kind == "NEWLINE":
            self._newline(match.end())
        elif kind == "COMMENT":
            alone = not self.text[self.line_start : start].strip(" \t\u00a0")
            self.current.comments.append(Comment(word.rstrip(), self.line, alone))
        elif kind == "CONTINUE":
            self.line += 1
            self.line_start = match.end()
        elif kind == "INSTANCE":
            self._add(kind, match.group("NAME") + word, match.start("NAME"))
        elif kind == "KEY_AHEAD":
            self.mode = _PLAIN
        else:
            self._add(kind, word, start)
            self._after(kind, match.end())
            control = _CONTROL.search(word)
            if control is not None:
                column = start + control.start() - self.line_start + 1
                span = Span(self.line, column, self.line, column + 1)
                self._error("TS0002", span, *_describe(control.group()))

    def _after(self, kind: str, end: int) -> None:
        """Changes of mode. A list in env= goes on only after a semicolon."""
        if kind == "OPEN":
            self.bracket = self.current.tokens[-1]
            self.mode = _ARRAY
        elif kind == "CLOSE":
            self.bracket = None
            self.mode = _PLAIN
        elif self.mode is _TEXT:
            if kind in ("WORD", "STRING"):
                self.mode = _PLAIN
        elif self.mode is _ENV and kind != "SEMI" and not _SEMI_AHEAD.match(self.text, end):
            self.mode = _PLAIN

    def _newline(self, end: int) -> None:
        self.line += 1
        self.line_start = end
        if self.bracket is None:
            self._finish()
        elif _STATEMENT_AHEAD.match(self.text, end):
            self._unclosed(self.bracket)
            self._finish()

    def _finish(self) -> None:
        self.lines.append(self.current)
        self.current = LogicalLine()
        self.bracket = None
        self.mode = _PLAIN

    def _end_of_file(self) -> None:
        if self.bracket is not None:
            self._unclosed(self.bracket)
        if self.current.tokens or self.current.comments or self.current.broken:
            self._finish()

    def _unclosed(self, bracket: Token) -> None:
        self._error("TS0004", bracket.span, "this '[' is never closed", "add the missing ']'")

    def _error(self, code: str, span: Span, message: str, hint: str | None = None) -> None:
        self.current.broken = True
        self.sink.error(code, span, message, hint)

    def _unexpected(self, pos: int) -> int:
        """Reports what no token begins with, and returns where to go on."""
        text = self.text
        while pos < len(text) and text[pos] in " \t\u00a0":
            pos += 1
        if pos == len(text):
            return pos
        column = pos - self.line_start + 1
        char = text[pos]
        if char in "\"'“‘":
            return self._endless(pos, column)
        if self.mode in (_TEXT, _ENV):
            # Bare text was expected and is not there; the parser says so.
            self.mode = _PLAIN
            return pos
        controls = _CONTROLS.match(text, pos)
        found = controls or _SKIP.match(text, pos)
        stop = found.end() if found else pos + 1
        span = Span(self.line, column, self.line, column + stop - pos)
        self._error("TS0002", span, *_describe(text[pos:stop]))
        return stop

    def _endless(self, pos: int, column: int) -> int:
        """Reports a string that does not end on its line, and returns where to go on.

        Lines added by a backslash at the end are not read: their errors would follow from this one.
        """
        text, quote, line = self.text, _closing(self.text[pos]), self.line
        first = stop = self._line_end(pos)
        while text[self.line_start : stop].rstrip(" \t").endswith("\\") and stop < len(text):
            self.line += 1
            self.line_start = stop + (2 if text.startswith("\r\n", stop) else 1)
            stop = self._line_end(self.line_start)
        if quote in text[first:stop]:
            message = "a string does not go on in the next line"
            hint = (
                "write it on one line; a '\\' continues a statement between words, not in a string"
            )
        else:
            message, hint = "this string has no end", f"close it with {quote}"
        self._error("TS0003", Span(line, column, line, column + first - pos), message, hint)
        return stop

    def _line_end(self, pos: int) -> int:
        found = _NEWLINE.search(self.text, pos)
        return found.start() if found else len(self.text)


def _closing(char: str) -> str:
    return {"“": "”", "‘": "’"}.get(char, char)


def _describe(found: str) -> tuple[str, str | None]:
    char = found[0]
    if _CONTROL.match(char):
        if len(found) > 1:
            return f"{len(found):,} control characters, from U+{ord(char):04X} on", "remove them"
        return f"control character U+{ord(char):04X}", "remove it"
    if char == "=":
        return "'=' without a property before it", "write name=value"
    if char == "\\":
        return "a backslash continues a statement only at the end of a line", None
    if char in "<>→←":
        return f"unexpected '{char}'", "a link is a--b, one direction of it a->b"
    if char.isspace():
        return f"unusual white space U+{ord(char):04X}", "use a plain space"
    if char == ".":
        return "a dot is for instances, such as server.3", None
    if char == "%":
        return "unexpected '%'", "a percentage is written without a space: 50%"
    shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"
    if char.isalpha():
        return (
            f"unexpected '{shown}'",
            "names have only the letters a to z and A to Z, digits, '_' and '-'",
        )
    return f"unexpected '{shown}'", None


def source_lines(text: str | bytes) -> list[str]:
    """The physical lines of a source, as spans count them."""
    source = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _NEWLINE.split(source.removeprefix("\ufeff"))


def logical_lines(text: str, sink: Sink) -> Iterator[LogicalLine]:
    """Splits a file into statements of tokens, one after the other. Blank lines become empty ones.

    What is wrong goes to `sink`, and marks its line as broken. Ends early when `sink` is full, or a
    statement is too long.
    """
    return _Scanner(text, sink).run()
