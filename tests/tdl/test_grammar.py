"""The grammar: without conflicts, and every rule has its action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lark import Lark, Token
from lark.lexer import Lexer

import tdl
from tdl.building.dynamic import Actions

GRAMMAR = (Path(tdl.__file__).parent / "grammar.lark").read_text(encoding="utf-8")


class NoLexer(Lexer):
    def __init__(self, _conf: object) -> None:
        pass

    def lex(self, _lexer_state: object, _parser_state: object) -> Iterator[Token]:
        return iter(())


def test_nothing_can_be_read_in_two_ways() -> None:
    """Strict: a conflict, which Lark would settle by itself, is an error here."""
    assert Lark(GRAMMAR, parser="lalr", lexer=NoLexer, strict=True).rules


def test_every_rule_has_its_action() -> None:
    for rule in Lark(GRAMMAR, parser="lalr", lexer=NoLexer).rules:
        assert callable(getattr(Actions, rule.alias or rule.origin.name))
