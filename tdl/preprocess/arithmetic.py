"""Sums and products of whole numbers: `i*15`, `2*(i+1)`, with the usual precedence.

Input: the text between `${` and `}`, and the values of variables. Exact integers; no division,
because what it leaves over would have to go somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_DIGITS = 12  # of a number: there is nothing in the language that is counted so far
MAX_NESTED = 16  # parentheses
_PART = re.compile(r"[ \t]*([0-9]+|[A-Za-z_][A-Za-z0-9_]*|[-+*()]|\Z)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NoNumberError(Exception):
    """What cannot be worked out, and why."""


def names(text: str) -> list[str]:
    """The variables in it."""
    return _NAME.findall(text)


def value(text: str, get: Callable[[str], str | None]) -> int:
    """Its value, 0 or more. NoNumberError, also where `get` has no number for a name."""
    total = _Reader(text, get).whole()
    if total < 0:
        raise NoNumberError(f"{text.strip()} is {total}, and nothing in the language is negative")
    return total


class _Reader:
    """Reads from left to right, one method for each precedence."""

    def __init__(self, text: str, get: Callable[[str], str | None]) -> None:
        self._text = text
        self._get = get
        self._at = 0
        self._next = ""
        self._nested = 0
        self._advance()

    def whole(self) -> int:
        total = self._sum()
        if self._next:
            raise NoNumberError(f"unexpected '{self._next}' in a sum")
        return total

    def _advance(self) -> str:
        """The part that was next, after which the one behind it is."""
        taken = self._next
        match = _PART.match(self._text, self._at)
        if match is None:
            raise NoNumberError(f"unexpected '{self._text[self._at :].strip()[0]}' in a sum")
        self._at, self._next = match.end(), match[1]
        return taken

    def _sum(self) -> int:
        total = self._product()
        while self._next in ("+", "-"):
            sign = 1 if self._advance() == "+" else -1
            total += sign * self._product()
        return total

    def _product(self) -> int:
        total = self._operand()
        while self._next == "*":
            self._advance()
            total *= self._operand()
            if len(str(abs(total))) > MAX_DIGITS:
                raise NoNumberError("a product beyond all that an experiment can hold")
        return total

    def _operand(self) -> int:
        part = self._advance()
        if part == "(":
            self._nested += 1
            if self._nested > MAX_NESTED:
                raise NoNumberError(f"more than {MAX_NESTED} '(' in one another")
            total = self._sum()
            if self._advance() != ")":
                raise NoNumberError("a '(' is never closed")
            self._nested -= 1
            return total
        word = self._get(part) if _NAME.fullmatch(part) else part
        if word is None or not word.isdecimal() or len(word) > MAX_DIGITS:
            shown = f"${part} is '{word}', which" if word != part else f"'{part}'"
            raise NoNumberError(f"{shown} is no whole number" if part else "a sum ends too early")
        return int(word)
