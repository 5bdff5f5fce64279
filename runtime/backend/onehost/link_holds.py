"""Keeps the network of an instance that leaves until its program has ended.

The plan has a leaving instance's links down and no route to or from it from the moment it leaves. A
program that is told to end still wants to say goodbye, and its host to answer, so the cut of its
access links and the end of these routes wait for its end (at most the grace); everything else of
the epoch happens on time. A crash is never held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from compiler.plan.properties import LinkState
from compiler.plan.routes.behind import RouteGroup
from compiler.plan.types import Epoch, Topology

Change = tuple[int, LinkState]


class LinkHolds:
    """Follows the links' states in the order in which epochs are staged."""

    def __init__(self, topology: Topology, states: Sequence[LinkState]) -> None:
        self._links = topology.links
        self._states = list(states)
        self._held: dict[int, set[int]] = {}  # node -> links that are to be cut after it
        self._routes: dict[int, list[RouteGroup]] = {}  # node -> routes that end after it

    def take(
        self, epoch: Epoch, leaving: Collection[int], cut: Collection[int], targets: Collection[str]
    ) -> tuple[list[Change], dict[int, set[int]]]:
        """The link changes to stage now, and those to hold back: by leaving node, links to cut.

        A link whose other end is in `cut` (gone at once), or that is itself among the `targets` of
        the epoch's events, does not wait.
        """
        now: list[Change] = []
        held: dict[int, set[int]] = {}
        for index, state in epoch.links:
            link = self._links[index]
            ends = {link.src, link.dst}
            waiting = ends.intersection(leaving)
            at_once = ends.intersection(cut) or link.name in targets
            if waiting and not at_once and self._states[index].up and not state.up:
                for node in waiting:
                    held.setdefault(node, set()).add(index)
            else:
                now.append((index, state))
            self._states[index] = state
        for node, links in held.items():
            self._held.setdefault(node, set()).update(links)
        return now, held

    def routes(self, groups: Iterable[RouteGroup], waiting: Collection[int]) -> list[RouteGroup]:
        """What to stage now of an epoch's routes; the ends of those to and from nodes in `waiting`
        are kept for `ended_routes`."""
        now = []
        for group in groups:
            held = {} if group.links or not waiting else _held_of(group, waiting)
            if not held:
                now.append(group)
                continue
            for node, dests in held.items():
                self._routes.setdefault(node, []).append(_ended(group.node, dests))
            later = {dest for dests in held.values() for dest in dests}
            if rest := [dest for dest in group.dests() if dest not in later]:
                now.append(_ended(group.node, rest))
        return now

    def ended_routes(self, nodes: Iterable[int]) -> list[RouteGroup]:
        """The ends of routes that waited for these nodes: their links are cut now, or they are
        back, whose epoch has other routes."""
        return [group for node in nodes for group in self._routes.pop(node, ())]

    def back(self, nodes: Iterable[int], staged: Iterable[Change]) -> list[Change]:
        """For nodes that are joined again: the states of links that were held, unless staged.

        Such a link may never have been cut, and may be down now for a reason of its own.
        """
        known = {index for index, _ in staged}
        links: set[int] = set()
        for node in nodes:
            links |= self._held.pop(node, set())
        return [(index, self._states[index]) for index in sorted(links - known)]


def _held_of(group: RouteGroup, waiting: Collection[int]) -> dict[int, list[int]]:
    """By the node that they wait for, destinations."""
    if group.node in waiting:
        return {group.node: group.dests()}
    return {dest: [dest] for dest in group.dests() if dest in waiting}


def _ended(node: int, dests: Iterable[int]) -> RouteGroup:
    return RouteGroup(node, (), tuple((dest, dest) for dest in dests))
