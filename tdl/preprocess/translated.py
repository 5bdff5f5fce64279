"""What a file of another tool says, as statements whose words have their places in that file.

tdl/formats reads the file; here its statements become the tokens that the same text
would have in TDL, so that everything behind sees one language. Of a file with networks of its own
some statements wait for the end of the text, since they say what holds where the text says nothing:
a service that no `link` of the text places is linked to the networks that the file has for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tdl import ast
from tdl.ast import Span
from tdl.diagnostics import Severity, Sink
from tdl.tokens.lexer import LogicalLine, PlainLink, Token, logical_lines
from tdl.tokens.patterns import NAME
from tdl.tokens.words import MAX_NAME, RESERVED

_PLAIN_LINK = re.compile(rf"link ({NAME})(--|->)({NAME}) latency=([0-9]+ns)", re.ASCII)
Variable = Callable[[str], str | None]  # the value of a variable; None: it has none


class Piece(NamedTuple):
    """Words of a statement, and the place in the other file that they are from."""

    text: str
    span: Span


Line = tuple[Piece, ...]


class Attachment(NamedTuple):
    """`service` is in `network`: the link between them."""

    service: str
    network: str
    line: Line


@dataclass(frozen=True, slots=True)
class Translation:
    """`lines` are the services, or links between `services`, which are declared where the text does
    not declare one of that name. `networks` are bridges by name; `settings` are what holds unless
    the text says the same. `values` are the variables that the file has used, and what they were;
    `mentioned` the names of all."""

    lines: tuple[Line, ...] = ()
    networks: Mapping[str, Line] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    settings: tuple[Line, ...] = ()
    shared: str = ""  # the network of services that are in none
    values: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, Line] = field(default_factory=dict)


def tokens(lines: Iterable[Line], sink: Sink, note: str = "") -> Iterator[LogicalLine]:
    """Lines of tokens with the places of the other file, in the round of a loop `note`. What was
    reported of a place already is not looked at again: its line is broken."""
    reported = {one.span for one in sink.found if one.severity is Severity.ERROR}
    for line in lines:
        bad = any(piece.span in reported for piece in line)
        plain = None if bad or line[1:] else _plain_link(line[0], note)
        if plain is not None:
            yield LogicalLine(plain=plain)
            continue
        own = Sink()
        spans = tuple(_columns(line))
        for found in logical_lines(" ".join(piece.text for piece in line), own):
            yield LogicalLine(
                [_placed(one, spans, note) for one in found.tokens], [], bad or found.broken
            )
        for one in [] if bad else own.found:
            span = replace(_at(spans, one.span.col), note=note)
            sink.found.append(replace(one, span=span))


def _plain_link(piece: Piece, note: str) -> PlainLink | None:
    """What a matrix has thousands of, of which nothing but the time can be wrong."""
    found = _PLAIN_LINK.fullmatch(piece.text)
    if found is None:
        return None
    a, mark, b, latency = found.groups()
    if a == b or a in RESERVED or b in RESERVED or max(len(a), len(b)) > MAX_NAME:
        return None
    return PlainLink(a, mark, b, latency, replace(piece.span, note=note))


def _columns(line: Line) -> Iterator[tuple[int, Span]]:
    """Where each piece ends on the line, and its place."""
    end = 0
    for piece in line:
        end += len(piece.text) + 1
        yield end, piece.span


def _at(spans: Sequence[tuple[int, Span]], col: int) -> Span:
    return next((span for end, span in spans if col <= end), spans[-1][1])


def _placed(token: Token, spans: Sequence[tuple[int, Span]], note: str) -> Token:
    span = _at(spans, token.col)
    width = max(1, span.end_col - span.col)
    return token._replace(line=span.line, col=span.col, width=width, file=span.file, note=note)


def unsaid(
    found: Sequence[Translation], statements: Sequence[ast.Statement], sink: Sink
) -> Iterator[LogicalLine]:
    """What holds besides these statements, which are all that the text has."""
    if found:
        yield from tokens(_unsaid(found, statements), sink)


def _unsaid(found: Sequence[Translation], statements: Sequence[ast.Statement]) -> Iterator[Line]:
    said = {type(statement) for statement in statements}
    if ast.StartWhenReady not in said:
        yield from (line for one in found for line in one.settings[:1])
    own = {one.name.text for one in statements if isinstance(one, ast.ServiceStatement)}
    named = {name: line for one in reversed(found) for name, line in one.services.items()}
    yield from (line for name, line in named.items() if name not in own)
    networks: dict[str, Line] = {}
    for one in found:
        networks = {**one.networks, **networks}
    declared = (one for one in statements if isinstance(one, ast.Bridges))
    bridges = {name.text for one in declared for name in one.names}
    links = [one for one in statements if isinstance(one, ast.LinkStatement)]
    joined = {(end, other) for link in links for end, other in _ends(link)}
    placed = {end for end, other in joined if other in bridges - networks.keys()}
    wanted = [
        one
        for translation in found
        for one in translation.attachments
        if one.service not in placed and (one.service, one.network) not in joined
    ]
    wanted += _homeless(found, statements, {end for end, _ in joined})
    used = {one.network for one in wanted} | {other for _, other in joined}
    yield from (line for name, line in networks.items() if name in used - bridges)
    yield from (one.line for one in wanted)


def _ends(link: ast.LinkStatement) -> tuple[tuple[str, str], tuple[str, str]]:
    return (link.a.text, link.b.text), (link.b.text, link.a.text)


def _homeless(
    found: Sequence[Translation], statements: Sequence[ast.Statement], linked: set[str]
) -> Iterator[Attachment]:
    """Services that the text declares without any link are in the shared network, too."""
    shared = next((one.shared for one in found if one.shared), "")
    own = {one.service for translation in found for one in translation.attachments}
    for statement in statements if shared else ():
        if isinstance(statement, ast.ServiceStatement):
            name = statement.name.text
            if name not in own | linked:
                line = (Piece(f"link {name}--{shared}", statement.name.span),)
                yield Attachment(name, shared, line)
