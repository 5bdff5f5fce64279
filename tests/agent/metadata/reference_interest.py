"""runtime.agent.metadata.interest in plain Python, for networks too large for a brute force.

Input: the network in one epoch, and which host each instance is on. Output: for every link a bit
mask of the hosts from whose instances a path leads over it (bit h: host h). A flow on a path is of
interest to the hosts in the masks of its links, because one of theirs may compete with it there.

Algorithm: routes towards one anchor form a tree. The masks of the nodes flow down it, each link
takes what passes, and a link's mask is that of all trees together. Access links are in no tree and
are added at the end. Cost: rows × columns of the routing table.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.routes.core import NO_LINK
from compiler.plan.state import NetworkState


class Interest:
    """Answers for one epoch. Raises PlanError for routes that cannot be followed."""

    def __init__(self, state: NetworkState, placement: Sequence[int], hosts: int = 0) -> None:
        """`placement` is the host of each node, -1 for bridges; `hosts` their number if known."""
        self.epoch = state.epoch
        self.instances = state.core.endpoints
        self.placement = tuple(placement[: self.instances])
        self.hosts = hosts or max(self.placement, default=-1) + 1
        self._state = state
        self._masks = _Masks(state, self.placement).all()
        self._flows: dict[tuple[int, int], int] = {}
        self._neighbours: dict[int, int] = {}

    def of_link(self, link: int) -> int:
        """The hosts with a path over this link; 0 if it is down or its rate is not limited."""
        return self._masks[link]

    def of_flow(self, src: int, dst: int, links: Sequence[int] | None = None) -> int:
        """The hosts, but that of `src`, with a path that shares a limited link with this one.

        `links` are those of the path if they are known; else they are looked up, once.
        """
        if links is not None:
            return self._of_links(src, links)
        found = self._flows.get((src, dst))
        if found is None:
            found = self._flows[src, dst] = self._of_links(src, self._links(src, dst))
        return found

    def neighbours(self, host: int) -> int:
        """The other hosts whose flows may ever share a limited link with one of this host."""
        found = self._neighbours.get(host)
        if found is None:
            own = 1 << host
            found = 0
            for mask in self._masks:
                if mask & own:
                    found |= mask
            found = self._neighbours[host] = found & ~own
        return found

    def _of_links(self, src: int, links: Sequence[int]) -> int:
        mask = 0
        for link in links:
            mask |= self._masks[link]
        return mask & ~(1 << self.placement[src])

    def _links(self, src: int, dst: int) -> list[int]:
        """Of the path; none if there is no path."""
        state, node = self._state, src
        found: list[int] = []
        while node != dst:
            links = state.next_links(node, dst)
            if not links or not state.links[links[0]].up:
                return []
            [link] = links
            found.append(link)
            node = state.topology.links[link].dst
            if len(found) > len(state.nodes):
                raise _circle(state)
        return found


def _circle(state: NetworkState) -> PlanError:
    return PlanError(ROUTES, f"epoch {state.epoch} routes in a circle")


class _Masks:
    """The masks of one state, in the making."""

    def __init__(self, state: NetworkState, placement: Sequence[int]) -> None:
        self.state = state
        self.core = core = state.core
        self.bits = [1 << host for host in placement]
        self.masks = [0] * len(state.links)
        up = [link.up for link in state.links]
        behind = [core.access_out[i] != NO_LINK for i in range(core.endpoints)]
        self.sends = [not b or up[core.access_out[i]] for i, b in enumerate(behind)]
        self.receives = [not b or up[core.access_in[i]] for i, b in enumerate(behind)]
        self.own = [0] * len(core.rows)  # row -> hosts of the instances that start there
        for instance in range(core.endpoints):
            if self.sends[instance]:
                self.own[core.row_of[core.anchor[instance]]] |= self.bits[instance]
        self.reaches = [False] * len(core.rows)  # row -> whether it has a way to another anchor

    def all(self) -> list[int]:
        for column in range(len(self.core.columns)):
            receivers = [i for i in self.core.behind[column] if self.receives[i]]
            if receivers:
                arrives = self._flow_down(column)
                self._way_in(column, receivers, arrives)
        self._way_out()
        links = self.state.links
        return [m if links[i].up and links[i].rate_bps else 0 for i, m in enumerate(self.masks)]

    def _flow_down(self, column: int) -> int:
        """Adds the tree of one anchor to the masks; returns what arrives at it from elsewhere."""
        core, width = self.core, len(self.core.columns)
        root = core.row_of[core.columns[column]]
        parent: list[int] = [-1] * len(core.rows)
        by: list[int] = [NO_LINK] * len(core.rows)
        waits = [0] * len(core.rows)
        for row in range(len(core.rows)):
            choice = self.state.table[row * width + column]
            if choice:
                by[row] = link = core.out[row][choice - 1]
                parent[row] = core.row_of[self.state.topology.links[link].dst]
                waits[parent[row]] += 1
        arrives = [0] * len(core.rows)
        ready = [row for row in range(len(core.rows)) if not waits[row]]
        for row in ready:
            if by[row] == NO_LINK:
                continue
            mask = arrives[row] | self.own[row]
            self.masks[by[row]] |= mask
            self.reaches[row] = True
            arrives[parent[row]] |= mask
            waits[parent[row]] -= 1
            if not waits[parent[row]]:
                ready.append(parent[row])
        if len(ready) < len(core.rows):
            raise _circle(self.state)
        return arrives[root]

    def _way_in(self, column: int, receivers: list[int], arrives: int) -> None:
        """The access links towards instances behind one anchor."""
        core = self.core
        senders = [i for i in core.behind[column] if self.sends[i]]
        near = 0
        several = 0  # hosts with at least two senders here
        for sender in senders:
            several |= near & self.bits[sender]
            near |= self.bits[sender]
        for receiver in receivers:
            link = core.access_in[receiver]
            if link != NO_LINK:
                others = near
                if self.sends[receiver] and not several & self.bits[receiver]:
                    others &= ~self.bits[receiver]  # nobody sends to itself
                self.masks[link] |= arrives | others

    def _way_out(self) -> None:
        """The access links from instances that can reach another one."""
        core = self.core
        for instance in range(core.endpoints):
            link = core.access_out[instance]
            if link == NO_LINK:
                continue
            near = core.behind[core.column_of[core.anchor[instance]]]
            if self.reaches[core.row_of[core.anchor[instance]]] or any(
                self.receives[other] for other in near if other != instance
            ):
                self.masks[link] |= self.bits[instance]
