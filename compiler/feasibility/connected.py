"""Which instances can talk to each other in one state of the network.

Two instances are *joined* when there is a path each way, over links that are up and through bridges
only. Bridges that reach each other form a strongly connected component, so one look at the whole
network is linear in nodes and links, and in operations on sets of instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.plan.event_kinds import DOWN_KINDS, UP_KINDS
from compiler.plan.graph_search import components
from compiler.plan.types import Event, Topology

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Toggle:
    """What an event has done to one node or link; `before` is what it was."""

    link: bool
    index: int
    before: int


class Connectivity:
    """What is up now. An event is applied with `apply` and taken back with `undo`."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.node_of = {node.name: i for i, node in enumerate(topology.nodes)}
        self.link_of = {link.name: i for i, link in enumerate(topology.links)}
        self.instances = sum(node.service >= 0 for node in topology.nodes)
        count = len(topology.nodes)
        self.nodes = bytearray(count)
        self.nodes[self.instances :] = b"\1" * (count - self.instances)
        self.links = bytearray(b"\1" * len(topology.links))
        self.ends = [(link.src, link.dst) for link in topology.links]
        self.out: list[list[int]] = [[] for _ in range(count)]
        for link, (src, _) in enumerate(self.ends):
            self.out[src].append(link)

    def apply(self, event: Event) -> Toggle | None:
        """None for an event that takes nothing up or down."""
        up = event.kind in UP_KINDS
        if not up and event.kind not in DOWN_KINDS:
            return None
        link = event.kind in ("link_up", "link_down")
        states = self.links if link else self.nodes
        index = (self.link_of if link else self.node_of)[event.target]
        toggle = Toggle(link, index, states[index])
        states[index] = up
        return toggle

    def undo(self, toggle: Toggle) -> None:
        (self.links if toggle.link else self.nodes)[toggle.index] = toggle.before

    def ahead(self, bridge: int) -> Iterator[int]:
        """The bridges to which links lead that are up."""
        for link in self.out[bridge]:
            far = self.ends[link][1]
            if far >= self.instances and self.links[link] and self.nodes[far]:
                yield far

    def usable(self, link: int) -> bool:
        src, dst = self.ends[link]
        return bool(self.links[link] and self.nodes[src] and self.nodes[dst])


def _numbered(network: Connectivity) -> tuple[list[int], int]:
    """Of each node the number of its component, and how many there are: NOWHERE for a bridge that
    is down and for instances. Links lead to the same or a smaller number."""
    of, count = [NOWHERE] * len(network.nodes), 0
    bridges = range(network.instances, len(network.nodes))
    for component in components(filter(network.nodes.__getitem__, bridges), network.ahead):
        for bridge in component:
            of[bridge] = count
        count += 1
    return of, count


class JoinedPairs:
    """Who has a path to whom, as the network is now. Sets of instances are bits of a number."""

    def __init__(self, network: Connectivity) -> None:
        self._net = network
        self._of, count = _numbered(network)
        of = self._of
        self._to, came = [0] * count, [0] * count
        ahead: list[set[int]] = [set() for _ in came]
        usable = [ends for link, ends in enumerate(network.ends) if network.usable(link)]
        for src, dst in usable:
            if of[src] == NOWHERE and of[dst] != NOWHERE:
                came[of[dst]] |= 1 << src
            elif of[dst] == NOWHERE and of[src] != NOWHERE:
                self._to[of[src]] |= 1 << dst
            elif of[src] != of[dst]:
                ahead[of[src]].add(of[dst])
        for number, others in enumerate(ahead):
            for other in others:
                self._to[number] |= self._to[other]
        for number in reversed(range(count)):
            for other in ahead[number]:
                came[other] |= came[number]
        self._sends, self._hears = [0] * network.instances, [0] * network.instances
        for src, dst in usable:
            if src < network.instances:
                self._sends[src] |= self._beyond(dst)
            if dst < network.instances:
                self._hears[dst] |= 1 << src if src < network.instances else came[of[src]]

    def _beyond(self, node: int) -> int:
        """Those to whom a link to this node leads."""
        if node < self._net.instances:
            return 1 << node
        return self._to[self._of[node]] if self._of[node] != NOWHERE else 0

    def partners(self, instance: int) -> int:
        """Those with whom it has a path each way."""
        return self._sends[instance] & self._hears[instance] & ~(1 << instance)

    def of_all(self, instances: Iterable[int]) -> int:
        """Those with whom one of these has a path each way."""
        found = 0
        for instance in instances:
            found |= self.partners(instance)
        return found

    def would_gain(self, link: int, among: int) -> bool:
        """Whether one of these would have a path to another that there is not, were this link up as
        well. If there would be none by each of several links, there would be none by all."""
        src, dst = self._net.ends[link]
        if src >= self._net.instances:
            return bool(self._beyond(dst) & among & ~self._beyond(src))
        return bool(among >> src & 1 and self._beyond(dst) & among & ~self._sends[src])
