"""Text to logical lines of tokens.

A logical line is one statement: it ends at the end of the line, unless a bracket is open or the
line ends with a backslash. Algorithm: one pass with one regular expression per mode; the mode
changes only after a property that takes bare text (`img=`, `exec=`, `files=`, `env=`, …), after
`bootstrapper`, `include`, `expect`, `when`, `figure NAME =` and `let NAME =`, and in brackets. The
braces of a loop and of a `when` end a line, too. A line in which something is wrong is reported,
marked broken, and skipped by the parser; the lines after it are not affected. Source: docs/tdl.md,
"Text".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tdl.ast import Span
from tdl.bounds import MAX_WORDS
from tdl.diagnostics import Sink
from tdl.tokens.expectwords import is_name, terminal
from tdl.tokens.patterns import (
    ARRAY,
    ENV,
    EXPECTING,
    EXPECTING_MIXED,
    HUNTING,
    LIST,
    LISTS,
    PLAIN,
    PLAIN_MIXED,
    SPACE,
    TEXT,
)
from tdl.tokens.words import (
    FLAGS_OF,
    LINK_PROPERTIES,
    LIST_PROPERTIES,
    MAX_NAME,
    MOBILITY_TEXTS,
    OTHER_PROPERTIES,
    RESERVED,
    SERVICE_PROPERTIES,
    STATEMENTS,
    TEXT_PROPERTIES,
)


class Token(NamedTuple):
    """A word of the file. `type` is a terminal of grammar.lark; `col` counts from 1.

    A word that a variable stands for has the place of what is written, which is `width` characters
    long (-1: as long as its text). `file` and `note` are those of its span.
    """

    type: str
    text: str
    line: int
    col: int
    width: int = -1
    file: str = ""
    note: str = ""

    @property
    def end_col(self) -> int:
        return self.col + (len(self.text) if self.width < 0 else self.width)

    @property
    def span(self) -> Span:
        return Span(self.line, self.col, self.line, self.end_col, self.file, self.note)

    def part(self, start: int, stop: int) -> Span:
        """The place of a part of its text; of a word that nobody wrote so, the whole place."""
        span = self.span
        if self.width >= 0:
            return span
        return span.over(self.line, self.col + start, self.line, self.col + stop)

    def within(self, kind: str, start: int) -> Token:
        """What it is from there on, as a token of another type."""
        col = self.col if self.width >= 0 else self.col + start
        return self._replace(type=kind, text=self.text[start:], col=col)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment from its `#` to the end of the line, and whether it has the line to itself."""

    text: str
    line: int
    alone: bool


class PlainLink(NamedTuple):
    """`link A--B latency=TIME` or `link A->B …` of a file with many: all words have one place."""

    a: str
    mark: str
    b: str
    latency: str
    span: Span

    def tokens(self) -> list[Token]:
        """As a text of these words has them."""
        at = self.span
        dash = "ARROW" if self.mark == "->" else "DASH"
        words = (("LINK", "link"), ("NAME", self.a), (dash, self.mark), ("NAME", self.b),
                 ("KEY", "latency="), ("VALUE", self.latency))  # fmt: skip
        width = max(1, at.end_col - at.col)
        return [Token(kind, word, at.line, at.col, width, at.file, at.note) for kind, word in words]


