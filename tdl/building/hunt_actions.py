"""Builds a `hunt`: its first line, and the bounds in its block.

A line of the block has bounds that `;` divides. They are no sentences of the grammar: which words
follow depends on the first one, and a message that names the form of that bound says more than one
about the next token. Source: docs/tdl.md, "Hunts".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from tdl import ast, values
from tdl.bounds import MAX_DRIFT_PPB
from tdl.building.builder import cover, shown
from tdl.building.expect_actions import ExpectActions
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    HUNT_CLOCKS,
    HUNT_FAULTS,
    HUNT_KINDS,
    HUNT_LIMITS,
    HUNT_LINKS,
    HUNT_POWER,
)
from tdl.values import ValueProblem

ANY = "any"  # of whom a bound is, where nobody is named
MOST_FAULTS = 100  # of a storm
FORMS = {
    **{word: f"{word} any 2, {word} server.*" for word in HUNT_FAULTS},
    "latency": "latency 0..200ms",
    **{word: f"{word} 0..20%" for word in HUNT_LINKS[1:]},
    "clock": "clock ±1s",
    "drift": "drift ±200ppm",
    "at": "at most 4",
    "lasting": "lasting 100ms..5s",
    "quiet": "quiet 5s at the end, quiet 2s at the start",
}


class _WrongBoundError(Exception):
    """Reported already."""


class HuntActions(ExpectActions):
    """The action of the rule for hunts; and what stands in their blocks."""

    def hunt(self, _word: Token, _brace: Token) -> tuple[ast.Statement, ...]:
        return (ast.Hunt(self.whole_span),)

    def bounds(self, tokens: Sequence[Token]) -> tuple[ast.HuntBound, ...]:
        """Of a line of the block; those that are wrong are reported and left out."""
        found = []
        for part in _parts(tokens):
            with suppress(_WrongBoundError):
                found.append(_BoundReader(self, part).read())
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _BoundReader:
    """Of the words of one bound. _WrongBoundError after a report."""

    actions: HuntActions
    part: Sequence[Token]

    def read(self) -> ast.HuntBound:
        return self._limit() or self._kind()

    def _limit(self) -> ast.HuntBound | None:
        part = self.part
        words = [token.text for token in part]
        span = cover(part[0], part[-1])
        match words:
            case ["at", "most", _]:
                count = self._value(part[2], lambda text: values.whole(text, MOST_FAULTS))
                return ast.HuntBound("most", span, count=count)
            case ["lasting", _]:
                low, high = self._range(part[1], values.time)
                return ast.HuntBound("lasting", span, low=low, high=high)
            case ["quiet", _, "at", "the", "start" | "end" as end]:
                length = self._value(part[1], values.time)
                return ast.HuntBound("quiet", span, low=length, high=length, at=end)
        if words[0] in HUNT_LIMITS:
            self._form(part[-1] if len(part) > 1 else part[0])
        return None

    def _kind(self) -> ast.HuntBound:
        word, *rest = self.part
        if word.text not in HUNT_KINDS:
            known = (*HUNT_KINDS, *HUNT_LIMITS)
            hint = did_you_mean(word.text, known) or f"bounds: {', '.join(known)}"
            self._wrong("TS0340", word.span, f"a hunt has no bound {shown(word)}", hint)
        low = high = 0
        if word.text not in HUNT_FAULTS:
            if not rest or rest[0].type != "VALUE":
                self._form(rest[0] if rest else word)
            low, high = self._amounts(word.text, rest.pop(0))
        kind = word.text
        if kind == "crash" and rest and rest[-1].text == "power":
            rest.pop()
            kind = HUNT_POWER
        count = None
        if rest and rest[-1].type == "VALUE" and word.text in HUNT_FAULTS:
            count = self._value(rest.pop(), values.amount)
        subjects = self._subjects(rest)
        return ast.HuntBound(kind, cover(word, self.part[-1]), subjects, count, low, high)

    def _subjects(self, rest: Sequence[Token]) -> tuple[ast.Subject, ...]:
        if [token.text for token in rest] in ([], [ANY], ["*"]):
            return ()
        found: list[ast.Subject] = []
        for token in rest:
            if token.type == "EVERY":
                found.append(self.actions.every(token))
            elif token.type in ("NAME", "INSTANCE"):
                found.append(self.actions.element(token))
            else:
                self._form(token)
        return tuple(found)

    def _amounts(self, kind: str, token: Token) -> tuple[int, int]:
        if kind in HUNT_CLOCKS:
            read = values.time if kind == "clock" else values.drift
            size = self._value(token._replace(text=token.text.removeprefix("±")), read)
            if kind == "drift" and size > MAX_DRIFT_PPB:
                message = f"a clock that drifts by {token.text} is none"
                self._wrong("TS0341", token.span, message, "up to ±10%")
            return -size, size
        return self._range(token, values.latency if kind == "latency" else values.probability)

    def _range(self, token: Token, read: Callable[[str], int]) -> tuple[int, int]:
        low, dots, high = token.text.partition("..")
        if not dots:
            low, high = "0", token.text
        ends = [self._value(token._replace(text=text), read, token) for text in (low, high)]
        if ends[0] > ends[1]:
            message = f"{token.text} has no value in it: {low} is more than {high}"
            self._wrong("TS0341", token.span, message, f"write {high}..{low}")
        return ends[0], ends[1]

    def _value(self, token: Token, read: Callable[[str], int], place: Token | None = None) -> int:
        try:
            return read(token.text)
        except ValueProblem as problem:
            self._wrong(problem.code, (place or token).span, problem.message, problem.hint)

    def _form(self, at: Token) -> NoReturn:
        word = self.part[0].text
        what = f"unexpected {shown(at)}" if at is not self.part[0] else f"'{word}' says too little"
        self._wrong("TS0340", at.span, what, f"such as {FORMS[word]}")

    def _wrong(self, code: str, span: ast.Span, message: str, hint: str | None) -> NoReturn:
        self.actions.error(code, span, message, hint)
        raise _WrongBoundError


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands between semicolons; nothing for an empty part."""
    part: list[Token] = []
    for token in tokens:
        if token.type != "SEMI":
            part.append(token)
        elif part:
            yield part
            part = []
    if part:
        yield part
