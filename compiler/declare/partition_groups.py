"""The groups of a `partition` statement as sets of nodes."""

from __future__ import annotations

from compiler.declare.selectors import EMPTY, Resolver, Selection
from tdl import ast
from tdl.diagnostics import Sink


def resolve_groups(
    action: ast.Partition, resolver: Resolver, sink: Sink
) -> tuple[tuple[int, ...], ...] | None:
    """The nodes of each group, sorted; None after an error. () if a tag is undeclared (a warning).

    A tag stands for the services and bridges that carry it. An instance named by itself belongs to
    its own group even where its service is named in another one.
    """
    failed = empty = False
    side_of: dict[int, tuple[int, bool]] = {}
    for side, members in enumerate(action.groups):
        for member in members:
            found = resolver.resolve(member)
            if found is None:
                failed = True
            elif found is EMPTY:
                empty = True
            elif not _add(side_of, side, member, found, resolver, sink):
                failed = True
    if failed:
        return None
    groups = tuple(
        tuple(sorted(node for node, (where, _) in side_of.items() if where == side))
        for side in range(len(action.groups))
    )
    if empty:
        return ()
    return groups if _check_empty(action, groups, sink) else None


def _add(
    side_of: dict[int, tuple[int, bool]],
    side: int,
    member: ast.Element | ast.Tagged,
    found: Selection,
    resolver: Resolver,
    sink: Sink,
) -> bool:
    exact = bool(found.instances)
    nodes = [*found.instances, *found.bridges]
    for service in found.services:
        nodes += resolver.layout.instances[service]
    if not nodes:
        message = f"{found.what} are links, which are on no side"
        if found.neck:
            message = f"{found.what} is on no side"
        sink.error("TS0204", member.span, message, "name services, instances or bridges")
        return False
    for node in nodes:
        other, other_exact = side_of.get(node, (side, exact))
        if other != side and exact == other_exact:
            name = resolver.layout.topology.nodes[node].name
            message = f"{name!r} is in group {other + 1} and in group {side + 1}"
            sink.error("TS0212", member.span, message, "name it once")
            return False
        if other == side or exact:
            side_of[node] = (side, exact or other_exact)
    return True


def _check_empty(action: ast.Partition, groups: tuple[tuple[int, ...], ...], sink: Sink) -> bool:
    for side, group in enumerate(groups):
        if not group:
            members = action.groups[side]
            span = members[0].span if members else action.span
            message = f"group {side + 1} has no member of its own"
            sink.error("TS0211", span, message, "name at least one element in each group")
            return False
    return True
