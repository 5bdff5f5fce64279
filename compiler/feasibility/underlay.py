"""TS0920: round trips that are shorter than the network between two machines allows (`--underlay`).

Input: the finished plan, whose routes decide what a round trip is. All pairs are composed in each
state of the network in which a delay or a link has changed; where that is too much, in as many of
them as `ROWS` allows, evenly spread, the first and the last among them, and the warning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.feasibility.statement_places import StatementPlaces
from compiler.phrases import moment, number
from compiler.plan.format import MAX_INT
from compiler.plan.paths.collapse import Collapse
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from tdl import ast
from tdl.diagnostics import Sink

ROWS = 8_000  # from one instance to all others; 2,668 of them take 0.3 s
MOST = 5  # pairs of services that are reported one by one

_Pair = tuple[int, int]


@dataclass(slots=True)
class Short:
    """What was found between two services: the shortest round trip, and who else is too near."""

    rtt_ns: int
    pair: _Pair
    at_ns: int
    pairs: set[_Pair]


def warn(plan: Plan, underlay_ns: int, places: StatementPlaces, sink: Sink) -> None:
    least_ns, nearest = _least(plan)
    if least_ns >= underlay_ns:
        return
    moments, left_out = _moments(plan)
    found = find(plan, moments, underlay_ns)
    looked = f"looked at {len(moments)} of {len(moments) + left_out} states"
    if not found and left_out:
        message = (
            f"no round trip is below the underlay's {moment(underlay_ns)} as far as could be seen: "
            f"{looked}, and this link may be short enough in others"
        )
        sink.warning("TS0920", places.link(nearest).span, message)
    order = sorted(found.items(), key=lambda item: (item[1].rtt_ns, item[1].pair))
    for services, short in order[:MOST]:
        span = _place(plan, short, places)
        message = _message(plan, services, short, underlay_ns)
        message += f" ({looked})" if left_out else ""
        sink.warning("TS0920", span, message, "raise the latency, or keep them on one machine")
    if len(order) > MOST:
        more = sum(len(short.pairs) for _, short in order[MOST:])
        message = (
            f"{number(more, 'more pair')} of instances, of {len(order) - MOST} other pairs of "
            f"services, are nearer than the {moment(underlay_ns)} of the underlay"
        )
        sink.warning("TS0920", _place(plan, order[MOST][1], places), message)


def _least(plan: Plan) -> tuple[int, int]:
    """What no round trip is below at any time, and the link to blame for it; linear.

    A round trip leads out of and into both instances. Their own links are what it is made of at
    least: two for each, or the same two for both where instances are linked directly.
    """
    links = plan.topology.links
    delays = [link.state.delay_ns for link in links]
    for epoch in plan.epochs:
        for index, state in epoch.links:
            delays[index] = min(delays[index], state.delay_ns)
    out: dict[int, tuple[int, int]] = {}  # instance -> least delay of its links, and which
    into: dict[int, int] = {}
    direct = False
    for index, link in enumerate(links):
        sends, hears = (plan.topology.nodes[end].service >= 0 for end in (link.src, link.dst))
        direct = direct or (sends and hears)
        if sends:
            out[link.src] = min(out.get(link.src, (delays[index], index)), (delays[index], index))
        if hears:
            into[link.dst] = min(into.get(link.dst, delays[index]), delays[index])
    both = sorted((delay + into[node], link) for node, (delay, link) in out.items())
    if len(both) < 2:
        return MAX_INT, 0
    return both[0][0] + (0 if direct else both[1][0]), both[0][1]


def find(plan: Plan, moments: Iterable[int], underlay_ns: int) -> dict[_Pair, Short]:
    """By pair of services: who is nearer than `underlay_ns` at one of these moments."""
    collapse = Collapse(plan.topology)
    found: dict[_Pair, Short] = {}
    for at_ns in moments:
        state = plan.state_at(at_ns)
        for pair, rtt_ns in _too_short(collapse, state, underlay_ns):
            _note(found, plan, state, pair, rtt_ns)
    return found


def _moments(plan: Plan) -> tuple[list[int], int]:
    """When to look, and how many moments of change are left out."""
    before: dict[int, tuple[bool, int]] = {}
    found = []
    for epoch in plan.epochs:
        now = {link: (state.up, state.delay_ns) for link, state in epoch.links}
        if epoch.index == 0 or any(before.get(link) != state for link, state in now.items()):
            found.append(epoch.at_ns)
        before.update(now)
    instances = sum(node.service >= 0 for node in plan.topology.nodes)
    room = max(ROWS // max(instances, 1), 1)
    if len(found) <= room:
        return found, 0
    last, steps = len(found) - 1, max(room - 1, 1)
    chosen = sorted({found[last * step // steps] for step in range(room)})
    return chosen, len(found) - len(chosen)


def _too_short(
    collapse: Collapse, state: NetworkState, underlay_ns: int
) -> Iterator[tuple[_Pair, int]]:
    """Pairs of instances with a round trip below the underlay's, in this state.

    One of the two ways then takes less than half of that, which few pairs do.
    """
    everybody = range(collapse.core.endpoints)
    delays, hops = [], []
    for row in collapse.rows(state, everybody):
        delays.append(row.totals.delay_ns)
        hops.append(row.hops)
    for a in everybody:
        near = [b for b, delay in enumerate(delays[a]) if 2 * delay < underlay_ns and hops[a][b]]
        for b in near:
            there, back = delays[a][b], delays[b][a]
            if not hops[b][a] or there + back >= underlay_ns:
                continue
            if a < b or 2 * back >= underlay_ns:  # else it is found from the other end
                yield (min(a, b), max(a, b)), there + back


def _note(
    found: dict[_Pair, Short], plan: Plan, state: NetworkState, pair: _Pair, rtt_ns: int
) -> None:
    a, b = (plan.topology.nodes[node].service for node in pair)
    short = found.get((a, b))
    if short is None:
        found[a, b] = Short(rtt_ns, pair, state.at_ns, {pair})
        return
    short.pairs.add(pair)
    if (rtt_ns, state.at_ns, pair) < (short.rtt_ns, short.at_ns, short.pair):
        short.rtt_ns, short.pair, short.at_ns = rtt_ns, pair, state.at_ns


def _message(plan: Plan, services: _Pair, short: Short, underlay_ns: int) -> str:
    nodes = plan.topology.nodes
    a, b = (nodes[node].name for node in short.pair)
    message = (
        f"the round trip of {a} and {b} takes {moment(short.rtt_ns)} at {moment(short.at_ns)}, the "
        f"underlay's {moment(underlay_ns)}"
    )
    others = len(short.pairs) - 1
    if others:
        one, other = (plan.topology.services[service].name for service in services)
        kind = repr(one) if one == other else f"{one!r} and {other!r}"
        are = "is" if others == 1 else "are"
        message += f"; {number(others, 'more pair')} of {kind} {are} too near"
    return message


def _place(plan: Plan, short: Short, places: StatementPlaces) -> ast.Span:
    """The declaration of the first link of the way."""
    way = Paths(plan.state_at(short.at_ns)).path(*short.pair)
    return places.link(way.links[0]).span
