"""Another name for something: where it stands in a text and those that it includes.

Input: a text that compiles. Names of the syntax tree have the places where they are written; where
a variable stands for one, the value of its `let` or `for` is the place. Variables are found in the
words themselves, each in the block that defines it. Nothing is guessed: the texts with the new name
are read again, and have to say the same (`same_meaning`), else nothing is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

from tdl import ast
from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.parser import Partial
from tdl.preprocess import arithmetic
from tdl.preprocess.blocks import Item, LoopBlock, blocks, is_for, is_node
from tdl.preprocess.includes import MATRICES, is_foreign
from tdl.preprocess.variables import VARIABLE
from tdl.tokens import patterns
from tdl.tokens.lexer import LogicalLine, Token, logical_lines
from tdl.tokens.words import MAX_NAME
from tstorm.lsp.known_names import TAG
from tstorm.lsp.known_names import VARIABLE as A_VARIABLE

ELEMENT, FIGURE = "element", "figure"
_SAID = {ELEMENT: "name", FIGURE: "figure", TAG: "tag", A_VARIABLE: "variable"}
_NO_NAMES = ("options", "prop", "interfaces", "router", "gateway")  # fields with words
_DECLARING = (ast.ServiceStatement, ast.Bridges, ast.NodeStatement, ast.Bottleneck, ast.Figure)
_PROGRAMS = ("exec", "command", "entrypoint", "env", "setup", "ready")  # texts that may name hosts
_NAMES = {A_VARIABLE: r"[A-Za-z_][A-Za-z0-9_]*"}
_MAX_TOLD = 5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOWHERE = re.compile(r"(?!)")
_IN_STRING = re.compile(rf"\\.|{VARIABLE.pattern}")


class NotRenamedError(Exception):
    """Why something has no other name now."""


class Symbol(NamedTuple):
    """What has a name. `scope`: of a part its machine, of a variable where its block begins."""

    kind: str
    text: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class NameUse:
    """`span` is that of the name alone, or, not `literal`, of the words that stand for it."""

    symbol: Symbol
    span: Span
    literal: bool = True
    declares: bool = False


@dataclass(slots=True)
class _Written:
    """What the words of the texts have that the tree does not."""

    found: list[NameUse] = field(default_factory=list)
    values: list[tuple[Symbol, Token]] = field(default_factory=list)  # of let, param and for
    programs: list[Token] = field(default_factory=list)  # texts in which a name may stand


class RenamableNames:
    """Of a text and those that it includes. `lines` has the physical lines of a file."""

    def __init__(
        self, partial: Partial, texts: Mapping[str, str], lines: Callable[[str], Sequence[str]]
    ) -> None:
        self._lines = lines
        self._words = _Written()
        for file, text in texts.items():
            if not _is_foreign(file):
                _Words(self._words, file).read(blocks(logical_lines(text, Sink(), file), Sink()))
        self._all = [*self._words.found, *self._of_tree(partial.file)]

    def at(self, file: str, line: int, col: int) -> NameUse:
        """What is called something there. NotRenamedError."""
        there = [one for one in self._all if _covers(one.span, file, line, col)]
        literal = [one for one in there if one.literal]
        if len({one.symbol for one in literal}) == 1:
            return self._given(literal[0])
        if not there:
            raise NotRenamedError("no name stands here")
        names = sorted({one.symbol.text for one in there})
        words = self._said(there[0].span)
        shown = ", ".join(names[:3]) + (", …" if names[3:] else "")
        raise NotRenamedError(f"{words!r} stands for {shown}: rename what these are made of")

    def _given(self, one: NameUse) -> NameUse:
        """Unless no text gives this name. NotRenamedError."""
        mine = [other for other in self._all if other.symbol == one.symbol]
        foreign = next((other.span for other in mine if _is_foreign(other.span.file)), None)
        if foreign is not None:
            where = ast.said(foreign.place)
            raise NotRenamedError(f"another tool's file has this name, too: {where}")
        if one.symbol.kind != TAG and not any(other.declares for other in mine):
            raise NotRenamedError(f"no line declares {one.symbol.text!r}")
        return one

    def places(self, symbol: Symbol, new: str) -> dict[str, list[Span]]:
        """Where the new name is to be put, by file. NotRenamedError."""
        self._may_be_called(symbol, new)
        found = {
            _plain(span)
            for one in self._all
            if one.symbol == symbol
            for span in ([one.span] if one.literal else self._values_of(one))
        }
        by_file: dict[str, list[Span]] = {}
        for span in sorted(found):
            by_file.setdefault(span.file, []).append(span)
        return by_file

    def mentions(self, symbol: Symbol, renamed: Mapping[str, Sequence[Span]]) -> list[str]:
        """Where texts for programs have the name of an element, which stay as they are."""
        if symbol.kind != ELEMENT:
            return []
        word = _whole(symbol.text)
        places = {
            one.span.place
            for one in self._words.programs
            if word.search(one.text)
            and not any(_within(span, one) for span in renamed.get(one.file, ()))
        }
        told = [ast.said(place) for place in sorted(places)]
        return [*told[:_MAX_TOLD], *(["…"] if told[_MAX_TOLD:] else [])]

    def _may_be_called(self, symbol: Symbol, new: str) -> None:
        pattern = _NAMES.get(symbol.kind, patterns.NAME)
        what = _SAID[symbol.kind]
        if not re.fullmatch(pattern, new, re.ASCII) or len(new) > MAX_NAME:
            raise NotRenamedError(f"{new[:MAX_NAME]!r} is no {what} of TDL")
        if any(one.symbol == symbol._replace(text=new) for one in self._all):
            raise NotRenamedError(f"there is a {what} {new!r} already")

    # --- names of the tree ---

    def _of_tree(self, file: ast.File) -> Iterator[NameUse]:
        for name, kind, machine, declares in _names(file):
            for symbol, start in _parts(kind, name.text, machine):
                span, written = name.span, self._said(name.span)
                literal = written.startswith(name.text) and not _is_foreign(span.file)
                if literal:
                    col = span.col + start
                    span = span.over(span.line, col, span.line, col + len(symbol.text))
                yield NameUse(symbol, span, literal, declares)

    def _said(self, span: Span) -> str:
        """What is written there."""
        lines = self._lines(span.file)
        line = lines[span.line - 1] if 1 <= span.line <= len(lines) else ""
        return line[span.col - 1 : span.end_col - 1]

    def _values_of(self, one: NameUse) -> Iterator[Span]:
        """The values of the variables that stand for a name. NotRenamedError if there are none."""
        words, text = self._said(one.span), one.symbol.text
        named = {name for match in VARIABLE.finditer(words) for name, _ in _named(match)}
        found = False
        for symbol, token in self._words.values:
            value = token.text.strip("\"'“”‘’")
            if symbol.text in named and (value == text or value.startswith(f"{text}.")):
                start = token.text.find(text)
                yield token.part(start, start + len(text))
                found = True
        if not found:
            where = ast.said(one.span.place)
            message = f"{words!r} in {where} stands for {text!r}: such a name is not renamed"
            raise NotRenamedError(message)


class _Words:
    """Reads the lines of one file."""

    def __init__(self, into: _Written, file: str) -> None:
        self._into, self._file = into, file

    def read(self, items: Iterable[Item]) -> None:
        self._block(items, {}, "", deep=False)

    def _block(
        self, items: Iterable[Item], known: dict[str, str], machine: str, *, deep: bool
    ) -> None:
        """`known` has the scopes of the variables that blocks around define."""
        for item in items:
            if isinstance(item, LoopBlock):
                self._line(item.head, known, machine)
                inner, part_of = dict(known), machine
                if is_for(item.head):
                    self._loop(item.head.tokens, inner)
                elif is_node(item.head) and len(item.head.tokens) > 1:
                    part_of = item.head.tokens[1].text
                self._block(item.body, inner, part_of, deep=True)
                continue
            self._line(item, known, machine)
            if item.tokens and item.tokens[0].type in ("LET", "PARAM") and len(item.tokens) > 2:
                key = item.tokens[1]
                name = key.text.rstrip("= \t\u00a0")
                if deep:
                    known[name] = _scope(key)
                symbol = Symbol(A_VARIABLE, name, known.get(name, ""))
                self._into.found.append(NameUse(symbol, key.part(0, len(name)), declares=True))
                self._into.values.append((symbol, item.tokens[2]))

    def _loop(self, tokens: Sequence[Token], inner: dict[str, str]) -> None:
        names, rest = [], list(tokens[1:])
        while rest and rest[0].text != "in":
            token = rest.pop(0)
            if token.type == "NAME":
                names.append(token)
        for token in names:
            inner[token.text] = _scope(token)
            symbol = Symbol(A_VARIABLE, token.text, inner[token.text])
            self._into.found.append(NameUse(symbol, token.span, declares=True))
            self._into.values += [(symbol, one) for one in rest[1:] if one.type != "SEMI"]

    def _line(self, line: LogicalLine, known: dict[str, str], machine: str) -> None:
        first, key = line.tokens[0].type if line.tokens else "", ""
        for token in line.tokens:
            if token.type in ("KEY", "TAGS"):
                key = token.text.rstrip("+-= \t\u00a0")
            if "$" in token.text:
                self._variables(token, known)
            elif key == "after" and token.type in ("WORD", "STRING"):
                self._after(token, machine)
            if token.type in ("WORD", "STRING", "ENVITEM") and (
                key in _PROGRAMS or first in ("EXPECT", "WHEN", "FIGURE", "LET", "PARAM")
            ):
                self._into.programs.append(token)

    def _variables(self, token: Token, known: Mapping[str, str]) -> None:
        quoted = token.type == "STRING" or (token.type == "ENVITEM" and token.text[-1] in "\"'")
        for match in (_IN_STRING if quoted else VARIABLE).finditer(token.text):
            for name, start in _named(match):
                symbol = Symbol(A_VARIABLE, name, known.get(name, ""))
                span = token.part(start, start + len(name))
                self._into.found.append(NameUse(symbol, span))

    def _after(self, token: Token, machine: str) -> None:
        """An item of after=, which the tree has as text."""
        quote = 1 if token.type == "STRING" else 0
        text = token.text.strip("\"'“”‘’").partition(":")[0]
        for symbol, start in _parts(ELEMENT, text, machine):
            at = quote + start
            self._into.found.append(NameUse(symbol, token.part(at, at + len(symbol.text))))


def _scope(token: Token) -> str:
    return f"{token.file}:{token.line}:{token.col}"


def _named(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The variables in what VARIABLE has found, and where they begin."""
    if match[1]:
        yield match[1], match.start(1)
    elif match[2]:
        known = arithmetic.names(match[2])
        for word in _WORD.finditer(match[2]):
            if word[0] in known:
                yield word[0], match.start(2) + word.start()


