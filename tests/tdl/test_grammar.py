"""The grammar: without conflicts, its tables are at hand, and every rule has its action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lark import Lark, Token
from lark.lexer import Lexer

from tdl import lalr_tables
from tdl.building.dynamic import Actions


class NoLexer(Lexer):
    def __init__(self, _conf: object) -> None:
        pass

    def lex(self, _lexer_state: object, _parser_state: object) -> Iterator[Token]:
        return iter(())


def test_nothing_can_be_read_in_two_ways() -> None:
    """Strict: a conflict, which Lark would settle by itself, is an error here."""
    assert Lark(lalr_tables.GRAMMAR.read_text(), parser="lalr", lexer=NoLexer, strict=True).rules


def test_the_tables_are_those_of_the_grammar() -> None:
    """`python -m tdl.lalr_tables` writes them."""
    made = lalr_tables.make_tables()
    assert lalr_tables.FILE.read_text(encoding="utf-8") == lalr_tables.text(made)
    assert lalr_tables.tables() == made


def test_a_changed_grammar_gets_tables_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = tmp_path / "grammar.lark"
    changed.write_text(lalr_tables.GRAMMAR.read_text().replace("SEED VALUE", "VALUE SEED"))
    before = lalr_tables.tables()
    monkeypatch.setattr(lalr_tables, "GRAMMAR", changed)
    after = lalr_tables.tables.__wrapped__()
    assert after.digest != before.digest
    assert "SEED" in before.states[0]
    assert "SEED" not in after.states[0]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"digest": 1}'])
def test_without_its_file_the_tables_are_made(
    text: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lalr_tables, "FILE", tmp_path / "lalr_tables.json")
    if text is not None:
        lalr_tables.FILE.write_text(text)
    assert lalr_tables.tables.__wrapped__() == lalr_tables.tables()


def test_every_rule_has_its_action() -> None:
    for rule in lalr_tables.tables().rules:
        assert callable(getattr(Actions, rule.action))
