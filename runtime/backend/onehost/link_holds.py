"""Keeps the network of an instance that leaves until its program has ended.

The plan has a leaving instance's links down from the moment it leaves. A program that is told to
end still wants to say goodbye, so the cut of its access links waits for its end (at most the
grace); everything else of the epoch happens on time. A crash is never held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from compiler.plan.properties import LinkState
from compiler.plan.types import Epoch, Topology

Change = tuple[int, LinkState]


class LinkHolds:
    """Follows the links' states in the order in which epochs are staged."""

    def __init__(self, topology: Topology, states: Sequence[LinkState]) -> None:
        self._links = topology.links
        self._states = list(states)
        self._held: dict[int, set[int]] = {}  # node -> links that are to be cut after it

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

    def back(self, nodes: Iterable[int], staged: Iterable[Change]) -> list[Change]:
        """For nodes that are joined again: the states of links that were held, unless staged.

        Such a link may never have been cut, and may be down now for a reason of its own.
        """
        known = {index for index, _ in staged}
        links: set[int] = set()
        for node in nodes:
            links |= self._held.pop(node, set())
        return [(index, self._states[index]) for index in sorted(links - known)]
