"""The state of the network for a few questions: what is not asked for is not built or checked.

A whole plan is checked record by record and turned into objects, which takes longer than answering
for a single path. Here topology.json and snapshots.jsonl are decoded as JSON and a record becomes
an object, with the checks of the strict reader, when it is first taken; of routes.bin only the
cells on the way are read. What is left unchecked is listed in docs/plan.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from compiler.plan.encoding import (
    NODE_WORDS,
    TOPOLOGY_FIELDS,
    epoch_head_from_json,
    link_from_json,
    node_from_json,
    state_from_json,
    with_files,
)
from compiler.plan.event_kinds import DOWN
from compiler.plan.format import HEADER, MAX_LINKS, MAX_NODES, SNAPSHOTS, TOPOLOGY, Place
from compiler.plan.properties import LinkState
from compiler.plan.routes.cells import CellReader
from compiler.plan.routes.core import Core
from compiler.plan.rules import consistency
from compiler.plan.types import NETWORKS, Epoch, Link, Node

T = TypeVar("T")


class LazyRecords(Sequence[T], Generic[T]):
    """A list whose members are made when they are first taken."""

    def __init__(self, size: int, make: Callable[[int], T]) -> None:
        self._size = size
        self._make = make
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        if not 0 <= index < self._size:
            raise IndexError(index)
        if index not in self._made:
            self._made[index] = self._make(index)
        return self._made[index]


class Outline:
    """What topology.json says about the shape of the network, and its records one by one.

    members  service -> its instances, by node index
    owners   node of a further interface -> that of its instance
    ends     link -> the node that it leads to
    frames   whether any node carries frames
    network, nodes, links, core  as in Topology and Plan
    """

    def __init__(self, value: Any, counts: Mapping[str, int]) -> None:
        self._place = Place(TOPOLOGY, 1)
        value = with_files(value, self._place)
        fields = dict(
            zip(TOPOLOGY_FIELDS, self._place.fields(value, *TOPOLOGY_FIELDS), strict=True)
        )
        links, nodes, services = (fields[name] for name in ("links", "nodes", "services"))
        self.network = self._place.word(fields["network"], "network", NETWORKS)
        self._nodes: list[Any] = self._counted(nodes, "nodes", counts)
        self._links: list[Any] = self._counted(links, "links", counts)
        if len(nodes) > MAX_NODES or len(links) > MAX_LINKS:
            self._place.fail(f"more than {MAX_NODES} nodes or {MAX_LINKS} links")
        self.members = self._members(self._counted(services, "services", counts))
        instances = sum(map(len, self.members.values()))
        if instances != counts["instances"] or instances > len(nodes):
            self._place.fail(f"holds {instances} instances, which is not what {HEADER} says")
        self.nodes = LazyRecords(len(nodes), self._node)
        self.links = LazyRecords(len(links), self._link)
        self.ends: list[int] = self._column(links, "dst", int)
        self._instances = instances
        self.core = self._core(instances + self._interfaces())
        further = range(instances, self.core.endpoints)
        self.owners = {node: self.nodes[node].owner for node in further}
        self.frames = any("frames" in record for record in self._nodes if type(record) is dict)

    def _counted(self, value: Any, name: str, counts: Mapping[str, int]) -> list[Any]:
        found = self._place.items(value)
        if len(found) != counts[name]:
            self._place.fail(f"holds {len(found)} {name} instead of the {counts[name]} in {HEADER}")
        return found

    def _column(self, records: list[Any], name: str, kind: type) -> list[Any]:
        """One field of every record."""
        try:
            found = [record[name] for record in records]
        except (KeyError, TypeError, IndexError):
            return self._place.fail(f"field {name!r} is missing")
        if not set(map(type, found)) <= {kind}:
            self._place.fail(f"field {name!r} has another type than it must")
        return found

    def _members(self, services: list[Any]) -> dict[str, range]:
        names = self._column(services, "name", str)
        found: dict[str, range] = {}
        first = 0
        for name, count in zip(names, self._column(services, "replicas", int), strict=True):
            if name in found or not 0 <= count <= MAX_NODES:
                self._place.fail(f"service {name!r:.60} appears twice or has {count} instances")
            found[name] = range(first, first + count)
            first += count
        return found

    def _interfaces(self) -> int:
        """Further interfaces of instances, which have an `owner`."""
        return sum("owner" in record for record in self._nodes if type(record) is dict)

    def _core(self, endpoints: int) -> Core:
        sources = self._column(self._links, "src", int)
        if sources and not 0 <= min(sources) <= max(sources) < len(self._nodes):
            self._place.fail("a link has an end that is no node")
        if sources[::2] != self.ends[1::2] or sources[1::2] != self.ends[::2]:
            self._place.fail("the two directions of a link must be neighbours")
        return Core.of_ends(len(self._nodes), endpoints, sources, self.ends)

    def _node(self, index: int) -> Node:
        node = node_from_json(self._nodes[index], self._place, index)
        if index >= self.core.endpoints:
            if node.service != -1:
                self._place.fail(f"{node.name} is not an instance and comes among bridges")
            return node
        if index >= self._instances:
            return self._interface(node, index)
        service, _, number = node.name.rpartition(".")
        members = self.members.get(service, range(0))
        if index not in members or number != str(index - members.start):
            self._place.fail(f"node {index} must not be called {node.name:.60}")
        return node

    def _interface(self, node: Node, index: int) -> Node:
        if not 0 <= node.owner < self._instances:
            self._place.fail(f"node {index} is an interface of no instance")
        owner, _, word = node.name.rpartition(".")
        if self.nodes[node.owner].name != owner or not word.startswith("eth"):
            self._place.fail(f"node {index} must not be called {node.name:.60}")
        return node

    def _link(self, index: int) -> Link:
        link = link_from_json(self._links[index], self._place, index)
        consistency.called_after_ends(link, index, self.nodes, self._place)
        return link


class _Changed:
    """The last word of the epochs on each node or link: the line, and the record on it."""

    def __init__(self, size: int) -> None:
        self.found: dict[int, tuple[int, list[Any]]] = {}
        self._size = size

    def update(self, items: Any, place: Place) -> None:
        last = -1
        for item in place.items(items):
            index, *_ = place.items(item) or place.fail("a list is empty")
            if type(index) is not int or not last < index < self._size:
                place.fail("a list is not in order of nodes or links, each once")
            last = index
            self.found[index] = (place.line, item)


@dataclass(frozen=True, slots=True)
class SparseState:
    """As NetworkState, but its sequences are read while they are used and may raise PlanError."""

    topology: Outline
    core: Core
    epoch: int
    at_ns: int
    nodes: Sequence[str]
    links: Sequence[LinkState]
    table: CellReader


def state(
    outline: Outline,
    lines: Iterator[tuple[Place, Any]],
    at_ns: int,
    cells: Callable[[int], CellReader],
) -> SparseState:
    """The state at a moment, from the lines of snapshots.jsonl; `cells` opens an epoch's table."""
    nodes = _Changed(len(outline.nodes))
    links = _Changed(len(outline.links))
    last: Epoch | None = None
    for place, value in lines:
        epoch, changed_nodes, changed_links = epoch_head_from_json(value, place)
        consistency.epoch(epoch, last, place)
        if epoch.at_ns > at_ns:
            break
        nodes.update(changed_nodes, place)
        links.update(changed_links, place)
        last = epoch
    if last is None:
        return Place(SNAPSHOTS).fail("holds no epoch")

    def node_state(index: int) -> str:
        line, item = nodes.found.get(index, (0, [index, DOWN]))
        place = Place(SNAPSHOTS, line)
        return place.word(place.items(item, 2)[1], "state", NODE_WORDS)

    def link_state(index: int) -> LinkState:
        if index not in links.found:
            return outline.links[index].state._replace(up=False)
        line, item = links.found[index]
        return state_from_json(item[1:], Place(SNAPSHOTS, line))

    return SparseState(
        topology=outline,
        core=outline.core,
        epoch=last.index,
        at_ns=last.at_ns,
        nodes=LazyRecords(len(outline.nodes), node_state),
        links=LazyRecords(len(outline.links), link_state),
        table=cells(last.index),
    )
