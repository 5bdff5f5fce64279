"""Which hosts have to know of which flows: those that share a link with limited rate.

Input: the network in one epoch, and which host each instance is on. Output: for every link a bit
mask of the hosts from whose instances a path leads over it (bit h: host h). A flow is of interest
to the hosts in the masks of the links on its path, because one of theirs may compete with it there.

Algorithm: routes towards one anchor form a tree; the masks of the nodes flow down it. In C
(tcal_c/share/interest.c), for 64 hosts at a time, one pass over the routing table. An epoch in
which no route changes, and no link but in its figures, takes the masks of the one before.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Sequence

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.routes.core import Core
from compiler.plan.routes.tsroutes import no_memory
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology
from runtime.agent.share import tsshare

_AT_ONCE = 64  # hosts


class _Net:
    """The shape of a topology, as the library keeps it."""

    def __init__(self, topology: Topology, core: Core) -> None:
        self.core = core
        self.library = tsshare.library()
        self.handle = self.library.tsshare_net_new(*core.shape(topology))
        if not self.handle:
            raise no_memory("for finding out which hosts share which links")
        weakref.finalize(self, self.library.tsshare_net_free, self.handle)


class Interest:
    """Answers for one epoch. Raises PlanError for routes that cannot be followed."""

    def __init__(
        self,
        state: NetworkState,
        placement: Sequence[int],
        hosts: int = 0,
        previous: Interest | None = None,
    ) -> None:
        """`placement` is the host of each node, -1 for bridges; `hosts` their number, if some may
        be without instances. `previous` is that of an epoch before, to save time."""
        self.epoch = state.epoch
        self.instances = state.core.endpoints
        self.placement = tuple(placement[: self.instances])
        self.hosts = hosts or max(self.placement, default=-1) + 1
        self._table = state.table
        self._up = array("B", [link.up for link in state.links])
        self._limited = array("B", [link.up and link.rate_bps > 0 for link in state.links])
        self._net: _Net
        same = previous is not None and previous._net.core is state.core
        self._net = previous._net if previous and same else _Net(state.topology, state.core)
        self._parts: list[array[int]]  # the masks of 64 hosts each
        self._flows: dict[int, int]  # of paths that were asked for
        self._neighbours: dict[int, int]
        if previous and same and self._alike(previous):
            self._parts, self._flows = previous._parts, previous._flows
            self._neighbours = previous._neighbours
        else:
            self._parts = [self._part(first) for first in range(0, self.hosts, _AT_ONCE)]
            self._flows, self._neighbours = {}, {}

    def _alike(self, other: Interest) -> bool:
        return (
            self._up == other._up
            and self._limited == other._limited
            and (self.placement, self.hosts) == (other.placement, other.hosts)
            and (self._table is other._table or self._table == other._table)
        )

    def _part(self, first: int) -> array[int]:
        """The masks of hosts `first` to `first` + 63."""
        masks = array("Q", [0]) * len(self._up)
        failed = self._net.library.tsshare_interest(
            self._net.handle,
            self._table,
            self._up,
            self._limited,
            array("I", self.placement),
            first,
            masks,
        )
        if failed:
            raise self._wrong()
        return masks

    def _wrong(self) -> PlanError:
        return PlanError(ROUTES, f"epoch {self.epoch} has routes that cannot be followed")

    def of_link(self, link: int) -> int:
        """The hosts with a path over this link; 0 if it is down or its rate is not limited."""
        mask = 0
        for place, part in enumerate(self._parts):
            mask |= part[link] << _AT_ONCE * place
        return mask

    def of_flow(self, src: int, dst: int) -> int:
        """The hosts, but that of `src`, with a path that shares a limited link with this one."""
        return self.of_flows([src * self.instances + dst])[0]

    def of_flows(self, paths: Sequence[int]) -> list[int]:
        """of_flow() of many paths, each src × instances + dst."""
        known = self._flows
        new = [path for path in paths if path not in known]
        if new:
            srcs = array("I", [path // self.instances for path in new])
            dsts = array("I", [path % self.instances for path in new])
            masks = [0] * len(new)
            for place, part in enumerate(self._parts):
                for at, mask in enumerate(self._along(part, srcs, dsts)):
                    masks[at] |= mask << _AT_ONCE * place
            placement = self.placement
            for path, src, mask in zip(new, srcs, masks, strict=True):
                known[path] = mask & ~(1 << placement[src])
        return [known[path] for path in paths]

    def _along(self, part: array[int], srcs: array[int], dsts: array[int]) -> array[int]:
        found = array("Q", [0]) * len(srcs)
        net = self._net
        failed = net.library.tsshare_interest_paths(
            net.handle, self._table, self._up, part, len(srcs), srcs, dsts, found
        )
        if failed:
            raise self._wrong()
        return found

    def neighbours(self, host: int) -> int:
        """The other hosts whose flows may ever share a limited link with one of this host."""
        found = self._neighbours.get(host)
        if found is None:
            own = 1 << host
            found = 0
            for link in range(len(self._up)):
                mask = self.of_link(link)
                if mask & own:
                    found |= mask
            found = self._neighbours[host] = found & ~own
        return found
