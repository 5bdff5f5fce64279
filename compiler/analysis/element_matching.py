"""Which elements of two networks are the same: those of the same name.

Input: two sides (compiler/analysis/network_side.py). Output: `Matching`, positions of one in terms
of the other; -1 where the other has none. Instances that both have are *regular* if they hang off
their network in the same way (behind an anchor of the same name, or behind none) and *irregular*
if not, and where one of the networks shares flows out over equal links.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.analysis.network_side import NetworkSide
from compiler.plan.routes.core import NO_LINK

NO_PARTNER = -2  # of a link; NO_LINK (-1) is no link at all


class Matching:
    """From `a` to `b` and back, and the instances to compare, by node of `a`."""

    def __init__(self, a: NetworkSide, b: NetworkSide) -> None:
        self._a = a
        self._b = b
        names = {link.name: i for i, link in enumerate(b.topology.links)}
        self.link_b = [names.get(link.name, NO_PARTNER) for link in a.topology.links]
        self.link_a = _inverse(self.link_b, len(b.topology.links))
        names = {node.name: i for i, node in enumerate(b.topology.nodes)}
        self.node_b = [names.get(node.name, -1) for node in a.topology.nodes]
        self.node_a = _inverse(self.node_b, len(b.topology.nodes))
        self.row_b = self._through(a.core.rows, b.core.row_of)
        self.row_a = _inverse(self.row_b, len(b.core.rows))
        self.column_b = self._through(a.core.columns, b.core.column_of)
        self.column_a = _inverse(self.column_b, len(b.core.columns))
        self.same_table = (
            self.row_b == list(range(len(b.core.rows)))
            and self.column_b == list(range(len(b.core.columns)))
            and [self.link_b[link] for out in a.core.out for link in out]
            == [link for out in b.core.out for link in out]
        )
        self.sources: list[list[int]] = [[] for _ in a.core.rows]  # regular instances, by row
        self.dests: list[list[int]] = [[] for _ in a.core.columns]  # the same, by column
        self.irregular: list[int] = []
        self.common: list[int] = []  # all that both have
        self._shares = any(a.core.groups) or any(b.core.groups)
        for i in range(a.core.endpoints):
            self._sort_in(i)

    def _through(self, nodes: Iterable[int], positions: list[int]) -> list[int]:
        """Positions in `b` of nodes of `a`."""
        others = (self.node_b[node] for node in nodes)
        return [-1 if other < 0 else positions[other] for other in others]

    def _sort_in(self, i: int) -> None:
        a, b, j = self._a.core, self._b.core, self.node_b[i]
        if not 0 <= j < b.endpoints:
            return
        self.common.append(i)
        alike = self.node_b[a.anchor[i]] == b.anchor[j]
        alike = alike and not self._shares
        if alike and (a.access_out[i] == NO_LINK) == (b.access_out[j] == NO_LINK):
            self.sources[self._a.source_row[i]].append(i)
            self.dests[self._a.column[i]].append(i)
        else:
            self.irregular.append(i)

    def cell_a(self, cell: int) -> int:
        """A cell of `b` in terms of `a`; -1 if it has none."""
        row, column = divmod(cell, self._b.width)
        row_a, column_a = self.row_a[row], self.column_a[column]
        return -1 if row_a < 0 or column_a < 0 else row_a * self._a.width + column_a


def _inverse(positions: list[int], size: int) -> list[int]:
    found = [-1] * size
    for position, target in enumerate(positions):
        if target >= 0:
            found[target] = position
    return found
