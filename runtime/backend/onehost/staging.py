"""Turns plan state into pktd lines (docs/pktd.md): declarations, deltas, routes.

Node and link numbers are the plan's indices, so nothing is translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.plan.properties import LinkState, has_rare
from compiler.plan.routes.behind import RouteGroup
from compiler.plan.types import Link, Topology
from runtime.datapath import dialect

LINE_BYTES = 60_000  # below pktd's 65,536


def _state(state: LinkState, *, whole: bool = False) -> str:
    return f"{dialect.properties(state, whole=whole)} up={int(state.up)}"


def link_line(index: int, link: Link, state: LinkState) -> str:
    return f"link {index} {link.src} {link.dst} {_state(state)} seed={link.seed}"


def _set_line(index: int, state: LinkState, rare: set[int]) -> str:
    whole = index in rare
    (rare.add if has_rare(state) else rare.discard)(index)
    return f"set {index} {_state(state, whole=whole)}"


def declaration_lines(topology: Topology, states: Sequence[LinkState]) -> Iterator[str]:
    """Every node and every link, the latter in the given states."""
    for index, node in enumerate(topology.nodes):
        answers = node.service < 0 and bool(node.ipv4 or node.ipv6)
        yield dialect.node_line(index, node.ipv4, node.ipv6, hop=answers)
    for index, (link, state) in enumerate(zip(topology.links, states, strict=True)):
        yield link_line(index, link, state)


def _filled(head: str, dests: Iterable[str]) -> Iterator[str]:
    """`head` and as many words a line as fit."""
    line, room = [head], LINE_BYTES - len(head)
    for word in dests:
        if len(word) + 1 > room:
            yield " ".join(line)
            line, room = [head], LINE_BYTES - len(head)
        line.append(word)
        room -= len(word) + 1
    if len(line) > 1:
        yield " ".join(line)


def route_lines(groups: Iterable[RouteGroup]) -> Iterator[str]:
    """`route` for single destinations, `routes` as soon as there is a range."""
    for group in groups:
        hop = "-" if group.link < 0 else str(group.link)
        if all(first == last for first, last in group.ranges):
            dests = (str(first) for first, _ in group.ranges)
            yield from _filled(f"route {group.node} {hop}", dests)
        else:
            dests = (f"{first}-{last}" for first, last in group.ranges)
            yield from _filled(f"routes {group.node} {hop}", dests)


def delta_lines(
    links: Iterable[tuple[int, LinkState]], groups: Iterable[RouteGroup], rare: set[int]
) -> list[str]:
    """What an epoch changes about links and routes. `rare`: links that have a rare property as the
    engine knows them; it is kept up to date."""
    lines = [_set_line(index, state, rare) for index, state in links]
    lines.extend(route_lines(groups))
    return lines
