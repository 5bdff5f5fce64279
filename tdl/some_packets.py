"""Which packets an `only=` is about: `tcp:5432;from:client` to an ast.Only, and back.

A packet is one of them if it is of one of the protocols (where there are any), from one of the
sources and to one of the destinations (where there are any). Source: docs/tdl.md, "Only some
traffic".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tdl import ast
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import CLASS_PROPERTIES
from tdl.values import PPB, ValueProblem

NONE = "none"
CODE = "TS0248"
PROTOCOLS = ("icmp", "sctp", "tcp", "udp")
_WITH_PORTS = ("sctp", "tcp", "udp")
_ENDS = ("from", "to")
MAX_PROTOCOLS, MAX_PORT = 16, 65_535
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)(?:\.(0|[1-9][0-9]{0,5}))?")


def read(tokens: Sequence[Token], span: ast.Span) -> ast.Only:
    """Of a list as written. Raises ValueProblem."""
    words = [token.text for token in tokens]
    if words == [NONE]:
        return ast.Only(span)
    protocols: set[str] = set()
    ends: dict[str, dict[str, ast.Element]] = {end: {} for end in _ENDS}
    for token in tokens:
        head, colon, value = token.text.partition(":")
        if head in _ENDS:
            ends[head][value] = _element(token, head, value)
        else:
            protocols.add(_protocol(token.text, head, value, ported=bool(colon)))
    if len(protocols) > MAX_PROTOCOLS:
        raise ValueProblem(CODE, f"only= has at most {MAX_PROTOCOLS} protocols and ports")
    found = [tuple(one for _, one in sorted(ends[end].items())) for end in _ENDS]
    return ast.Only(span, tuple(sorted(protocols, key=_by_port)), *found)


def _by_port(term: str) -> tuple[str, int]:
    name, _, port = term.partition(":")
    return name, int(port or 0)


def _protocol(text: str, name: str, port: str, *, ported: bool) -> str:
    if text == NONE:
        raise ValueProblem(CODE, "none stands alone", "it ends what an only= has begun")
    if "|" in text:
        raise ValueProblem(CODE, f"'{text}' is no list", "write ; between them: tcp:5432;udp")
    if name not in PROTOCOLS:
        known = (*PROTOCOLS, *_ENDS)
        hint = did_you_mean(name, known) or "such as tcp, udp:53, icmp, from:NAME, to:NAME"
        raise ValueProblem(CODE, f"no packets are '{text}'", hint)
    if ported and name not in _WITH_PORTS:
        raise ValueProblem(CODE, f"{name} has no ports", f"write {name}")
    if ported and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= MAX_PORT):
        raise ValueProblem(CODE, f"'{port}' is no port", f"a port is 1 to {MAX_PORT}")
    return f"{name}:{int(port)}" if ported else name


def _element(token: Token, head: str, value: str) -> ast.Element:
    match = _ELEMENT.fullmatch(value)
    if match is None:
        hint = f"write {head}: and a service or an instance, such as {head}:db.0"
        raise ValueProblem(CODE, f"'{value}' is no name", hint)
    span = token.part(len(head) + 1, len(token.text))
    index = None if match[2] is None else int(match[2])
    return ast.Element(ast.Name(match[1], span), span, index)


def cut_word(verb: str) -> str:
    """The property that an action without values sets to 100 %."""
    return "reject" if verb == "reject" else "loss"


def cut(verb: str, span: ast.Span, only: ast.Only | None) -> ast.Set:
    """What `leave only=…`, `partition … only=…` and `reject` make of links."""
    name = ast.Name(cut_word(verb), span)
    return ast.Set((ast.Assignment(name, ast.Op.ASSIGN, PPB, span),), span, only, verb)


def check_properties(only: ast.Only, words: Sequence[str], verb: str) -> None:
    """What an action with it changes. Raises ValueProblem."""
    if only.is_none and verb != "set":
        message = f"only=none names no packets that {verb} could be about"
        raise ValueProblem(CODE, message, "'set only=none' ends what an only= has begun")
    if only.is_none and words:
        raise ValueProblem(CODE, "only=none stands alone", "write another set for the rest")
    if not only.is_none and not words:
        hint = "write what they meet, such as loss=10%"
        raise ValueProblem(CODE, "only= is about something that changes", hint)
    for word in words:
        if word not in CLASS_PROPERTIES:
            hint = f"of some packets only {', '.join(CLASS_PROPERTIES)} can be others"
            raise ValueProblem(CODE, f"{word} is of all packets of a link", hint)


def written(only: ast.Only) -> str:
    if only.is_none:
        return NONE
    sources = [f"from:{_name(one)}" for one in only.sources]
    dests = [f"to:{_name(one)}" for one in only.dests]
    return ";".join([*only.protocols, *sources, *dests])


def _name(element: ast.Element) -> str:
    name = element.name.text
    return name if element.index is None else f"{name}.{element.index}"
