"""Turns plan state into pktd lines (docs/pktd.md): declarations, deltas, routes.

Node and link numbers are the plan's indices, so nothing is translated but the names in a class of
packets. Links that programs lead (`led`) are taken up by no line of here: that the plan has them up
says that a program may (runtime/driver/link_requests.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from compiler.plan import packet_class
from compiler.plan.parts import delay_tables
from compiler.plan.parts.traces import head_words
from compiler.plan.properties import LinkState, has_rare
from compiler.plan.routes.behind import Links, RouteGroup
from compiler.plan.routes.core import Core
from compiler.plan.types import (
    COMMON_MAC,
    Link,
    Node,
    PlannedTrace,
    Topology,
    device_macs,
    interfaces,
)
from runtime.datapath import dialect

LINE_BYTES = 60_000  # below pktd's 65,536


Numbers = Mapping[str, Sequence[int]]


def numbers(nodes: Sequence[Node]) -> Numbers:
    """By name the node, and of an instance those of its further interfaces, too."""
    found = {node.name: [index] for index, node in enumerate(nodes)}
    for owner, further in interfaces(nodes).items():
        found[nodes[owner].name] += further
    return found


def numbered_ends(state: LinkState, numbers: Numbers) -> LinkState:
    """Its class of packets as pktd reads it: with numbers of nodes."""
    return state._replace(only=packet_class.numbered(state.only, numbers)) if state.only else state


def _state(state: LinkState, *, whole: bool = False) -> str:
    return f"{dialect.properties(state, whole=whole)} up={int(state.up)}"


def link_line(index: int, link: Link, state: LinkState, led: Collection[int] = ()) -> str:
    state = state._replace(up=False) if index in led else state
    return f"link {index} {link.src} {link.dst} {_state(state)} seed={link.seed}"


def _set_line(index: int, state: LinkState, rare: set[int], led: Collection[int]) -> str:
    whole = index in rare
    (rare.add if has_rare(state) else rare.discard)(index)
    if index in led and state.up:
        return f"set {index} {dialect.properties(state, whole=whole)}"
    return f"set {index} {_state(state, whole=whole)}"


def trace_lines(
    traces: Sequence[PlannedTrace], contents: Mapping[str, bytes], start_ns: int
) -> Iterator[str]:
    """Every trace of the plan, each content once. The run begins at `start_ns` of the plan."""
    known: dict[tuple[str, bool], int] = {}
    for number, trace in enumerate(traces, 1):
        data, kind = contents[trace.digest], (trace.digest, trace.holds)
        begin = f"trace {number} begin={(trace.begin_ns - start_ns) % (1 << 64)}"
        if kind in known:
            yield f"{begin} like={known[kind]}"
            continue
        known[kind] = number
        yield " ".join((begin, *head_words(data), f"hold={int(trace.holds)}"))
        for line in data.decode("ascii").splitlines()[1:]:
            yield f"steps {number} {line}"
        yield f"steps {number} end"


def delays_lines(contents: Mapping[str, bytes]) -> Iterator[str]:
    """Every table of delays, by the name that states of links have for it."""
    for digest in sorted(contents):
        table = delay_tables.decode(contents[digest])
        for line in contents[digest].decode("ascii").splitlines()[1:]:
            yield f"delays {table.name} {line}"
        yield f"delays {table.name} end"


def declaration_lines(
    topology: Topology, states: Sequence[LinkState], led: Collection[int] = ()
) -> Iterator[str]:
    """Every node and every link, the latter in the given states."""
    own = device_macs(topology.nodes)
    several = any(not topology.nodes[index].frames for index in own)
    for index, node in enumerate(topology.nodes):
        if node.frames:
            kind = "end" if node.service >= 0 else "air" if node.air else "lan"
            yield dialect.frame_node_line(index, kind)
            continue
        answers = node.service < 0 and bool(node.ipv4 or node.ipv6)
        external = topology.services[node.service].external if node.is_instance else None
        behind = external.behind if external is not None else ""
        mac = own.get(index, COMMON_MAC) if several and node.service >= 0 else ""
        yield dialect.node_line(index, node.ipv4, node.ipv6, hop=answers, behind=behind, mac=mac)
    ends = numbers(topology.nodes)
    for index, (link, state) in enumerate(zip(topology.links, states, strict=True)):
        yield link_line(index, link, numbered_ends(state, ends), led)


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


def numbered(core: Core) -> dict[Links, int]:
    """Every group of links that flows are shared out over, and its number."""
    every = (links for groups in core.groups for links in groups)
    return {links: number for number, links in enumerate(every)}


def group_lines(topology: Topology, numbers: Mapping[Links, int]) -> Iterator[str]:
    for links, number in numbers.items():
        yield f"group {number} {topology.links[links[0]].src} {' '.join(map(str, links))}"


def route_lines(groups: Iterable[RouteGroup], numbers: Mapping[Links, int]) -> Iterator[str]:
    """`route` for single destinations, `routes` as soon as there is a range."""
    for group in groups:
        hop = f"g{numbers[group.links]}" if len(group.links) > 1 else "-"
        if len(group.links) == 1:
            hop = str(group.links[0])
        if all(first == last for first, last in group.ranges):
            dests = (str(first) for first, _ in group.ranges)
            yield from _filled(f"route {group.node} {hop}", dests)
        else:
            dests = (f"{first}-{last}" for first, last in group.ranges)
            yield from _filled(f"routes {group.node} {hop}", dests)


def delta_lines(
    links: Iterable[tuple[int, LinkState]],
    groups: Iterable[RouteGroup],
    numbers: Mapping[Links, int],
    rare: set[int],
    led: Collection[int] = (),
) -> list[str]:
    """What an epoch changes about links and routes. `rare`: links that have a rare property as the
    engine knows them; it is kept up to date."""
    lines = [_set_line(index, state, rare, led) for index, state in links]
    lines.extend(route_lines(groups, numbers))
    return lines
