"""Why one instance cannot reach another: what is down on the way, and since which event.

Input: a plan's history and an epoch in which there is no path. Output: the elements (instances,
bridges, links) that are down on the way that needs the fewest of them to come up again. Algorithm:
Dijkstra over all links, up or not; the length of a link is what is down about it: the direction
itself, and the node it leads to. Of equal ways the one with fewer links, then the first by names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.analysis.history import History
from compiler.plan.event_kinds import DOWN_KINDS, UP, UP_KINDS
from compiler.plan.format import ROUTES, PlanError
from compiler.plan.graph_search import Key, easiest_way
from compiler.plan.types import Event, owner_of


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One element that is down."""

    element: str  # 'server.3', 's1', 'a.0->s1'
    kind: str  # 'instance' | 'bridge' | 'link'
    state: str  # 'down' | 'cut' (disconnected)
    since: Event | None  # what took it down; None: it was never there
    until: Event | None  # what brings it back; None: nothing does


class _Happenings:
    """Which events took elements down and which bring them back, around one epoch."""

    def __init__(self, history: History, epoch: int) -> None:
        self.since: dict[str, Event] = {}  # the last that concerns whether it is there
        self.until: dict[str, Event] = {}
        self.down: set[str] = set()  # link directions that are down themselves
        last = history.epochs[epoch].last_seq
        for event in history.plan.events:
            if event.seq < last:
                if event.kind in DOWN_KINDS or event.kind in UP_KINDS:
                    self.since[event.target] = event
            elif event.kind in UP_KINDS:
                self.until.setdefault(event.target, event)
        self.down = {name for name, event in self.since.items() if event.kind == "link_down"}

    def obstacle(self, element: str, kind: str, state: str) -> Obstacle:
        return Obstacle(element, kind, state, self.since.get(element), self.until.get(element))


def obstacles(history: History, src: int, dst: int, epoch: int) -> tuple[Obstacle, ...]:
    """In order from `src` to `dst`; () when no links lead from one to the other at all."""
    happened = _Happenings(history, epoch)
    way = _easiest(history, src, dst, epoch, happened.down)
    if way is None:
        return ()
    topology = history.topology
    found = [*_of_node(history, src, epoch, happened)]
    for link in way:
        name = topology.links[link].name
        if name in happened.down:
            found.append(happened.obstacle(name, "link", "down"))
        found += _of_node(history, topology.links[link].dst, epoch, happened)
    if not found:
        names = f"{topology.nodes[src].name} to {topology.nodes[dst].name}"
        raise PlanError(ROUTES, f"epoch {epoch} has no route from {names}, where all links are up")
    return tuple(found)


def _of_node(history: History, node: int, epoch: int, happened: _Happenings) -> Iterable[Obstacle]:
    state = history.node(node, epoch)
    if state != UP:
        nodes = history.topology.nodes
        at = nodes[owner_of(nodes, node)]
        yield happened.obstacle(at.name, "bridge" if at.service < 0 else "instance", state)


def _easiest(history: History, src: int, dst: int, epoch: int, down: set[str]) -> list[int] | None:
    """The links of the way with the fewest obstacles; None if there is no way."""
    topology = history.topology
    leaving: dict[int, list[int]] = {}
    for index, link in enumerate(topology.links):
        leaving.setdefault(link.src, []).append(index)

    def ahead(node: int, so_far: Key, via: int) -> Iterator[tuple[Key, int, int]]:
        if node != src and topology.nodes[node].service >= 0:
            return  # only bridges forward
        heard = via >= 0 and topology.nodes[topology.links[via].src].air
        for out in leaving.get(node, ()):
            far = topology.links[out].dst
            if heard and topology.nodes[far].air:
                continue  # nor does a radio what it hears
            more = (topology.links[out].name in down) + (history.node(far, epoch) != UP)
            yield (so_far[0] + more, so_far[1] + 1, topology.nodes[far].name), far, out

    way = easiest_way(src, dst, (0, 0, topology.nodes[src].name), ahead)
    return None if way is None else [link for link, _ in way]