@dataclass(slots=True)
class LogicalLine:
    """One statement's tokens, and the comments on its physical lines. Of a `plain` link nobody has
    made them yet."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    broken: bool = False
    plain: PlainLink | None = None


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_CONTROLS = re.compile(_CONTROL.pattern + "+")
_SKIP = re.compile(r"[^\s#;,\[\]\"'=]+|(.)\1*", re.DOTALL)
_SEMI_AHEAD = re.compile(SPACE + ";")
_STATEMENT_AHEAD = re.compile(rf"{SPACE}(?:{'|'.join(sorted(STATEMENTS))})[ \t]+[^\s,\]]")
_COLON = re.compile(rf"{SPACE}:{SPACE}([^\s#;]*)")
_PROPERTIES = frozenset((*LINK_PROPERTIES, *SERVICE_PROPERTIES, *OTHER_PROPERTIES))
BLOCKS = ("FOR", "WHEN", "NODE", "HUNT")  # whose line a `{` ends
_SHOWN = 20  # characters of something unexpected that a message repeats


class _Scanner:
    """The state of one pass over a file."""

    def __init__(self, text: str, sink: Sink, file: str = "") -> None:
        self.text = text
        self.sink = sink
        self.file = file
        mixed = "$" in text or ".." in text
        self.usual = self.plain = PLAIN_MIXED if mixed else PLAIN
        self.hunting = 0  # braces that are open from that of a `hunt` on
        self.expecting = EXPECTING_MIXED if mixed else EXPECTING
        self.lines: list[LogicalLine] = []
        self.current = LogicalLine()
        self.line = 1
        self.line_start = 0
        self.bracket: Token | None = None
        self.mode = self.plain
        self.ended = False  # by a brace: what follows on this line is a statement of its own

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
            if self.ended and kind not in ("NEWLINE", "COMMENT", "CONTINUE"):
                self._finish()
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
        column = start - self.line_start + 1
        self.current.tokens.append(Token(kind, word, self.line, column, -1, self.file))

    def _name(self, word: str, start: int) -> None:
        kind = "NAME"
        tokens, end = self.current.tokens, start + len(word)
        known = terminal(tokens, word, self.text, end) if self.mode is self.expecting else None
        if known is not None:
            kind = known
        elif not tokens and word in STATEMENTS and not is_name(word, self.text, end):
            kind = STATEMENTS[word]
            if kind in ("BOOTSTRAPPER", "INCLUDE", "MOBILITY"):
                self.mode = TEXT
            elif kind in ("EXPECT", "WHEN"):
                self.mode = self.expecting
        elif word == "when" and self._after_start_or_quit():
            kind = "WHEN"
        elif word == "power" and self._behind_a_crash():
            kind = "POWER"
        elif word == "of" and self._behind_a_number():
            kind = "OF"
        elif word in RESERVED:
            kind = RESERVED[word]
        elif len(tokens) > 1 and word in FLAGS_OF.get(tokens[0].type, ()):
            kind = "FLAG"
        elif len(word) > MAX_NAME:
            span = self._span(start - self.line_start + 1, len(word))
            self._error("TS0006", span, f"a name has at most {MAX_NAME} characters")
        self._add(kind, word, start)

    def _after_start_or_quit(self) -> bool:
        """Elsewhere `when` may be a name."""
        before = [token.text for token in self.current.tokens]
        return before in (["start"], ["quit"])

    def _behind_a_crash(self) -> bool:
        """`db crash power`, `db crash 2 power`, `crash db power`; elsewhere it is a name."""
        found: list[str] = []
        for token in reversed(self.current.tokens):
            if token.text == "crash" and token.type == "COUNTED":
                before = self.current.tokens[: -len(found) - 1]
                named = bool(before) and before[-1].type in ("NAME", "INSTANCE", "MIXED")
                return found[:1] in (["VALUE"], ["NAME"], ["INSTANCE"], ["MIXED"]) or (
                    not found and named
                )
            if token.type in ("TAGS", "AND"):
                return False
            found.append(token.type)
        return False

    def _behind_a_number(self) -> bool:
        """`of` in `3 of tags=x`; behind a time it is a name."""
        before = [token.type for token in self.current.tokens[-2:]]
        return before[-1:] == ["VALUE"] and before[0] not in ("AT", "FROM", "TO")

    def _key(self, name: str, op: str, start: int, end: int) -> None:
        kind = "TAGS" if name == "tags" and op == "=" else "KEY"
        self._add(kind, self.text[start:end], start)
        first = self.current.tokens[0].type
        if first in ("LET", "PARAM"):
            self.mode = TEXT
        elif first == "FIGURE":
            self.mode = self.expecting
        elif name in LIST_PROPERTIES:
            self.mode = LIST
        elif first == "MOBILITY" and name in MOBILITY_TEXTS:
            self.mode = TEXT
        else:
            self.mode = ENV if name == "env" else TEXT if name in TEXT_PROPERTIES else self.plain

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
        elif kind == "INSTANCE" or kind == "LABEL":
            self._add(kind, match.group("NAME") + word, match.start("NAME"))
        elif kind == "KEY_AHEAD":
            self.mode = self.plain
        elif kind == "BRACE":
            self._brace(word, start)
        else:
            self._add(kind, word, start)
            self._after(kind, match.end())
            control = _CONTROL.search(word)
            if control is not None:
                column = start + control.start() - self.line_start + 1
                self._error("TS0002", self._span(column, 1), *_describe(control.group()))

    def _brace(self, word: str, start: int) -> None:
        """A `{` ends the line of a loop or a `when`, a `}` is a line by itself."""
        if word == "}" and self.current.tokens:
            self._finish()
        self._add("BRACE", word, start)
        if word == "}":
            self.hunting = max(self.hunting - 1, 0)
        elif self.hunting or self.current.tokens[0].type == "HUNT":
            self.hunting += 1
        self.plain = HUNTING if self.hunting else self.usual
        self.ended = word == "}" or self.current.tokens[0].type in BLOCKS
        if self.ended:
            self.mode = self.plain  # as any statement is read that begins on this line

    def _after(self, kind: str, end: int) -> None:
        """Changes of mode. A list goes on only after a semicolon."""
        if kind == "OPEN":
            self.bracket = self.current.tokens[-1]
            self.mode = ARRAY
        elif kind == "CLOSE":
            self.bracket = None
            self.mode = self.plain
        elif self.mode is TEXT:
            if kind in ("WORD", "STRING"):
                self.mode = self.plain
        elif self.mode in LISTS and kind != "SEMI" and not _SEMI_AHEAD.match(self.text, end):
            self.mode = self.plain

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
        self.mode = self.plain
        self.ended = False

    def _end_of_file(self) -> None:
        if self.bracket is not None:
            self._unclosed(self.bracket)
        if self.current.tokens or self.current.comments or self.current.broken:
            self._finish()

    def _unclosed(self, bracket: Token) -> None:
        self._error("TS0004", bracket.span, "this '[' is never closed", "add the missing ']'")

    def _span(self, column: int, width: int) -> Span:
        return Span(self.line, column, self.line, column + width, self.file)

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
        if self.mode is TEXT or self.mode in LISTS:
            # Bare text was expected and is not there; the parser says so.
            self.mode = self.plain
            return pos
        if char == ":" and self._colon():
            return pos + 1
        if char == "=" and [token.type for token in self.current.tokens] == ["FIGURE", "MIXED"]:
            name = self.current.tokens.pop()  # of a figure, with a variable in it
            self.current.tokens.append(name._replace(text=f"{name.text}="))
            self.mode = self.expecting
            return pos + 1
        if char == "<" and self.current.tokens and self.current.tokens[0].type == "FOR":
            self._add("OP", char, pos)
            return pos + 1
        controls = _CONTROLS.match(text, pos)
        found = controls or _SKIP.match(text, pos)
        stop = found.end() if found else pos + 1
        message, hint = _describe(text[pos:stop])
        if self.current.tokens and self.current.tokens[0].type == "WHEN":
            hint = hint or "a text stands in quotes"
        self._error("TS0002", self._span(column, stop - pos), message, hint)
        return stop

    def _colon(self) -> bool:
        """Reports a property as other languages write it, `latency: 1ms`, if it is one."""
        before = self.current.tokens[-1] if self.current.tokens else None
        if before is None or before.type not in ("NAME", "FLAG") or before.text not in _PROPERTIES:
            return False
        found = _COLON.match(self.text, self.line_start + before.end_col - 1)
        if found is None:
            return False
        hint = f"write {before.text}={found[1] or '…'}"
        self._error("TS0014", before.span, f"'{before.text}' needs a '=', not a ':'", hint)
        return True

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
        span = Span(line, column, line, column + first - pos, self.file)
        self._error("TS0003", span, message, hint)
        if self.current.tokens and self.current.tokens[0].type == "WHEN":
            brace = text[first - 1 : first]  # it was meant to open the block, which is there
            if brace == "{":
                self._add("BRACE", brace, first - 1)
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
    if char == "*":
        shown = found[: next((i for i, c in enumerate(found[1:], 1) if not c.isdecimal()), _SHOWN)]
        return f"unexpected '{shown}'", "sums and products stand in braces: ${i*15}"
    shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"
    if char.isalpha():
        return (
            f"unexpected '{shown}'",
            "names have only the letters a to z and A to Z, digits, '_' and '-'",
        )
    return f"unexpected '{shown}'", None


def source_lines(text: str | bytes, most: int = 0) -> list[str]:
    """The physical lines of a source, as spans count them. What is behind the first `most` is one
    more; 0: all of them."""
    source = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _NEWLINE.split(source.removeprefix("\ufeff"), most)


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[tuple[str, str], ...] | None:
    """Type and text of the tokens that a piece of a statement has; None if it cannot be one."""
    sink = Sink()
    scanner = _Scanner(text, sink)
    scanner.current.tokens.append(Token("NAME", "", 1, 1))  # no word of it begins a statement
    found = list(scanner.run())
    if sink.found or len(found) > 1 or any(line.comments for line in found):
        return None
    return tuple((token.type, token.text) for line in found for token in line.tokens[1:])


def expected_words(text: str, before: Sequence[Token]) -> tuple[tuple[str, str], ...] | None:
    """The same for a piece of an `expect` statement that has `before` in front of it."""
    sink = Sink()
    scanner = _Scanner(text, sink)
    scanner.current.tokens += before
    scanner.mode = scanner.expecting
    found = list(scanner.run())
    if sink.found or len(found) > 1 or any(line.comments for line in found):
        return None
    return tuple((token.type, token.text) for line in found for token in line.tokens[len(before) :])


def logical_lines(text: str, sink: Sink, file: str = "") -> Iterator[LogicalLine]:
    """Splits a file into statements of tokens, one after the other. Blank lines become empty ones.

    What is wrong goes to `sink`, and marks its line as broken. Ends early when `sink` is full, or a
    statement is too long. `file` is what spans call the text.
    """
    return _Scanner(text, sink, file).run()
