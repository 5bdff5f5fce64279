"""The words of the language as a TextMate grammar, by which editors colour TDL.

Input: words.py and patterns.py, from which the lexer makes tokens. Output: the grammar as JSON;
`python -m tdl.tokens.textmate` prints it (`make golden`), and a test holds the file in
docs/editors/vscode equal to it. A TextMate grammar sees a line at a time and no tree, so it says
what a word looks like: where a word may also be a name, the lexer decides, and the colour may be
wrong. Source: https://macromates.com/manual/en/language_grammars.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from tdl.tokens.patterns import BARE, DOTTED, NAME, RANGE, VALUE, VARIABLE
from tdl.tokens.words import (
    ACTIONS,
    BOTTLENECK_PROPERTIES,
    BRIDGE_PROPERTIES,
    CHANGEABLE,
    CONDITION_WORDS,
    CONDITIONS,
    EXPECTED,
    EXTERNAL_PROPERTIES,
    FAULTS,
    FIGURES,
    FLAGS,
    HOST_WORDS,
    IT,
    KERNEL,
    LINK_ALIASES,
    LINK_PROPERTIES,
    LIST_PROPERTIES,
    MAYBE_NAMES,
    MOBILITY_PROPERTIES,
    NODE_PROPERTIES,
    OF_SERVICES,
    PATH_PROPERTIES,
    RESERVED,
    SERVICE_ALIASES,
    SERVICE_PROPERTIES,
    STATEMENTS,
    STATISTICS,
    TEXT_PROPERTIES,
)

Rule = dict[str, Any]

_GAP = r"[ \t]*"
_BEGINS = rf"(?:^|[{{}}]){_GAP}"  # where a statement does
_NEW = r"(?<![\w$.])(?<!\w-)"  # in front of a word: it begins here
_ENDS = r"(?<![\\\n])$"  # where the line does, unless it goes on
_APART = rf"(?![\w-])(?!{_GAP}[+-]?=)"  # behind a word: it is whole, and no property
_DECLARING = ("service", "external", "bridge", "lan", "air", "bottleneck", "node")
# By their place (expectwords.py).
_OF_EXPECTATIONS = ("within", "of", "plan", "ok", "on", "json", "has", FAULTS)
_PROPERTIES = {
    *(*SERVICE_PROPERTIES, *SERVICE_ALIASES, *LINK_PROPERTIES, *LINK_ALIASES, *PATH_PROPERTIES),
    *(*BRIDGE_PROPERTIES, *EXTERNAL_PROPERTIES, *NODE_PROPERTIES, *MOBILITY_PROPERTIES),
    *(*BOTTLENECK_PROPERTIES, *CHANGEABLE, *HOST_WORDS, *TEXT_PROPERTIES, *LIST_PROPERTIES),
}


def grammar() -> Rule:
    """The whole of it, as an object of JSON."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "comment": "Generated: python -m tdl.tokens.textmate",
        "name": "Thunderstorm",
        "scopeName": "source.tdl",
        "fileTypes": ["tdl"],
        "patterns": _included("comments", "statements", "rest"),
        "repository": {
            "comments": {"patterns": [_match(r"#.*$", "comment.line.number-sign")]},
            "strings": {"patterns": _strings()},
            "variables": {"patterns": [_match(VARIABLE, "variable.other")]},
            "statements": {"patterns": _statements()},
            "texts": {"patterns": _texts()},
            "words": {"patterns": _words()},
            "rest": {"patterns": _included("comments", "strings", "texts", "words")},
        },
    }


def text() -> str:
    """The file: one canonical document with a newline at its end."""
    return json.dumps(grammar(), indent=1, ensure_ascii=False) + "\n"


def _match(pattern: str, *scopes: str) -> Rule:
    """One scope is that of the whole match, several are those of its groups ('' for none)."""
    if len(scopes) == 1:
        return {"match": pattern, "name": f"{scopes[0]}.tdl"}
    named = {str(i): {"name": f"{one}.tdl"} for i, one in enumerate(scopes, 1) if one}
    return {"match": pattern, "captures": named}


