"""Which instances can talk to each other in one state of the network.

Two instances are *joined* when there is a path each way, over links that are up and through bridges
only. Bridges that reach each other form a strongly connected component (Tarjan, Depth-first search
and linear graph algorithms, 1972), so an instance is described by the components that it can send
into and hear from. That makes one look at the whole network linear in nodes and links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.plan.event_kinds import DOWN_KINDS, UP_KINDS
from compiler.plan.types import Event, Topology

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Reach:
    """The components that an instance sends into and hears from, and whom it is linked to."""

    into: tuple[int, ...]
    out_of: tuple[int, ...]
    partners: tuple[int, ...] = ()  # instances that a link of its own leads to
    alone: int = NOWHERE  # itself, if it is linked to instances: then nobody else is like it

    @property
    def simple(self) -> bool:
        """In one component, like everybody else who is."""
        return len(self.into) == 1 and self.into == self.out_of and self.alone == NOWHERE


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

    def usable(self, link: int) -> bool:
        src, dst = self.ends[link]
        return bool(self.links[link] and self.nodes[src] and self.nodes[dst])


class Components:
    """The strongly connected components of the bridges, as the network is now.

    `of[bridge]` is the component's number, NOWHERE for a bridge that is down and for instances.
    Numbers are in reverse topological order: links lead to the same or a smaller number.
    """

    def __init__(self, network: Connectivity) -> None:
        self.network = network
        self.of = [NOWHERE] * len(network.nodes)
        self.count = 0
        self._seen = [0] * len(network.nodes)  # order of the first visit, from 1
        self._low = [0] * len(network.nodes)
        self._clock = 0
        for bridge in range(network.instances, len(network.nodes)):
            if network.nodes[bridge] and not self._seen[bridge]:
                self._search(bridge)

    def _search(self, root: int) -> None:
        """Tarjan's algorithm without recursion."""
        of, seen, low = self.of, self._seen, self._low
        stack: list[int] = []
        trail = [(root, self._ahead(root))]
        while trail:
            node, ahead = trail[-1]
            if not seen[node]:
                self._clock += 1
                seen[node] = low[node] = self._clock
                stack.append(node)
            for far in ahead:
                if not seen[far]:
                    trail.append((far, self._ahead(far)))
                    break
                if of[far] == NOWHERE and seen[far] < low[node]:
                    low[node] = seen[far]
            else:
                trail.pop()
                if trail and low[node] < low[trail[-1][0]]:
                    low[trail[-1][0]] = low[node]
                if low[node] == seen[node]:
                    self._close(node, stack)

    def _ahead(self, bridge: int) -> Iterator[int]:
        net = self.network
        for link in net.out[bridge]:
            far = net.ends[link][1]
            if far >= net.instances and net.links[link] and net.nodes[far]:
                yield far

    def _close(self, node: int, stack: list[int]) -> None:
        """What lies on the stack from `node` on is a component."""
        while True:
            member = stack.pop()
            self.of[member] = self.count
            if member == node:
                break
        self.count += 1

    def reachable(self) -> list[int]:
        """By component: those that it reaches, itself among them, as bits."""
        net, of = self.network, self.of
        found = [1 << number for number in range(self.count)]
        by_number: list[list[int]] = [[] for _ in range(self.count)]
        for bridge in range(net.instances, len(net.nodes)):
            if of[bridge] != NOWHERE:
                by_number[of[bridge]].append(bridge)
        for number, members in enumerate(by_number):
            ahead = {of[far] for bridge in members for far in self._ahead(bridge)} - {number}
            for other in ahead:
                found[number] |= found[other]
        return found


def reach_of(network: Connectivity, components: Components, instance: int) -> Reach:
    """Links come in pairs, so each link out has the one back beside it."""
    into: set[int] = set()
    out_of: set[int] = set()
    partners: set[int] = set()
    alone = NOWHERE
    for link in network.out[instance]:
        far = network.ends[link][1]
        there, back = network.links[link], network.links[link ^ 1]
        if not network.nodes[far] or not (there or back):
            continue
        if far < network.instances:
            alone = instance
            partners.update([far] * there)
            continue
        into.update([components.of[far]] * there)
        out_of.update([components.of[far]] * back)
    return Reach(tuple(sorted(into)), tuple(sorted(out_of)), tuple(sorted(partners)), alone)


@dataclass(slots=True)
class Look:
    """Everybody of `members` who is up, by their reach."""

    groups: dict[Reach, list[int]]
    components: Components
    _ahead: list[int] | None = None  # of each component, as bits; found when it is needed

    def sends(self, a: Reach, b: Reach) -> bool:
        """Whether there is a path from one with reach `a` to another one with reach `b`."""
        if b.alone != NOWHERE and b.alone in a.partners:
            return True
        if not a.into or not b.out_of:
            return False
        if not set(a.into).isdisjoint(b.out_of):
            return True
        if self._ahead is None:
            self._ahead = self.components.reachable()
        heard = sum(1 << number for number in b.out_of)
        return any(self._ahead[number] & heard for number in a.into)

    def joined(self, a: Reach, b: Reach) -> bool:
        if a.simple and b.simple:
            return a.into == b.into
        return self.sends(a, b) and self.sends(b, a)


def look(network: Connectivity, components: Components, members: Iterable[int]) -> Look:
    """Most instances have one link pair, to a bridge: those are alike by bridge and directions."""
    groups: dict[Reach, list[int]] = {}
    alike: dict[tuple[int, int, int], list[int]] = {}
    out, ends, nodes, links = network.out, network.ends, network.nodes, network.links
    for instance in members:
        if not nodes[instance]:
            continue
        key = None
        if len(out[instance]) == 1:
            link = out[instance][0]
            far = ends[link][1]
            if far >= network.instances:
                key = (components.of[far], links[link], links[link ^ 1])
        group = None if key is None else alike.get(key)
        if group is None:
            group = groups.setdefault(reach_of(network, components, instance), [])
            if key is not None:
                alike[key] = group
        group.append(instance)
    return Look(groups, components)
