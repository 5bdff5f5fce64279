"""The public dialect: what a file of it means, in the words of the language.

`share`: all instances of a service stand behind one common link. Input: the tree. Output: the tree
in which a bridge NAME-share stands in front of such a service, has the service's links, and is
linked to it without delay and limit; events that name a link of the service mean that of the
bridge. A link of a single instance (`link server.0--s1`) stays its own.

`dialect kollaps`: an action on services that has no number concerns one instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tdl import ast

_COUNTED = (ast.Join, ast.Leave, ast.Crash, ast.Disconnect, ast.Reconnect)  # of that tool


def with_one_each(file: ast.File) -> ast.File:
    if not any(isinstance(one, ast.Dialect) for one in file.statements):
        return file
    services = {one.name.text for one in file.statements if isinstance(one, ast.ServiceStatement)}
    return ast.File(tuple(_of_one(one, services) for one in file.statements))


def _of_one(statement: ast.Statement, services: set[str]) -> ast.Statement:
    if not isinstance(statement, ast.Dynamic):
        return statement
    action, about = statement.action, statement.selector
    whole = isinstance(about, ast.Everything | ast.Tagged)
    whole |= isinstance(about, ast.Element) and about.index is None and about.name.text in services
    if not (whole and isinstance(action, _COUNTED) and action.count is None):
        return statement
    one = ast.Count(ast.Unit.NUMBER, 1, action.span)
    return replace(statement, action=replace(action, count=one))


def with_common_links(file: ast.File) -> ast.File:
    services = (s for s in file.statements if isinstance(s, ast.ServiceStatement))
    shared = {service.name.text: service for service in services if shares(service)}
    linked = {name.text for name in _whole_ends(file.statements)} & shared.keys()
    if not linked:
        return file
    bridges = {name: _bridge(shared[name]) for name in shared if name in linked}
    statements = [_behind(statement, bridges) for statement in file.statements]
    for name, bridge in bridges.items():
        service = shared[name]
        statements.append(ast.Bridges((bridge,), bridge.span))
        statements.append(ast.LinkStatement(service.name, bridge, bridge.span))
    return ast.File(tuple(statements))


def shares(service: ast.ServiceStatement) -> bool:
    return any(word.text == "share" for word, _ in service.options)


def _whole_ends(statements: Iterable[ast.Statement]) -> Iterable[ast.Name]:
    for link in statements:
        if isinstance(link, ast.LinkStatement):
            ends = ((link.a, link.a_index), (link.b, link.b_index))
            yield from (name for name, index in ends if index is None)


def _bridge(service: ast.ServiceStatement) -> ast.Name:
    (span,) = (word.span for word, _ in service.options if word.text == "share")
    return ast.Name(f"{service.name.text}-share", span)


def _behind(statement: ast.Statement, bridges: dict[str, ast.Name]) -> ast.Statement:
    """The same with bridges where it names links of services that share one."""

    def at(name: ast.Name, index: int | None) -> ast.Name:
        known = bridges.get(name.text) if index is None else None
        return name if known is None else ast.Name(known.text, name.span)

    if isinstance(statement, ast.LinkStatement):
        a, b = at(statement.a, statement.a_index), at(statement.b, statement.b_index)
        return replace(statement, a=a, b=b)
    if isinstance(statement, ast.Dynamic):
        link, written = ast.drawn_from(statement.selector), statement.selector
        if isinstance(link, ast.LinkSelector):
            first, second = (replace(end, name=at(end.name, end.index)) for end in (link.a, link.b))
            behind = replace(link, a=first, b=second)
            if isinstance(written, ast.Some):
                return replace(statement, selector=replace(written, of=behind))
            return replace(statement, selector=behind)
    return statement
