"""The tokens of one statement through grammar.lark, by its LALR(1) tables (tdl/lalr_tables.py).

tdl/tokens/lexer.py makes the tokens, and they are fed one by one. Actions run as soon as a rule is
complete, so those before an unexpected token have reported what they had to. Which rules a
statement completes depends on its terminals alone: that is found out once for statements that are
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tdl.lalr_tables import END, tables
from tdl.tokens.lexer import Token

Callbacks = Sequence[Callable[..., Any]]  # for each rule
_Course = Sequence[tuple[int, int, int]]  # rule, its symbols, tokens before its end
ONE_TOKEN = "leaf"  # the action that returns the one token of its rule


class UnexpectedTokenError(Exception):
    """The token at `index` (or the end, if it is beyond the last) fits nowhere.

    `expected` are the terminals that could stand there instead.
    """

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index = index
        self.expected = expected


def callbacks(actions: object) -> Callbacks:
    """For each rule the method of `actions` with its name, called with the rule's symbols."""
    return [getattr(actions, rule.action) for rule in tables().rules]


def run(tokens: Sequence[Token], table: Callbacks) -> Any:
    """What the callback of `start` makes of one statement. Raises UnexpectedTokenError."""
    course = _course(tuple([token.type for token in tokens]))
    if course is None:
        return _parse(tokens, table)
    values: list[Any] = []
    shifted = 0
    for rule, size, before in course:
        if shifted < before:
            values += tokens[shifted:before]
            shifted = before
        first = len(values) - size
        values[first:] = [table[rule](*values[first:])]
    return values[-1]


@lru_cache(maxsize=4096)
def _course(terminals: tuple[str, ...]) -> _Course | None:
    """What completes when in a statement of these terminals; None if one of them fits nowhere.

    The texts of tokens make no difference to that, and most statements of a large file are alike.
    """
    found: list[tuple[int, int, int]] = []
    shifted = 0

    def completed(rule: int, parts: list[Any]) -> None:
        if tables().rules[rule].action != ONE_TOKEN:
            found.append((rule, len(parts), shifted))

    parser = _Parser(completed)
    for terminal in (*terminals, END):
        if not parser.feed(terminal, None):
            return None
        shifted += 1
    return found


def _parse(tokens: Sequence[Token], table: Callbacks) -> Any:
    """For statements that are wrong: callbacks are called up to the token that fits nowhere."""
    parser = _Parser(lambda rule, parts: table[rule](*parts))
    for index, token in enumerate(tokens):
        if not parser.feed(token.type, token):
            raise UnexpectedTokenError(index, parser.accepts())
    if not parser.feed(END, None):
        raise UnexpectedTokenError(len(tokens), parser.accepts())
    return parser.values[-1]


class _Parser:
    """A stack of states and one of values; what `completed` makes of a rule's values takes their
    place."""

    def __init__(self, completed: Callable[[int, list[Any]], Any]) -> None:
        self.values: list[Any] = []
        self._completed = completed
        self._tables = tables()
        self._states = [0]

    def feed(self, terminal: str, value: Any) -> bool:
        """Whether it fits. Rules that end before a terminal that does not are completed."""
        while (step := self._tables.states[self._states[-1]].get(terminal)) is not None:
            if step >= 0:
                self._states.append(step)
                self.values.append(value)
                return True
            self._reduce(~step)
            if terminal == END and self._states[-1] == self._tables.end:
                return True
        return False

    def _reduce(self, number: int) -> None:
        rule = self._tables.rules[number]
        first = len(self.values) - rule.size
        self.values[first:] = [self._completed(number, self.values[first:])]
        del self._states[first + 1 :]  # the first is that of no value
        self._states.append(self._tables.states[self._states[-1]][rule.makes])

    def accepts(self) -> frozenset[str]:
        """The terminals that would fit: rules that one of them completes can leave no place for
        it."""
        terminals = filter(str.isupper, self._tables.states[self._states[-1]])
        return frozenset(terminal for terminal in terminals if self._trial().feed(terminal, None))

    def _trial(self) -> _Parser:
        trial = _Parser(lambda _rule, _parts: None)
        trial.values, trial._states = self.values[:], self._states[:]
        return trial


def accepted(terminals: Sequence[str]) -> frozenset[str]:
    """The terminals that fit behind these at the beginning of a statement; none if these do not."""
    parser = _Parser(lambda _rule, _parts: None)
    fits = all(parser.feed(terminal, None) for terminal in terminals)
    return parser.accepts() if fits else frozenset()
