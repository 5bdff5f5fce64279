"""Runs the generated LALR(1) tables over the tokens of one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tdl._tables import RULES, STATES
from tdl.lexer import Token

END = "$END"


class Action(Protocol):
    def __call__(self, *parts: Any) -> Any: ...


class UnexpectedTokenError(Exception):
    """The token at `index` (or the end, if it is beyond the last) fits nowhere.

    `expected` are the terminals that could stand there instead.
    """

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index = index
        self.expected = expected


def run(tokens: Sequence[Token], table: Sequence[tuple[str, Action, int]]) -> Any:
    """Parses one statement and returns what the action of its `start` rule returns.

    `table` has for each of RULES what it makes, its action, and its number of symbols. An action is
    called with what the symbols became: tokens and results of actions. Raises UnexpectedTokenError.
    """
    states = [0]
    values: list[Any] = []
    index, count = 0, len(tokens)
    kind = tokens[0].kind if count else END
    while True:
        step = STATES[states[-1]].get(kind)
        if step is None:
            raise UnexpectedTokenError(index, _expected(states))
        if step >= 0:
            states.append(step)
            values.append(tokens[index])
            index += 1
            kind = tokens[index].kind if index < count else END
            continue
        made, action, length = table[~step]
        if length:
            parts = values[-length:]
            del values[-length:]
            del states[-length:]
            value = action(*parts)
        else:
            value = action()
        if made == "start":
            return value
        values.append(value)
        states.append(STATES[states[-1]][made])


def _expected(states: Sequence[int]) -> frozenset[str]:
    """The terminals that would be accepted here: those that lead, after reductions, to a shift."""
    return frozenset(
        symbol
        for symbol in STATES[states[-1]]
        if (symbol.isupper() or symbol == END) and _accepts(states, symbol)
    )


def _accepts(states: Sequence[int], kind: str) -> bool:
    stack = list(states)
    while True:
        step = STATES[stack[-1]].get(kind)
        if step is None:
            return False
        if step >= 0:
            return True
        made, _, length = RULES[~step]
        if length:
            del stack[-length:]
        if made == "start":
            return True
        stack.append(STATES[stack[-1]][made])