def _included(*names: str) -> list[Rule]:
    return [{"include": f"#{name}"} for name in names]


def _any(words: Iterable[str]) -> str:
    """The longest first, so that `trace-up` is not read as `trace`."""
    return "|".join(sorted(set(words), key=lambda word: (-len(word), word)))


def _strings() -> list[Rule]:
    """Of all kinds; between double quotes there may be variables, as between single ones."""
    escape = _match(r"\\.", "constant.character.escape")
    inside = [escape, *_included("variables")]
    kinds = (("double", '"', '"'), ("single", "'", "'"), ("other", "“", "”"), ("other", "‘", "’"))
    return [
        {
            "begin": opened,
            "end": rf"{closed}|$",
            "name": f"string.quoted.{kind}.tdl",
            "patterns": inside,
        }
        for kind, opened, closed in kinds
    ]


def _statements() -> list[Rule]:
    """The first words of statements, and what is behind some of them only."""
    # An event of a service of this name: `expect churn 3`.
    event = rf"(?!{_GAP}(?:;|--|—|–|->|(?:{_any(ACTIONS)})(?![\w-]|{_GAP}=)))"
    sure = set(STATEMENTS) - {*MAYBE_NAMES, "let", "for", "include", "bootstrapper", *_DECLARING}
    declaring = rf"{_BEGINS}({_any(_DECLARING)})[ \t]+({NAME})"
    maybe = set(MAYBE_NAMES) - {"expect", "when", "figure", "param", "include", "matrix"}
    keyword = "keyword.control"
    judging = {
        "expect": (*EXPECTED, *STATISTICS, *_OF_EXPECTATIONS),
        "when": (*CONDITIONS, *CONDITION_WORDS),
        "figure": tuple(FIGURES),
    }
    return [
        *(_judging(word, event, words) for word, words in judging.items()),
        {
            "begin": rf"{_BEGINS}(let|param)[ \t]+({NAME}){_GAP}(=)",
            "beginCaptures": _captures(keyword, "variable.other", "keyword.operator.assignment"),
            "end": _ENDS,
            "patterns": [*_included("comments", "strings"), *_bare()],
        },
        {
            "begin": rf"{_BEGINS}(bootstrapper|include|matrix|mobility)(?=[ \t]+\S)(?!{_GAP}=)"
            + event,
            "beginCaptures": _captures(keyword),
            "end": _ENDS,
            "patterns": [*_included("comments", "strings", "texts"), *_bare()],
        },
        {
            "begin": rf"{_BEGINS}(for)(?=[ \t])",
            "beginCaptures": _captures(keyword),
            "end": r"(?=\{)|$",
            "patterns": [
                _match(rf"{_NEW}(in|step){_APART}", keyword),
                *_included("rest"),
            ],
        },
        {
            "begin": rf"{_BEGINS}(service)[ \t]+({NAME})",
            "beginCaptures": _captures(keyword, "entity.name.type"),
            "end": _ENDS,
            "patterns": [
                _match(rf"{_NEW}({_any(OF_SERVICES)}){_APART}", "storage.modifier"),
                *_included("rest"),
            ],
        },
        _match(
            rf"{_BEGINS}(lan)[ \t]+({NAME})[ \t]+({KERNEL}){_APART}",
            keyword,
            "entity.name.type",
            "storage.modifier",
        ),
        _match(declaring + rf"(?!{_GAP}[+-]?=)" + event, keyword, "entity.name.type"),
        _match(rf"{_BEGINS}(start|quit)[ \t]+(when)(?![\w-])", keyword, keyword),
        _match(rf"{_BEGINS}({_any(sure)}){_APART}", keyword, ""),
        _match(rf"{_BEGINS}({_any(maybe)}){_APART}{event}", keyword, ""),
    ]


