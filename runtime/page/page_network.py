"""The network of the plan through time: nodes, links, and what each epoch changes.

Input: the plan in the run directory. Output: columns for a page, in plan time. At most MOST_NODES
nodes and MOST_LINKS links are drawn, and MOST_CHANGES changes listed; the plan has the rest.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import accumulate, pairwise
from typing import Any

from compiler.plan.packet_class import parse
from compiler.plan.parts import motion
from compiler.plan.parts.led_links import askers
from compiler.plan.properties import NUMBERS, LinkState, has_rare
from compiler.plan.reader import Plan
from compiler.plan.types import Node, PlannedMobility, owner_of

MOST_NODES, MOST_LINKS, MOST_CHANGES = 5_000, 10_000, 100_000
# Of the state of a link, in this order; rare ones at the end are left out where all are nothing.
_TEXTS = ("aqm", "only", "neck")
FIELDS = ("up", *(row.field for row in NUMBERS), *_TEXTS)
_RARE = sum(row.rare for row in NUMBERS) + len(_TEXTS)


def record(plan: Plan, end_ns: int | None, notes: list[str]) -> dict[str, Any]:
    """Of all nodes and links; without changes if there are more than a page draws. `end_ns`: of a
    run that ended early."""
    topology = plan.topology
    services = topology.services
    drawn = [node for node in topology.nodes if node.owner < 0]
    place_of = _places(topology.nodes)
    found: dict[str, Any] = {
        "nodes": [node.name for node in drawn],
        "services": [node.service for node in drawn],
        "service_names": [service.name for service in services],
        "links": [link.name for link in topology.links],
        "ends": [[place_of[link.src], place_of[link.dst]] for link in topology.links],
        "fields": list(FIELDS),
        "epochs": [],
        "machines": [
            [one.name, *(place_of[node] for node in (*one.members, *one.bridges))]
            for one in topology.machines
        ],
        "traces": [trace.name for trace in topology.traces],
    }
    moving = positions(plan, place_of)
    if moving is not None:
        found["positions"] = moving
    if len(drawn) > MOST_NODES or len(topology.links) > MOST_LINKS:
        notes.append(
            f"the network is not drawn: it has {len(drawn)} nodes and"
            f" {len(topology.links)} links, and a page draws {MOST_NODES} and {MOST_LINKS}"
        )
        return found
    found["epochs"] = _epochs(plan, end_ns, notes)
    return found


def _places(nodes: Sequence[Node]) -> list[int]:
    """Where each node is among those that are drawn; an interface is its instance."""
    places = accumulate((node.owner < 0 for node in nodes), initial=0)
    own = list(places)
    return [own[owner_of(nodes, index)] for index in range(len(nodes))]


def _epochs(plan: Plan, end_ns: int | None, notes: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    changes = 0
    nodes = plan.topology.nodes
    place_of = _places(nodes)
    for epoch in plan.epochs:
        if end_ns is not None and epoch.at_ns > end_ns:
            break
        changes += len(epoch.nodes) + len(epoch.links)
        if found and changes > MOST_CHANGES:
            notes.append(
                f"the network is shown until {epoch.at_ns / 1e9:.3f} s: its plan has more than"
                f" {MOST_CHANGES} changes"
            )
            break
        links = [[link, *_values(state)] for link, state in epoch.links]
        found.append(
            {
                "at_ns": epoch.at_ns,
                "nodes": [[place_of[at], word] for at, word in epoch.nodes if nodes[at].owner < 0],
                "links": links,
            }
        )
    return found


def _values(state: LinkState) -> list[int | str]:
    """Numbers, of the queue's discipline the name alone, and which packets are another class."""
    values: list[int | str] = [int(getattr(state, name)) for name in FIELDS[: -len(_TEXTS)]]
    if not has_rare(state):
        return values[: len(FIELDS) - _RARE]
    return [*values, state.aqm.partition(";")[0], parse(state.only).match, state.neck]


# Where nodes that move are over time: of each at most MOST_POINTS positions, and of all together
# MOST_PLACES. They are times in ns from 0 on, and for each time a position of each node in m, None
# where it is not there yet. `reach` is by what they reach each other; None where the file's word on
# that has more than MOST_SIGHTS changes.

MOST_POINTS, MOST_PLACES, MOST_SIGHTS = 2_000, 100_000, 500_000
MM = 1000


def positions(plan: Plan, drawn: Sequence[int]) -> dict[str, Any] | None:
    """None where nothing moves. `drawn`: which of the page's nodes each node of the plan is."""
    if not plan.topology.mobility:
        return None
    (moving,) = plan.topology.mobility
    found = motion.decode(plan.attached.motions[moving.digest])
    most = max(min(MOST_POINTS, MOST_PLACES // len(found.places)), 1)
    every = -(-len(found.times) // most)
    steps = range(0, len(found.times), every)
    names = askers(plan.topology)
    asking = {"asking": [names[node][0] for node in moving.nodes]} if names else {}
    return {
        **asking,
        "line": _line_of_movement(plan, set(moving.nodes)),
        "nodes": [drawn[node] for node in moving.nodes],
        "reach": _reach(moving, found, steps),
        "times": [found.times[step] for step in steps],
        "places": [
            [None if track[step] is None else _metres(track[step]) for track in found.places]
            for step in steps
        ],
    }


def _line_of_movement(plan: Plan, moving: Set[int]) -> int:
    """Of the statement by which links between nodes that move come and go; 0: none does."""
    nodes, topology = plan.topology.nodes, plan.topology
    between = {
        link.name
        for link in topology.links
        if {owner_of(nodes, end) for end in (link.src, link.dst)} <= moving
    }
    for event in plan.events:
        if event.kind in ("link_up", "link_down") and event.target in between:
            text = plan.attached.includes.get(event.file, plan.source)
            said = text.splitlines()[event.line - 1 : event.line]
            if said and said[0].split()[:1] == [b"mobility"]:
                return event.line
    return 0


def _reach(
    moving: PlannedMobility, found: motion.Motion, steps: Sequence[int]
) -> dict[str, Any] | None:
    """Distances in m, `bands` from which on there is a rate (1) or none, and by time which pairs
    the file has see each other that did not before, or the other way round."""
    range_m, body_m = (None if mm is None else mm / MM for mm in (moving.range_mm, moving.body_mm))
    bands = [[mm / MM, int(bps > 0)] for mm, bps, _ in found.rates]
    sees = None
    if found.sights is not None:
        told = [frozenset[int](), *(found.sights[step] for step in steps)]
        sees = [sorted(now ^ before) for before, now in pairwise(told)]
        if sum(map(len, sees)) > MOST_SIGHTS:
            return None
    return {"range_m": range_m, "body_m": body_m, "bands": bands, "sees": sees}


def _metres(place: motion.Point | None) -> list[int]:
    return [round(axis / MM) for axis in place or ()]
