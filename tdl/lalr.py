"""The tokens of one statement through grammar.lark, by Lark's LALR(1) parser.

Lark's lexer is not used: tdl/lexer.py makes the tokens, and they are fed one by one. Actions run as
soon as a rule is complete, so those before an unexpected token have reported what they had to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from lark import Lark, UnexpectedToken
from lark.grammar import Rule

from tdl.lexer import Token

END = "$END"
Callbacks = Mapping[Rule, Callable[[list[Any]], Any]]


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
    parser: Any = _grammar().parse_interactive()  # not wholly typed
    parser.parser_state.parse_conf.callbacks = table
    index = 0
    try:
        for token in tokens:
            parser.feed_token(token)
            index += 1
        return parser.feed_eof()
    except UnexpectedToken:
        raise UnexpectedTokenError(index, frozenset(parser.accepts())) from None
