"""What every rule of the grammar shares: spans, names, numbers, and reporting what is wrong.

The tree is built while a statement is parsed: the parser calls the actions in
tdl/building/static.py and tdl/building/dynamic.py. A wrong value is reported and replaced by a
harmless one, so that the rest of the statement is checked too; the parser drops statements that had
errors.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean, misspelt
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    BRIDGE_PROPERTIES,
    FLAGS,
    LINK_ALIASES,
    LINK_PROPERTIES,
    ONLY,
    OTHER_PROPERTIES,
    SERVICE_ALIASES,
    SERVICE_PROPERTIES,
)
from tdl.values import ValueProblem


class WrittenProperty(NamedTuple):
    """`name=value`, `tags=…` or a flag as written. `op` is '=', '+=', '-=' or '' for a flag."""

    name: str
    op: str
    key: Token
    values: list[Token]
    array: bool = False

    @property
    def span(self) -> ast.Span:
        return cover(self.key, self.values[-1] if self.values else self.key)

    @property
    def name_span(self) -> ast.Span:
        return self.key.part(0, len(self.key_name))

    @property
    def key_name(self) -> str:
        return self.key.text.rstrip("+-= \t\u00a0")


_NOT_TAGS = (*FLAGS, *LINK_PROPERTIES, *SERVICE_PROPERTIES)
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "$": "$"}
_ESCAPE = re.compile(r"\\(.)")


def cover(first: Token, last: Token) -> ast.Span:
    """The span from the beginning of one token to the end of another."""
    return first.span.over(first.line, first.col, last.line, last.end_col)


def join_spans(spans: Iterable[ast.Span]) -> ast.Span:
    """The smallest span that contains all of these."""
    found = list(spans)
    start = min((s.line, s.col) for s in found)
    end = max((s.end_line, s.end_col) for s in found)
    return found[0].over(*start, *end)


def name(token: Token) -> ast.Name:
    return ast.Name(token.text, token.span)


class Builder:
    """The actions that lists and properties need. One builder serves a whole file."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.tokens: list[Token] = []
        self.reads_as = ""  # whose words these are: what `dialect` says
        self.one_way: ast.Span | None = (
            None  # the first link that a dialect would have read otherwise
        )
        self.errors = 0

    # --- lists ---

    def leaf(self, token: Token) -> Token:
        return token

    def one(self, item: Any) -> list[Any]:
        return [item]

    def none(self) -> list[Any]:
        return []

    def more(self, items: list[Any], item: Any) -> list[Any]:
        items.append(item)
        return items

    def more_after(self, items: list[Any], _separator: Token, item: Any) -> list[Any]:
        items.append(item)
        return items

    def more_spaced(self, names: list[Token], item: Token) -> list[Token]:
        """A tag after a space: it may be a misspelt option that follows the list."""
        meant = misspelt(item.text, _NOT_TAGS)
        if meant is not None:
            message = f"'{item.text}' is read as a tag here"
            hint = f"did you mean '{meant}'? To have a tag of that name separate it with ';'"
            self.sink.warning("TS0913", item.span, message, hint)
        names.append(item)
        return names

    # --- properties ---

    def scalars(self, tokens: list[Token]) -> tuple[bool, list[Token]]:
        return False, tokens

    def empty_array(self, _open: Token, close: Token) -> tuple[bool, list[Token]]:
        return True, [close]

    def array(self, _open: Token, items: list[Token], close: Token) -> tuple[bool, list[Token]]:
        items.append(close)
        return True, items

    def keyed(self, key: Token, value: tuple[bool, list[Token]]) -> WrittenProperty:
        head = key.text.rstrip("=")
        op = head[-1] + "=" if head[-1] in "+-" else "="
        return WrittenProperty(head.rstrip("+- \t\u00a0"), op, key, value[1], value[0])

    def flag(self, word: Token) -> WrittenProperty:
        return WrittenProperty(word.text, "", word, [])

    def tags(self, key: Token, names: list[Token]) -> WrittenProperty:
        return WrittenProperty("tags", "=", key, names)

    # --- what the statements use ---

    @property
    def whole_span(self) -> ast.Span:
        return cover(self.tokens[0], self.tokens[-1])

    def error(self, code: str, span: ast.Span, message: str, hint: str | None = None) -> None:
        self.errors += 1
        self.sink.error(code, span, message, hint)

    def number(self, token: Token, convert: Callable[[str], int], default: int = 0) -> int:
        """The value of a VALUE token, or `default` after a report."""
        try:
            return convert(token.text)
        except ValueProblem as problem:
            self.error(problem.code, token.span, problem.message, problem.hint)
            return default

    def single(self, prop: WrittenProperty, kinds: tuple[str, ...], wanted: str) -> Token | None:
        """The one token that a property's value consists of, if it is of one of these kinds."""
        token = prop.values[0]
        if prop.array or len(prop.values) > 1:
            span = cover(token, prop.values[-1])
            self.error("TS0015", span, f"{prop.key_name} takes one value: {wanted}")
            return None
        if token.type not in kinds:
            hint = None
            if token.type == "STRING" and "VALUE" in kinds:
                hint = "leave the quotes out"
            message = f"{prop.key_name} takes {wanted}, not {shown(token)}"
            self.error("TS0015", token.span, message, hint)
            return None
        return token

    def measure(
        self, prop: WrittenProperty, convert: Callable[[str], int], wanted: str, default: int = 0
    ) -> int:
        """A property whose value is one number."""
        token = self.single(prop, ("VALUE",), wanted)
        return default if token is None else self.number(token, convert, default)

    def collect(
        self,
        properties: list[WrittenProperty],
        what: str,
        known: tuple[str, ...],
        aliases: dict[str, str],
        flags: tuple[str, ...] = (),
    ) -> dict[str, WrittenProperty]:
        """The properties by their canonical names; reports unknown and repeated ones."""
        found: dict[str, WrittenProperty] = {}
        for prop in properties:
            canonical = aliases.get(prop.name, prop.name)
            if canonical not in (flags if not prop.op else known):
                self._unknown_property(prop, what, (*known, *flags), tuple(aliases))
            elif canonical in found:
                other = found[canonical].key_name
                again = "" if other == prop.key_name else f" (as {other})"
                message = f"{prop.key_name} is given twice{again}"
                self.error("TS0013", prop.name_span, message, "keep one of them")
            elif prop.op in ("+=", "-="):
                message = f"'{prop.op}' changes a value, and there is none yet"
                self.error("TS0009", prop.key.span, message, f"write {prop.key_name}=…")
            else:
                found[canonical] = prop
        return found

    def _unknown_property(
        self, prop: WrittenProperty, what: str, known: tuple[str, ...], aliases: tuple[str, ...]
    ) -> None:
        other = OTHER_PROPERTIES.get(prop.key_name)
        hint = did_you_mean(other if other in known else prop.key_name, (*known, *aliases))
        owner = _owner(prop.name)
        if owner and owner != what:
            hint = f"'{prop.name}' is for a {owner}"
        elif prop.name == ONLY:
            hint = "write 'at 0s a--b set loss=10% only=tcp:5432'"
        elif prop.op and prop.key_name in FLAGS:
            hint = f"'{prop.key_name}' stands alone, without a value"
        elif hint is None:
            hint = f"a {what} has: {', '.join(known)}"
        kind = "property" if prop.op else "option"
        message = f"a {what} has no {kind} '{prop.key_name}'"
        self.error("TS0012", prop.name_span, message, hint)

    def names(self, tokens: list[Token], what: str) -> tuple[ast.Name, ...]:
        """Names of a list; a repeated one is a warning."""
        seen: dict[str, ast.Name] = {}
        for token in tokens:
            if token.text in seen:
                self.sink.warning("TS0907", token.span, f"{what} '{token.text}' stands here twice")
            else:
                seen[token.text] = name(token)
        return tuple(seen.values())

    def named_file(self, token: Token) -> str:
        """The file that is named at a place, which is beside the file that this place is in; as the
        text that was read first would call it."""
        name, folder = self.text(token), posixpath.dirname(token.file)
        if not folder or not name.strip("./"):
            return name
        return posixpath.normpath(posixpath.join(folder, name))

    def text(self, token: Token) -> str:
        """What a STRING or bare word means."""
        if token.type != "STRING":
            return token.text
        inner = token.text[1:-1]
        if token.text[0] in "“‘" or "\\" not in inner:
            return inner
        for match in _ESCAPE.finditer(inner):
            if match[1] not in _ESCAPES:
                span = token.part(1 + match.start(), 3 + match.start())
                message = f"unknown escape '{match[0]}' in a string"
                self.error("TS0005", span, message, "double the backslash to mean itself")
        return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), inner)


def quotes_in_quotes(tokens: Sequence[Token]) -> int | None:
    """Where a word follows a string without a space: the first such place, if there is any."""
    for index, (before, token) in enumerate(pairwise(tokens), 1):
        touches = before.line == token.line and before.end_col == token.col
        if before.type == "STRING" and touches and token.type not in ("SEMI", "COMMA", "CLOSE"):
            return index
    return None


def _owner(word: str) -> str | None:
    """The kind of statement that has this property."""
    if word in LINK_PROPERTIES or word in LINK_ALIASES or word == "symmetric":
        return "link"
    if word in SERVICE_PROPERTIES or word in SERVICE_ALIASES or word in FLAGS:
        return "service"
    return "bridge" if word in BRIDGE_PROPERTIES else None


def shown(token: Token) -> str:
    """A token as messages quote it."""
    text = token.text if len(token.text) <= 40 else token.text[:37] + "…"
    return text if token.type == "STRING" else f"'{text}'"
