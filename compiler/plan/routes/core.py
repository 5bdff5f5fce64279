"""Which nodes routing has to look at: the core of a topology, and how the rest hangs off it.

An instance whose only link pair leads to a bridge is *behind* that bridge: whatever it sends goes
there first and whatever is sent to it comes from there, so it needs no row and no column in the
routing table. The bridge is its *anchor*. Bridges, and instances with another number of link pairs
or linked to an instance, are the core and their own anchors.

Specified in docs/plan.md (routes.bin). Linear in nodes and links.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from compiler.plan.format import TOPOLOGY, PlanError
from compiler.plan.types import Topology

NO_LINK = -1
_NOWHERE = 0xFFFF_FFFF  # no row or no link, in C
MAX_CELLS = 1 << 26  # of the routing table: 128 MiB
MAX_GROUP = 64  # links that packets are shared out over

Group = tuple[int, tuple[int, ...]]  # a row, and which of its links: as the table has them, from 1


class Core:
    """Rows, columns and link numbers of the routing table of one topology.

    endpoints  how many of the nodes are: instances and their further interfaces, which come first;
               below, "instances" are all of these
    rows       core nodes, by node index
    row_of     node -> row, -1 behind an anchor
    columns    anchors of instances, by node index
    column_of  node -> column, -1 if nobody needs routes towards it
    out        row -> links from that node to core nodes, by link index; the table's value k
               (from 1) is the k-th of them
    anchor     node -> node
    behind     column -> the instances whose anchor it is, by node index
    groups     row -> its groups of links, by link index, as far as routes have been read or made
               (`routing ecmp` alone has any); a value above the links of `out` is one of them
    access_out, access_in   instance behind an anchor -> its link towards and from the anchor;
               -1 for all other nodes
    """

    __slots__ = (
        "access_in",
        "access_out",
        "anchor",
        "behind",
        "column_of",
        "columns",
        "endpoints",
        "groups",
        "out",
        "row_of",
        "rows",
    )

    def __init__(self, topology: Topology) -> None:
        endpoints = sum(node.service >= 0 for node in topology.nodes)
        sources = [link.src for link in topology.links]
        ends = [link.dst for link in topology.links]
        self._build(len(topology.nodes), endpoints, sources, ends)

    @classmethod
    def of_ends(
        cls, nodes: int, endpoints: int, sources: Sequence[int], ends: Sequence[int]
    ) -> Core:
        """From the bare numbers: of nodes, of end points among them, and both ends of each link."""
        core = cls.__new__(cls)
        core._build(nodes, endpoints, sources, ends)
        return core

    def _build(
        self, nodes: int, endpoints: int, sources: Sequence[int], ends: Sequence[int]
    ) -> None:
        self.endpoints = endpoints
        self._find_anchors(nodes, sources, ends)
        self.rows = [i for i in range(nodes) if self.access_out[i] == NO_LINK]
        self.row_of = _positions(self.rows, nodes)
        self.columns = sorted({self.anchor[i] for i in range(self.endpoints)})
        self.column_of = _positions(self.columns, nodes)
        if self.cells > MAX_CELLS:
            raise PlanError(
                TOPOLOGY,
                f"routes between {len(self.rows)} forwarding or multi-homed nodes and "
                f"{len(self.columns)} destinations are more than {MAX_CELLS} cells",
                "give services one link to a bridge each",
            )
        self.behind: list[list[int]] = [[] for _ in self.columns]
        for instance in range(self.endpoints):
            self.behind[self.column_of[self.anchor[instance]]].append(instance)
        self.out: list[list[int]] = [[] for _ in self.rows]
        row_of = self.row_of
        for index, (src, dst) in enumerate(zip(sources, ends, strict=True)):
            if row_of[src] >= 0 and row_of[dst] >= 0:
                self.out[row_of[src]].append(index)
        self.groups: list[list[tuple[int, ...]]] = [[] for _ in self.rows]

    def _find_anchors(self, nodes: int, sources: Sequence[int], ends: Sequence[int]) -> None:
        """Sets anchor, access_out and access_in."""
        degree = [0] * nodes
        last = [NO_LINK] * nodes
        for index, src in enumerate(sources):
            degree[src] += 1
            last[src] = index
        self.anchor = list(range(nodes))
        self.access_out = [NO_LINK] * nodes
        self.access_in = [NO_LINK] * nodes
        for node in range(self.endpoints):
            if degree[node] != 1:
                continue
            far = ends[last[node]]
            if far >= self.endpoints:
                self.anchor[node] = far
                self.access_out[node] = last[node]
                self.access_in[node] = last[node] ^ 1  # the two directions are neighbours

    @property
    def cells(self) -> int:
        """Entries of the table: row * len(columns) + column."""
        return len(self.rows) * len(self.columns)

    def add_groups(self, groups: Iterable[Group]) -> None:
        """Groups that were first used after all that were added before."""
        for row, choices in groups:
            links = self.out[row]
            self.groups[row].append(tuple(links[choice - 1] for choice in choices))

    def leads(self, row: int, value: int) -> tuple[int, ...]:
        """The links that a cell of this row stands for: none, one, or those of a group. `value` is
        within bounds."""
        if not value:
            return ()
        links = self.out[row]
        if value <= len(links):
            return (links[value - 1],)
        return self.groups[row][value - len(links) - 1]

    def values(self, row: int) -> int:
        """The largest value that a cell of this row may have."""
        return len(self.out[row]) + len(self.groups[row])

    def shape(self, topology: Topology) -> tuple[int | array[int], ...]:
        """What C wants to know of a network whose paths are followed: the arguments of
        tsroutes_paths_new (tcal_c/routes/tsroutes.h)."""
        row_of, places = self.row_of, range(self.endpoints)
        first, out = array("I", [0]), array("I")
        for links in self.out:
            out.extend(links)
            first.append(len(out))
        return (
            *(len(self.rows), len(self.columns), len(topology.links), self.endpoints),
            array("I", (row_of[anchor] for anchor in self.columns)),
            *(first, out),
            _or_nowhere(row_of[link.dst] for link in topology.links),
            array("I", (row_of[self.anchor[i]] for i in places)),
            array("I", (self.column_of[self.anchor[i]] for i in places)),
            _or_nowhere(self.access_out[i] for i in places),
            _or_nowhere(self.access_in[i] for i in places),
        )

    def is_core_link(self, topology: Topology, link: int) -> bool:
        ends = topology.links[link]
        return self.row_of[ends.src] >= 0 and self.row_of[ends.dst] >= 0


def _or_nowhere(numbers: Iterable[int]) -> array[int]:
    return array("I", (_NOWHERE if number == NO_LINK else number for number in numbers))


def _positions(members: list[int], size: int) -> list[int]:
    found = [-1] * size
    for position, member in enumerate(members):
        found[member] = position
    return found