def _is_foreign(file: str) -> bool:
    return bool(file) and (is_foreign(file) or file.endswith(MATRICES))


def _plain(span: Span) -> Span:
    """Whichever round of a loop it is."""
    return Span(span.line, span.col, span.end_line, span.end_col, span.file)


def _covers(span: Span, file: str, line: int, col: int) -> bool:
    return span.file == file and span.line == line and span.col <= col <= span.end_col


def _within(span: Span, token: Token) -> bool:
    return span.line == token.line and token.col <= span.col < token.end_col


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?<!\w-){re.escape(word)}(?!\w)(?!-\w)")


def _names(
    node: object, label: str = "", machine: str = "", owner: object = None
) -> Iterator[tuple[ast.Name, str, str, bool]]:
    """Of a tree: each name, its kind, the machine whose block it stands in, whether it declares."""
    if isinstance(node, ast.Name):
        kind = TAG if label == "tags" else FIGURE if isinstance(owner, ast.Figure) else ELEMENT
        declares = label in ("name", "names") and isinstance(
            owner, (*_DECLARING, ast.LinkStatement)
        )
        yield node, kind, machine, declares
    elif isinstance(node, tuple):
        for one in node:
            yield from _names(one, label, machine, owner)
    elif is_dataclass(node) and not isinstance(node, Span):
        for one in fields(node):
            if one.name not in _NO_NAMES:
                where = _machine(node, one.name) or machine
                yield from _names(getattr(node, one.name), one.name, where, node)