def _judging(word: str, event: str, words: Iterable[str]) -> Rule:
    """A statement in which these words are of the language."""
    return {
        "begin": rf"{_BEGINS}({word}){_APART}{event}",
        "beginCaptures": _captures("keyword.control"),
        "end": rf"(?=\{{)|{_ENDS}",
        "patterns": [
            _match(rf"{_NEW}({_any(words)}){_APART}", "keyword.other"),
            _match(r"[<>]=?|=[<>]|[≤≥]", "keyword.operator.comparison"),
            _match(rf"(?:{NAME}\.)?\*", "keyword.operator.wildcard"),
            *_included("rest"),
        ],
    }


def _captures(*scopes: str) -> Rule:
    return {str(i): {"name": f"{scope}.tdl"} for i, scope in enumerate(scopes, 1)}


def _bare() -> list[Rule]:
    """Text without quotes, with variables in it."""
    inside = {"name": "string.unquoted.tdl", "patterns": _included("variables")}
    return [{"match": BARE, "captures": {"0": inside}}]


def _texts() -> list[Rule]:
    """Properties whose values are bare text: all of it up to a blank, or several with `;`."""
    key, operator = "entity.other.attribute-name", "keyword.operator.assignment"
    inside = {"name": "string.unquoted.tdl", "patterns": _included("variables")}
    named = {"1": {"name": f"{key}.tdl"}, "2": {"name": f"{operator}.tdl"}}
    lists = _any((*LIST_PROPERTIES, "env"))
    return [
        {
            "match": rf"{_NEW}({_any(TEXT_PROPERTIES)}){_GAP}(=){_GAP}({BARE})",
            "captures": {**named, "3": inside},
        },
        {
            "begin": rf"{_NEW}({lists}){_GAP}(=){_GAP}",
            "beginCaptures": named,
            # Goes on behind a `;`, on the next line, too.
            "end": rf"(?<=[^\s;\\=])(?=\s(?!{_GAP};))|{_ENDS}",
            "patterns": [
                *_included("comments", "strings"),
                _match(r"\\$", "punctuation.separator.continuation"),
                _match(";", "punctuation.separator"),
                *_bare(),
            ],
        },
    ]


def _words() -> list[Rule]:
    """What stands anywhere in a statement."""
    key, operator = "entity.other.attribute-name", "keyword.operator.assignment"
    times = {word for word, kind in RESERVED.items() if kind in ("AT", "FROM", "TO", "TAIL")}
    rest = set(RESERVED) - times - set(ACTIONS) - set(FLAGS)
    flags = set(FLAGS) - set(OF_SERVICES)
    return [
        _match(rf"{_NEW}({_any(_PROPERTIES)}){_GAP}([+-]?=)", key, operator),
        _match(rf"{_NEW}({NAME}){_GAP}([+-]?=)", f"{key}.unknown", operator),
        *_included("variables"),
        _match(RANGE, "constant.numeric.range"),
        _match(rf"{_NEW}({_any(ACTIONS)}){_APART}", "support.function"),
        _match(rf"{_NEW}({_any(flags)}){_APART}", "storage.modifier"),
        _match(rf"{_NEW}({_any(times)}){_APART}", "keyword.control.time"),
        _match(rf"{_NEW}({_any(rest)}){_APART}", "keyword.other"),
        _match(rf"{_NEW}({IT}){_APART}", "variable.language"),
        _match(rf"{_NEW}{NAME}(?:{DOTTED})?", "variable.other.name"),
        _match(rf"{_NEW}{VALUE}", "constant.numeric"),
        _match(r"--|—|–|->", "keyword.operator.link"),
        _match(r"[{}]", "punctuation.section.block"),
        _match(r"[\[\]]", "punctuation.section.brackets"),
        _match(r"[;,:]", "punctuation.separator"),
        _match(r"\\$", "punctuation.separator.continuation"),
    ]


if __name__ == "__main__":
    sys.stdout.write(text())
