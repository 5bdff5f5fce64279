"""What `set` makes of the terms of a measured path. Exact integers, rounded half up.

Input: the terms before, and one assignment. Output: the terms after; what the two directions become
follows from them (compiler/path_queues.py). Source: docs/tdl.md, "Measured paths".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tdl import ast
from tdl.tokens.words import PATH_WORDS
from tdl.values import PPB

WORDS = frozenset((*PATH_WORDS, "queue", "latency"))  # that change terms
_WAYS = ("up", "down")
_OF_NECKS = {"capacity": "capacity_bps", "queue": "queue_bytes"}


class NoChange(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """Why an assignment has no meaning, in words that follow the name of the property."""

    def __init__(self, why: str, hint: str) -> None:
        self.why = why
        self.hint = hint
        super().__init__(why)


def fields(word: str, *, flipped: bool) -> tuple[str, ...]:
    """Of PathTerms, those that the word changes. `flipped`: A and B are named the other way round
    than in the `path` statement."""
    if word in ("rtt", "latency"):
        return ("rtt_ns",)
    if word == "capacity":
        return ("capacity_bps",)
    if word == "wmax":
        return ("wmax_bytes",)
    what, _, way = word.partition("-")
    ways = [way.rpartition("-")[2]] if way not in ("", "flows") else [*_WAYS]
    if flipped:
        ways = [_WAYS[1 - _WAYS.index(one)] for one in ways]
    return tuple(f"{what}_{one}" for one in ways)


def changed(terms: ast.PathTerms, assignment: ast.Assignment, *, flipped: bool) -> ast.PathTerms:
    """Raises NoChange."""
    word = assignment.prop.text
    names = fields(word, flipped=flipped)
    return terms._replace(
        **{name: _value(word, getattr(terms, name), assignment) for name in names}
    )


def neck_fields(terms: ast.PathTerms, neck: str, words: Sequence[str]) -> list[str]:
    """Of the terms, what these words change of the bottleneck `neck`: `neck_up.capacity_bps`."""
    return [f"{way}.{_OF_NECKS[word]}" for way in _ways_of(terms, neck) for word in words]


def changed_neck(terms: ast.PathTerms, neck: str, assignment: ast.Assignment) -> ast.PathTerms:
    """Raises NoChange."""
    word = assignment.prop.text
    for name in neck_fields(terms, neck, [word]):
        terms = with_term(terms, name, _value(word, term(terms, name), assignment))
    return terms


def _ways_of(terms: ast.PathTerms, neck: str) -> list[str]:
    both = (("neck_up", terms.neck_up), ("neck_down", terms.neck_down))
    return [way for way, one in both if one is not None and one.name.partition(".")[0] == neck]


def is_term(name: str) -> bool:
    return name.partition(".")[0] in ast.PathTerms._fields


def term(terms: ast.PathTerms, name: str) -> Any:
    way, _, part = name.partition(".")
    return getattr(getattr(terms, way), part) if part else getattr(terms, way)


def with_term(terms: ast.PathTerms, name: str, value: Any) -> ast.PathTerms:
    way, _, part = name.partition(".")
    new = getattr(terms, way)._replace(**{part: value}) if part else value
    return terms._replace(**{way: new})


def _value(word: str, old: Any, assignment: ast.Assignment) -> Any:
    if assignment.word is not None or assignment.rows:  # auto, or a table
        return assignment.rows or None
    value = assignment.value or 0
    if word == "latency" and assignment.op is not ast.Op.SCALE:
        value *= 2  # of both directions
    if isinstance(old, tuple):
        rows = old[:1] if assignment.op is ast.Op.ASSIGN else old
        return tuple((flows, _number(bps, assignment.op, value)) for flows, bps in rows)
    if old is None and assignment.op is not ast.Op.ASSIGN:
        raise NoChange("follows from the rest and has no relative change", f"write {word}=SIZE")
    return _number(old or 0, assignment.op, value, least=0 if word in ("rtt", "latency") else 1)


def number_after(old: int, op: ast.Op, value: int) -> int:
    """What an assignment makes of a number; a factor is in billionths."""
    if op is ast.Op.ASSIGN:
        return value
    if op is ast.Op.SCALE:
        return (old * value + PPB // 2) // PPB
    return old + value if op is ast.Op.ADD else old - value


def _number(old: int, op: ast.Op, value: int, least: int = 1) -> int:
    new = number_after(old, op, value)
    if new < least:
        raise NoChange(f"would be {'zero' if new == 0 else 'negative'}", "take less off it")
    return new
