"""TS0920: round trips that are shorter than the network between two machines allows (`--underlay`).

Input: the finished plan, whose routes decide what a round trip is. All pairs are composed in each
state of the network in which a delay or a link has changed; where that is too much, in as many of
them as `ROWS` allows, evenly spread, the first and the last among them, and the warning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.feasibility_places import Places
from compiler.plan.collapse import Collapse
from compiler.plan.paths import Paths
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from compiler.plan.types import LinkState
from compiler.say import moment, number
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
    link: int  # the first of the way between them
    pairs: set[_Pair]


def warn(plan: Plan, underlay_ns: int, places: Places, sink: Sink) -> None:
    moments, left_out = _moments(plan)
    found = find(plan, moments, underlay_ns)
    looked = f" (looked at {len(moments)} of {len(moments) + left_out} states)" if left_out else ""
    order = sorted(found.items(), key=lambda item: (item[1].rtt_ns, item[1].pair))
    for services, short in order[:MOST]:
        _say(plan, services, short, underlay_ns, looked, places, sink)
    if len(order) > MOST:
        more = sum(len(short.pairs) for _, short in order[MOST:])
        message = (
            f"{number(more, 'more pair')} of instances, of {len(order) - MOST} other pairs of "
            f"services, are nearer than the {moment(underlay_ns)} of the underlay"
        )
        sink.warning("TS0920", places.link(order[MOST][1].link).span, message)


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
        now = {link: _relevant(state) for link, state in epoch.links}
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


def _relevant(state: LinkState) -> tuple[bool, int]:
    return state.up, state.delay_ns


def _too_short(
    collapse: Collapse, state: NetworkState, underlay_ns: int
) -> Iterator[tuple[_Pair, int]]:
    """Pairs of instances with a round trip below the underlay's, in this state."""
    one_way: dict[_Pair, int] = {}
    for row in collapse.rows(state, range(collapse.core.instances)):
        source, hops, dests = row.source, row.hops, row.dests
        near = [i for i, delay in enumerate(row.delay_ns) if delay < underlay_ns and hops[i]]
        for i in near:
            one_way[source, dests[i]] = row.delay_ns[i]
    for (a, b), there in one_way.items():
        back = one_way.get((b, a))
        if a < b and back is not None and there + back < underlay_ns:
            yield (a, b), there + back


def _note(
    found: dict[_Pair, Short], plan: Plan, state: NetworkState, pair: _Pair, rtt_ns: int
) -> None:
    a, b = (plan.topology.nodes[node].service for node in pair)
    services = (min(a, b), max(a, b))
    short = found.get(services)
    if short is not None:
        short.pairs.add(pair)
        if rtt_ns >= short.rtt_ns:
            return
    link = Paths(state).path(*pair).links[0]
    pairs = {pair} if short is None else short.pairs
    found[services] = Short(rtt_ns, pair, state.at_ns, link, pairs)


def _say(
    plan: Plan,
    services: _Pair,
    short: Short,
    underlay_ns: int,
    looked: str,
    places: Places,
    sink: Sink,
) -> None:
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
    hint = "raise the latency, or keep them on one machine"
    sink.warning("TS0920", places.link(short.link).span, message + looked, hint)
