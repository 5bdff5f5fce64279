"""Which terminal a word of an `expect`, `figure` or `when` statement is, by where it stands.

Input: the tokens before it, the word, and the text after it. Only at these places are `rtt`, `of`,
`plan`, `ok`, `on` and `within` words of the language: anywhere else they are names, which services
may have. `MAYBE_NAMES` begin statements unless the rest reads like an event. Source: docs/tdl.md,
"Expectations".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tdl.tokens.words import ACTIONS, CONDITION_WORDS, CONDITIONS, EXPECTED, FIGURES, MAYBE_NAMES

if TYPE_CHECKING:
    from tdl.tokens.lexer import Token

# Between words: white space, and the ends of lines that go on.
_GAP = r"(?:[ \t\u00a0]|\\[ \t]*(?:\r\n?|\n))*"
_SELECTS = re.compile(rf"{_GAP}(?:;|--|—|–|->|(?:{'|'.join(sorted(ACTIONS))})(?![\w-]|{_GAP}=))")
_NUMBER = re.compile(rf"{_GAP}[0-9.$]")
_FIRST_NAME = 2  # tokens before it: `expect rtt`
_AFTER = {"of": ("VALUE", "MIXED"), "plan": ("OF",), "ok": ("STRING",), "on": ("OK", "STRING")}
_OF_LINES = {"json": "JSON", "has": "HAS"}  # behind a pattern or a key


def is_name(word: str, text: str, end: int) -> bool:
    """Whether the first word of a line, which ends at `end` of `text`, is the name of a service."""
    return word in MAYBE_NAMES and selects(text, end)


def selects(text: str, end: int) -> bool:
    """Whether what is written there goes on after a selector: an action, or another name."""
    return _SELECTS.match(text, end) is not None


def terminal(before: Sequence[Token], word: str, text: str, end: int) -> str | None:
    """The terminal of a word that ends at `end` of `text`; None where it has no special meaning."""
    last = before[-1].type
    mixed_key = last == "MIXED" and len(before) == _FIRST_NAME and before[0].type == "FIGURE"
    if last == "KEY" or mixed_key:
        return FIGURES.get(word)
    if before[0].type == "WHEN":
        if last in ("WHEN", "SEMI"):
            return CONDITIONS.get(word) if last == "WHEN" else None
        return CONDITION_WORDS.get(word) if len(before) > _FIRST_NAME else None
    if last == "EXPECT":
        return EXPECTED.get(word)
    if before[1].type == "LINEARIZABLE" and len(before) > _FIRST_NAME:
        if last == "STRING":
            return "MODEL" if word == "model" else None
        return "NAME" if last == "OP" else None  # `set`, too
    if last in ("NO", "MODE") and len(before) == _FIRST_NAME:
        return "LOG" if word == "log" else None
    if before[1].type == "MODE" and last == "STRING" and word in _OF_LINES:
        return _OF_LINES[word]
    if word == "within":
        named = len(before) == _FIRST_NAME + (before[1].type in ("NO", "MODE"))
        return "WITHIN" if _NUMBER.match(text, end) and not named else None
    if word not in _AFTER or last not in _AFTER[word]:
        return None
    compares = any(token.type == "OP" for token in before)
    return word.upper() if compares or before[1].type == "RUN" else None
