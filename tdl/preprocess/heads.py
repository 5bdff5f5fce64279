"""The lines that begin with let, param, for and include: what they say, or what is wrong there."""

from __future__ import annotations

import re
from typing import NamedTuple

from tdl.bounds import MAX_DEPTH
from tdl.building.builder import cover
from tdl.diagnostics import Sink
from tdl.preprocess import includes
from tdl.preprocess.includes import MATRICES, WAYS
from tdl.tokens.lexer import LogicalLine, Token
from tdl.tokens.words import MAX_NAME, RUN_VARIABLES

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANGE = re.compile(r"([^.]+)\.\.([^.]+)")
_ITEMS = ("VALUE", "NAME", "INSTANCE", "STRING", "MIXED")


class Let(NamedTuple):
    name: Token
    value: Token  # a STRING or a WORD


class For(NamedTuple):
    """`for NAME in FIRST..LAST step N {`, `for NAME < NAME in VALUE;VALUE {`; variables and all."""

    names: tuple[Token, ...]
    items: tuple[Token, ...]
    step: Token | None

    def bounds(self, item: Token) -> tuple[str, str] | None:
        """First and last of an item that is a range of numbers."""
        found = _RANGE.fullmatch(item.text) if item.type in ("VALUE", "MIXED") else None
        return (found[1], found[2]) if found else None

    @property
    def only(self) -> tuple[str, str] | None:
        """First and last, of a loop of one name over one range of all its numbers."""
        plain = len(self.names) == len(self.items) == 1 and self.step is None
        return self.bounds(self.items[0]) if plain else None


def let(line: LogicalLine, sink: Sink) -> Let | None:
    """Of a `let` or a `param`."""
    tokens = line.tokens
    if len(tokens) < 2 or tokens[1].type != "KEY" or not tokens[1].text.endswith("="):
        _wrong(tokens, sink)
        return None
    name = tokens[1].text[:-1].rstrip(" \t\u00a0")
    if name[-1] in "+-":
        _wrong(tokens, sink)
        return None
    if len(tokens) != 3 or tokens[2].type not in ("STRING", "WORD"):
        word = tokens[0].text
        message = f"{word} takes one value"
        span = tokens[1].span if len(tokens) < 3 else cover(tokens[2], tokens[-1])
        sink.error("TS0140", span, message, f'quote one of several words: {word} {name} = "…"')
        return None
    token = tokens[1]._replace(text=name)
    return Let(token, tokens[2]) if _is_variable(token, sink) else None


def _wrong(tokens: list[Token], sink: Sink) -> None:
    span = cover(tokens[0], tokens[-1])
    word = tokens[0].text
    sink.error("TS0140", span, f"a {word} has a name and a value", f"write {word} NAME = VALUE")


def loop(line: LogicalLine, sink: Sink) -> For | None:
    tokens = line.tokens
    at = next((at for at, token in enumerate(tokens) if token.text == "in" and at > 1), 0)
    names, items, step = tokens[1:at:2], tokens[at + 1 : -1], None
    if [token.text for token in items[-2:-1]] == ["step"]:
        *items, _, step = items
    if (
        at % 2 == 0
        and 0 < len(names) <= MAX_DEPTH
        and all(token.type == "NAME" for token in names)
        and all(token.type == "OP" for token in tokens[2:at:2])
        and len(items) % 2 == 1
        and all(token.type in _ITEMS for token in items[::2])
        and all(token.type == "SEMI" for token in items[1::2])
        and tokens[-1].text == "{"
    ):
        found = For(tuple(names), tuple(items[::2]), step)
        return found if all(_is_variable(name, sink) for name in names) else None
    span = cover(tokens[0], tokens[-1])
    message = "a for has a name, and a range of whole numbers or a list of values"
    hint = "write for i in 0..9 {, for i in 0..60 step 15 {, for c in paris;oslo { or "
    hint += "for i < j in 0..3 {, and } after the lines of the loop"
    sink.error("TS0143", span, message, hint)
    return None


def _is_variable(name: Token, sink: Sink) -> bool:
    """Whether this may be the name of a variable."""
    text = name.text
    if text.startswith(RUN_VARIABLES):
        message = f"'{text}' is a variable that the run sets"
        sink.error("TS0142", name.span, message, f"names must not begin with {RUN_VARIABLES}")
        return False
    if len(text) > MAX_NAME or not _VARIABLE.fullmatch(text):
        hint = "write '_' instead of '-'" if "-" in text else None
        message = f"'{text}' is no name for a variable"
        sink.error("TS0142", name.span, message, hint or f"it has at most {MAX_NAME} characters")
        return False
    return True


def include(line: LogicalLine, sink: Sink) -> list[Token] | None:
    """The names of the files, each a STRING or a WORD: one, or several that another tool reads as
    one. `matrix` takes one, and behind it a word of WAYS."""
    tokens = line.tokens[1:]
    if line.tokens[0].text == "matrix":
        return _matrix(line, sink)
    texts = all(token.type in ("STRING", "WORD") for token in tokens)
    if tokens and texts and (len(tokens) == 1 or all(map(is_foreign, tokens))):
        return tokens
    span = cover(line.tokens[0], line.tokens[-1])
    sink.error("TS0150", span, "include takes the name of one file", 'write include "FILE"')
    return None


def _matrix(line: LogicalLine, sink: Sink) -> list[Token] | None:
    tokens = line.tokens[1:]
    texts = bool(tokens) and tokens[0].type in ("STRING", "WORD")
    if texts and len(tokens) == 2 and tokens[1].text in WAYS:
        if tokens[0].text.strip("\"'“”‘’").endswith(MATRICES):
            return tokens
        message, hint = (
            "a matrix is a CSV or a JSON file",
            f"its name ends in {' or '.join(MATRICES)}",
        )
        sink.error("TS0150", tokens[0].span, message, hint)
        return None
    span = cover(line.tokens[0], line.tokens[-1])
    message = "matrix takes the name of a file, and whether it has round trips or one way"
    sink.error("TS0150", span, message, 'write matrix "FILE.csv" rtt, or … one-way')
    return None


def is_foreign(name: Token) -> bool:
    """Whether it names a file that is no TDL."""
    return includes.is_foreign(name.text.strip("\"'“”‘’"))