def _machine(node: object, field_name: str) -> str:
    """The machine whose parts a field of the tree names; '' for none."""
    is_body = field_name == "body"
    return node.name.text if is_body and isinstance(node, ast.NodeStatement) else ""


def _parts(kind: str, text: str, machine: str) -> Iterator[tuple[Symbol, int]]:
    """The names that a name is made of, and where they begin: `sat.3.iphy` is that of a machine
    and that of its part."""
    if kind != ELEMENT:
        yield Symbol(kind, text), 0
        return
    start, scope = 0, machine
    for word in text.split("."):
        if not word.isdecimal():
            yield Symbol(ELEMENT, word, scope), start
            scope = scope or word
        start += len(word) + 1


# --- whether texts say the same ---


def same_meaning(before: ast.File, after: ast.File, symbol: Symbol, new: str) -> bool:
    """Whether the second is the first with another name. Where a variable has put the old name into
    a text for programs, the new one is there now."""
    renamed, found = _meaning(before, symbol, new), _meaning(after, symbol, symbol.text)
    word = _NOWHERE if symbol.kind == A_VARIABLE else _whole(symbol.text)
    return _agree(renamed, found, word, new)


def _meaning(node: Any, symbol: Symbol, new: str, label: str = "", machine: str = "") -> Any:
    """A tree without places, in which a symbol has the new name."""
    if isinstance(node, Span):
        return None
    if isinstance(node, ast.Name):
        kind = TAG if label == "tags" else FIGURE if label == "figure" else ELEMENT
        return _called(kind, node.text, machine, symbol, new)
    if isinstance(node, ast.Only):
        ends = (node.sources, node.dests)
        named = (sorted(repr(_meaning(one, symbol, new)) for one in end) for end in ends)
        return (node.protocols, *named)
    if isinstance(node, tuple):
        if label == "options":
            return tuple(_option(one, symbol, new, machine) for one in node)
        return tuple(_meaning(one, symbol, new, label, machine) for one in node)
    if not is_dataclass(node):
        return node
    inner = []
    for one in fields(node):
        word = "figure" if isinstance(node, ast.Figure) and one.name == "name" else one.name
        where = _machine(node, one.name) or machine
        value = getattr(node, one.name)
        if one.name in _NO_NAMES and isinstance(value, ast.Name):
            inner.append(value.text)
        else:
            inner.append(_meaning(value, symbol, new, word, where))
    return (type(node).__name__, *inner)


def _option(one: tuple[ast.Name, str], symbol: Symbol, new: str, machine: str) -> Any:
    name, value = one
    if name.text != "after":
        return name.text, value
    items = (item.partition(":") for item in value.split(";"))
    return tuple((_called(ELEMENT, text, machine, symbol, new), how) for text, _, how in items)


def _called(kind: str, text: str, machine: str, symbol: Symbol, new: str) -> str:
    found = text
    for part, start in reversed(list(_parts(kind, text, machine))):
        if part == symbol:
            found = found[:start] + new + found[start + len(part.text) :]
    return found


def _agree(before: Any, after: Any, word: re.Pattern[str], new: str) -> bool:
    if isinstance(before, str) and isinstance(after, str):
        return before == after or word.sub(lambda _: new, before) == after
    if isinstance(before, (tuple, list)) and isinstance(after, (tuple, list)):
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(_agree(a, b, word, new) for a, b in pairs)
    return bool(before == after)
