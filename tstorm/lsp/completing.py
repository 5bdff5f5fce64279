"""What may stand at a place of a text: words of the language, names, tags, units.

Input: the text up to there, and the names that it declares. The grammar's tables say which
terminals fit behind the tokens of the statement so far (tdl/lalr.py); each terminal stands for
words. So whatever is proposed fits, and a new statement is proposed without a change here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tdl.diagnostics import Sink
from tdl.lalr import accepted
from tdl.tokens.lexer import Token, logical_lines
from tdl.tokens.words import (
    ACTIONS,
    ADDRESSES,
    BOTTLENECK_PROPERTIES,
    BRIDGE_PROPERTIES,
    CHANGEABLE,
    CONDITION_WORDS,
    CONDITIONS,
    DIALECTS,
    DISTRIBUTIONS,
    EXPECTATIONS,
    EXPECTED,
    EXTERNAL_PROPERTIES,
    FIGURES,
    FILE_SYSTEMS,
    HOPS,
    HOST_WORDS,
    LINK_PROPERTIES,
    MOBILITY_PROPERTIES,
    MOTION_FORMATS,
    NETWORKS,
    NODE_PROPERTIES,
    OF_SERVICES,
    PATH_PROPERTIES,
    RESERVED,
    ROUTINGS,
    SERVICE_PROPERTIES,
    SET_PROPERTIES,
    SIGNALS,
    STATEMENTS,
    STATISTICS,
    TRACE_ENDS,
)
from tstorm.lsp.known_names import NODE, TAG, VARIABLE, DeclaredName

MOST_LINES = 50  # of one statement
_WORD = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)?\Z")
_NUMBER = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[A-Za-z%]*\Z")
_VARIABLE = re.compile(r"\$\{?([A-Za-z0-9_]*)\Z")
_SIZES = ("KB", "MB", "GB", "B")
_UNITS = {  # the likeliest first
    "moment": ("s", "ms", "m", "h", "us", "ns"),
    "time": ("ms", "us", "s", "ns", "m", "h"),
    "rate": ("Mb", "Gb", "kb"),
    "share": ("%",),
    "drift": ("ppm", "%"),
    "size": _SIZES,
    "queue": (*_SIZES, "p"),
}
_TIMED = ("AT", "FROM", "TO", "TAIL", "WITHIN", "FLAP", "FREQ")  # a time stands behind them
_OF_KEYS = {"cpu": "processors", "mem": "size", "replicas": "count", "port": "port",
            "clock": "time", "drift": "drift",
            "grace": "time", "ready-timeout": "time", "every": "time"}  # fmt: skip
_PROPERTIES = {
    "SERVICE": SERVICE_PROPERTIES,
    "LINK": LINK_PROPERTIES,
    "PATH": PATH_PROPERTIES,
    "BRIDGE": BRIDGE_PROPERTIES,
    "BRIDGES": BRIDGE_PROPERTIES,
    "LAN": BRIDGE_PROPERTIES,
    "AIR": BRIDGE_PROPERTIES,
    "EXTERNAL": EXTERNAL_PROPERTIES,
    "NODE": NODE_PROPERTIES,
    "MOBILITY": MOBILITY_PROPERTIES,
    "BOTTLENECK": BOTTLENECK_PROPERTIES,
}
_AFTER = {
    "ROUTING": ROUTINGS,
    "NETWORK": NETWORKS,
    "HOPS": HOPS,
    "ADDRESSES": ADDRESSES,
    "DIALECT": DIALECTS,
}
_VALUES = {
    "dist": DISTRIBUTIONS,
    "trace-end": TRACE_ENDS,
    "fs": FILE_SYSTEMS,
    "expect": EXPECTATIONS,
    "stop": SIGNALS,
    "disk": ("error:1%", "full", "ok", "slow:20ms"),
    "format": MOTION_FORMATS,
    "network": NETWORKS,
}
_BY_PLACE = ("WITHIN", "OF", "PLAN", "OK", "ON", "JSON", "HAS")


class Proposal(NamedTuple):
    text: str
    kind: str  # keyword, property, value, or a kind of name
    detail: str = ""


def proposals(lines: Sequence[str], names: Sequence[DeclaredName]) -> tuple[int, list[Proposal]]:
    """What may stand there, and how many characters before the place it is in the place of. Units
    have the likeliest first, the rest is sorted.
    `lines`: those of the text up to the place, the last one up to it."""
    text = _statement(lines)
    variable = _VARIABLE.search(text)
    if variable is not None:
        found = (Proposal(one.text, one.kind) for one in names if one.kind == VARIABLE)
        return len(variable[1]), _sorted(found)
    number = _NUMBER.search(text)
    match = number or _WORD.search(text)
    assert match is not None
    sink = Sink()
    before = list(logical_lines(text[: match.start()], sink))
    last = before[-1] if before and not text[: match.start()].endswith(("{", "}")) else None
    if sink.found or (last is not None and last.comments):
        return 0, []  # in a string, or a comment
    tokens = last.tokens if last is not None else []
    if number is not None:
        return len(number[0]), list(_with_units(number[1], tokens))
    return len(match[0]), _sorted(_words(tokens, names))


def _sorted(found: Iterable[Proposal]) -> list[Proposal]:
    return sorted(set(found))


def _statement(lines: Sequence[str]) -> str:
    """The lines of the statement that the last one belongs to, as far as backslashes tell."""
    first = len(lines) - 1
    while first and len(lines) - first < MOST_LINES and lines[first - 1].rstrip().endswith("\\"):
        first -= 1
    return "\n".join(lines[first:])


def _key(tokens: Sequence[Token]) -> str:
    """The property whose value comes next, '' for none."""
    if not tokens or tokens[-1].type != "KEY":
        return ""
    return tokens[-1].text.rstrip("= \t\u00a0").rstrip("+-")


def _kind_of(key: str) -> str:
    return CHANGEABLE[key].kind if key in CHANGEABLE else _OF_KEYS.get(key, "")


def _with_units(number: str, tokens: Sequence[Token]) -> Iterator[Proposal]:
    is_time = tokens and tokens[-1].type in _TIMED
    for unit in _UNITS.get("moment" if is_time else _kind_of(_key(tokens)), ()):
        yield Proposal(f"{number}{unit}", "value")


def _words(tokens: Sequence[Token], names: Sequence[DeclaredName]) -> Iterator[Proposal]:
    if not tokens:
        yield from (Proposal(word, "keyword") for word in STATEMENTS)
        yield from _named(names, NODE)
        return
    key = _key(tokens)
    if key:
        yield from (Proposal(word, "value") for word in _VALUES.get(key, ()))
        if key in ("after", "nodes"):
            yield from _named(names, NODE)
        return
    first = tokens[0].type
    fits = accepted([token.type for token in tokens])
    yield from _reserved(first, fits)
    if "KEY" in fits:
        yield from _properties(tokens)
    if "TAGS" in fits:
        yield Proposal("tags=", "property", "names of groups")
    if fits & {"NAME", "INSTANCE"}:
        yield from _where_names_stand(tokens, names)


def _reserved(first: str, fits: frozenset[str]) -> Iterator[Proposal]:
    known = [*ACTIONS.items(), *RESERVED.items()]
    if first == "EXPECT":
        known += [*EXPECTED.items(), *((word.lower(), word) for word in _BY_PLACE)]
    if first == "WHEN":
        known += [*CONDITIONS.items(), *CONDITION_WORDS.items()]
    if first == "FIGURE":
        known += FIGURES.items()
    if first == "SERVICE":
        known += ((word, "FLAG") for word in OF_SERVICES)
    yield from (Proposal(word, "keyword") for word, kind in known if kind in fits)


def _properties(tokens: Sequence[Token]) -> Iterator[Proposal]:
    """Those that the statement does not have yet, with what they take."""
    had = {token.text.rstrip("= \t\u00a0") for token in tokens if token.type == "KEY"}
    words: Sequence[str] = _PROPERTIES.get(tokens[0].type, ())
    if not words and any(token.type in ("SET", "RAMP") for token in tokens):
        words = (*SET_PROPERTIES, "only", *HOST_WORDS)
    elif not words:
        words = ("only",)
    for word in words:
        if word not in had and word != "tags":
            kind = _kind_of(word)
            units = f" ({', '.join(_UNITS[kind])})" if kind in _UNITS else ""
            yield Proposal(f"{word}=", "property", f"{kind}{units}")


def _where_names_stand(
    tokens: Sequence[Token], names: Sequence[DeclaredName]
) -> Iterator[Proposal]:
    first, last = tokens[0].type, tokens[-1].type
    if first in _AFTER:
        yield from (Proposal(word, "value") for word in _AFTER[first])
    elif last == "TAGS" or any(token.type == "TAGS" for token in tokens[-2:]):
        yield from _named(names, TAG)
    elif first in ("SERVICE", "EXTERNAL", "BRIDGE", "BRIDGES", "LAN", "AIR", "BOTTLENECK", "NODE"):
        return  # a new name
    else:
        if last == "MEASURE":
            yield from (Proposal(word, "keyword") for word in STATISTICS)
        yield from _named(names, NODE)


def _named(names: Iterable[DeclaredName], kind: str) -> Iterator[Proposal]:
    return (Proposal(one.text, one.kind) for one in names if one.kind == kind)
