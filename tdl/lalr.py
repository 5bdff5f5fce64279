"""The tokens of one statement through grammar.lark, by Lark's LALR(1) parser.

Lark's lexer is not used: tdl/tokens/lexer.py makes the tokens, and they are fed one by one. Actions
run as soon as a rule is complete, so those before an unexpected token have reported what they had
to. Which rules a statement completes depends on its terminals alone: Lark is asked once for
statements that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from lark import Lark, UnexpectedToken
from lark.grammar import Rule

from tdl.tokens.lexer import Token

END = "$END"
Callbacks = Mapping[Rule, Callable[[list[Any]], Any]]
_Course = Sequence[tuple[Rule, int, int]]  # rule, its symbols, tokens before its end


class UnexpectedTokenError(Exception):
    """The token at `index` (or the end, if it is beyond the last) fits nowhere.

    `expected` are the terminals that could stand there instead.
    """

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index = index
        self.expected = expected


@cache
def _grammar() -> Lark:
    """Built once a process; docs/dependencies.md says what that costs."""
    return Lark.open("grammar.lark", rel_to=__file__, parser="lalr", lexer="basic")


def callbacks(actions: object) -> Callbacks:
    """For each rule the method of `actions` with its name, called with the rule's symbols."""
    return {
        rule: _spread(getattr(actions, rule.alias or rule.origin.name)) for rule in _grammar().rules
    }


def _spread(action: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda parts: action(*parts)


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
        values[first:] = [table[rule](values[first:])]
    return values[-1]


@lru_cache(maxsize=4096)
def _course(terminals: tuple[str, ...]) -> _Course | None:
    """What completes when in a statement of these terminals; None if one of them fits nowhere.

    The texts of tokens make no difference to that, and most statements of a large file are alike.
    """
    table, completed = _recorder()
    completed.clear()
    found: list[tuple[Rule, int, int]] = []
    parser = _parser(table)
    try:
        for shifted, terminal in enumerate((*terminals, END)):
            parser.feed_token(Token(terminal, "", 1, 1))
            found += [(rule, len(rule.expansion), shifted) for rule in completed]
            completed.clear()
    except UnexpectedToken:
        return None
    return found


@cache
def _recorder() -> tuple[Callbacks, list[Rule]]:
    """Callbacks that write down which rule is completed, and where they do."""
    completed: list[Rule] = []
    return {rule: partial(_record, completed, rule) for rule in _grammar().rules}, completed


def _record(completed: list[Rule], rule: Rule, _parts: list[Any]) -> None:
    completed.append(rule)


def _parser(table: Callbacks) -> Any:  # not wholly typed
    parser: Any = _grammar().parse_interactive()
    parser.parser_state.parse_conf.callbacks = table
    return parser


def _parse(tokens: Sequence[Token], table: Callbacks) -> Any:
    """For statements that are wrong: callbacks are called up to the token that fits nowhere."""
    parser = _parser(table)
    index = 0
    try:
        for token in tokens:
            parser.feed_token(token)
            index += 1
        return parser.feed_eof()
    except UnexpectedToken:
        raise UnexpectedTokenError(index, frozenset(parser.accepts())) from None
