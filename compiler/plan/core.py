"""Which nodes routing has to look at: the core of a topology, and how the rest hangs off it.

An instance whose only link pair leads to a bridge is *behind* that bridge: whatever it sends goes
there first and whatever is sent to it comes from there, so it needs no row and no column in the
routing table. The bridge is its *anchor*. Bridges, and instances with another number of link pairs
or linked to an instance, are the core and their own anchors.

Specified in docs/plan.md (routes.bin). Linear in nodes and links.
"""

from __future__ import annotations

from compiler.plan.format import TOPOLOGY, PlanError
from compiler.plan.types import Topology

NO_LINK = -1
MAX_CELLS = 1 << 26  # of the routing table: 128 MiB


class Core:
    """Rows, columns and link numbers of the routing table of one topology.

    rows       core nodes, by node index
    row_of     node -> row, -1 behind an anchor
    columns    anchors of instances, by node index
    column_of  node -> column, -1 if nobody needs routes towards it
    out        row -> links from that node to core nodes, by link index; the table's value k
               (from 1) is the k-th of them
    anchor     node -> node
    behind     column -> the instances whose anchor it is, by node index
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
        "instances",
        "out",
        "row_of",
        "rows",
    )

    def __init__(self, topology: Topology) -> None:
        nodes, links = topology.nodes, topology.links
        self.instances = sum(node.service >= 0 for node in nodes)
        self._find_anchors(topology)
        self.rows = [i for i in range(len(nodes)) if self.access_out[i] == NO_LINK]
        self.row_of = _positions(self.rows, len(nodes))
        self.columns = sorted({self.anchor[i] for i in range(self.instances)})
        self.column_of = _positions(self.columns, len(nodes))
        if self.cells > MAX_CELLS:
            raise PlanError(
                TOPOLOGY,
                f"routes between {len(self.rows)} forwarding or multi-homed nodes and "
                f"{len(self.columns)} destinations are more than {MAX_CELLS} cells",
                "give services one link to a bridge each",
            )
        self.behind: list[list[int]] = [[] for _ in self.columns]
        for instance in range(self.instances):
            self.behind[self.column_of[self.anchor[instance]]].append(instance)
        self.out: list[list[int]] = [[] for _ in self.rows]
        for index, link in enumerate(links):
            if self.row_of[link.src] >= 0 and self.row_of[link.dst] >= 0:
                self.out[self.row_of[link.src]].append(index)

    def _find_anchors(self, topology: Topology) -> None:
        """Sets anchor, access_out and access_in."""
        count = len(topology.nodes)
        degree = [0] * count
        last = [NO_LINK] * count
        for index, link in enumerate(topology.links):
            degree[link.src] += 1
            last[link.src] = index
        self.anchor = list(range(count))
        self.access_out = [NO_LINK] * count
        self.access_in = [NO_LINK] * count
        for node in range(self.instances):
            if degree[node] != 1:
                continue
            far = topology.links[last[node]].dst
            if far >= self.instances:
                self.anchor[node] = far
                self.access_out[node] = last[node]
                self.access_in[node] = last[node] ^ 1  # the two directions are neighbours

    @property
    def cells(self) -> int:
        """Entries of the table: row * len(columns) + column."""
        return len(self.rows) * len(self.columns)

    def is_core_link(self, topology: Topology, link: int) -> bool:
        ends = topology.links[link]
        return self.row_of[ends.src] >= 0 and self.row_of[ends.dst] >= 0


def _positions(members: list[int], size: int) -> list[int]:
    found = [-1] * size
    for position, member in enumerate(members):
        found[member] = position
    return found
