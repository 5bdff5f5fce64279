"""The TextMate grammar: it is that of the words of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tdl.tokens.textmate import grammar, text
from tdl.tokens.words import ACTIONS, LINK_PROPERTIES, SERVICE_PROPERTIES, STATEMENTS

FILE = Path(__file__).parents[2] / "docs/editors/vscode/syntaxes/tdl.tmLanguage.json"
WORDS = {*STATEMENTS, *ACTIONS, *LINK_PROPERTIES, *SERVICE_PROPERTIES}


def rules(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from rules(one)


def scopes(line: str) -> dict[str, str]:
    """What the rules of a line alone call its words: the first that matches has a word."""
    found: dict[str, str] = {}
    repository = grammar()["repository"]
    names = ("statements", "texts", "words")
    for rule in chain.from_iterable(repository[name]["patterns"] for name in names):
        expression = rule.get("match") or rule.get("begin")
        match = re.search(expression, line) if expression else None
        named = rule.get("captures") or rule.get("beginCaptures") or {"0": rule}
        for group, scope in named.items():
            if match and match[int(group)]:
                found.setdefault(match[int(group)], scope.get("name", ""))
    return found


def test_the_file_is_that_of_the_words() -> None:
    command = "python -m tdl.tokens.textmate > docs/editors/vscode/syntaxes/tdl.tmLanguage.json"
    assert FILE.read_text(encoding="utf-8") == text(), f"run: {command}"


def test_its_expressions_are_ones() -> None:
    found = [
        rule[key] for rule in rules(grammar()) for key in ("match", "begin", "end") if key in rule
    ]
    assert len(found) > 40
    for one in found:
        re.compile(one)


@pytest.mark.parametrize(
    "word", sorted({*STATEMENTS, *ACTIONS, *LINK_PROPERTIES, *SERVICE_PROPERTIES})
)
def test_a_word_of_the_language_has_its_scope(word: str) -> None:
    if word in STATEMENTS:
        line = f"{word} x = 1" if word in ("let", "param") else f"{word} x"
        assert scopes(line)[word] == "keyword.control.tdl"
    if word in ACTIONS:
        assert scopes(f"at 1s a {word} 2")[word] == "support.function.tdl"
    if word in (*LINK_PROPERTIES, *SERVICE_PROPERTIES):
        assert scopes(f"x y {word}=1")[word] == "entity.other.attribute-name.tdl"


@pytest.mark.parametrize(
    ("line", "word", "scope"),
    [
        ("expect churn 3", "expect", "variable.other.name"),
        ("expect rtt a b < 5ms", "expect", "keyword.control"),
        ("path--s set latency=1ms", "path", "variable.other.name"),
        ("s1--a set latency=1ms", "s1", "variable.other.name"),
        ("at 5s quit", "5s", "constant.numeric"),
        ("service a router exec=x", "a", "entity.name.type"),
        ("let x = 5", "x", "variable.other"),
    ],
)
def test_where_a_word_stands_decides(line: str, word: str, scope: str) -> None:
    assert scopes(line).get(word, "").removesuffix(".tdl") == scope
