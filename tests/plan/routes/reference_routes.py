"""The routing of compiler.plan.routes.routing in plain Python, for comparison: same rules, no C.

Metric: least total delay (or fewest hops, where the topology says so), then fewer hops, then at
each node the next node whose name sorts first (by code points), then the link whose name does. Only
bridges forward. The two directions of a link are independent.

Every destination anchor is a column with the distance of each core node to it; distances are one
integer, delay * 2^20 + hops, so that every link has a positive length and equal means equal. A
change of links is carried into each column that it touches:
1. nodes that have lost their last tight link are found in order of distance (a link u->v is tight
   when distance(u) = length + distance(v)), after Ramalingam and Reps, "An incremental algorithm
   for a generalization of the shortest-path problem", 1996;
2. these and the ends of shortened links start again from their unaffected neighbours (Dijkstra);
3. the next hop is chosen anew where a distance, or the tightness of a link, has changed.
Cost follows the size of the change: a column in which no changed link was, or becomes, tight costs
one comparison per link.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from heapq import heappop, heappush

from compiler.plan.properties import LinkState
from compiler.plan.routes.core import Core
from compiler.plan.routes.table import RouteDelta
from compiler.plan.types import Topology

_HOP = 1
_DELAY_SHIFT = 20  # more hops than 2^20 cannot be: a path visits each of 65,535 nodes once
_HOPS_SHIFT = 90  # a delay has 63 bits, and so many of them have 80
_ROW_BITS = 16
_ROW_MASK = (1 << _ROW_BITS) - 1
_FAR = 1 << 120  # larger than any sum of lengths


class _Change:
    """One changed direction u->v. Length 0 means that it cannot be used."""

    __slots__ = ("new", "old", "u", "v")

    def __init__(self, u: int, v: int, old: int, new: int) -> None:
        self.u = u
        self.v = v
        self.old = old
        self.new = new


class Routes:
    """The next hop of every core node towards every anchor; starts with all links down."""

    def __init__(self, topology: Topology) -> None:
        self.core = core = Core(topology)
        self._topology = topology
        self._by_hops = topology.routing == "hops"
        self.table: array[int] = array("H", bytes(2 * core.cells))
        self._forwards = [node >= core.endpoints for node in core.rows]
        self._length: dict[int, int] = {link: 0 for links in core.out for link in links}
        names = [topology.nodes[node].name for node in core.rows]
        # Row -> its links as (other row, link, choice), by name of the other node and of the link.
        self._links_out = [
            sorted(
                ((self._row(topology.links[link].dst), link, k) for k, link in enumerate(links, 1)),
                key=lambda entry: (names[entry[0]], topology.links[entry[1]].name),
            )
            for links in core.out
        ]
        self._links_in: list[list[tuple[int, int]]] = [[] for _ in core.rows]
        for row, links in enumerate(core.out):
            for link in links:
                self._links_in[self._row(topology.links[link].dst)].append((row, link))
        # The same, usable links only: (other row, length, choice) and (other row, length).
        self._out: list[list[tuple[int, int, int]]] = [[] for _ in core.rows]
        self._in: list[list[tuple[int, int]]] = [[] for _ in core.rows]
        self._fresh = True
        self._roots = [self._row(anchor) for anchor in core.columns]
        self._distance = [[_FAR] * len(core.rows) for _ in core.columns]
        for distance, root in zip(self._distance, self._roots, strict=True):
            distance[root] = 0

    def _row(self, node: int) -> int:
        return self.core.row_of[node]

    def apply(self, links: Iterable[tuple[int, LinkState]]) -> RouteDelta:
        """Takes the new states of links and returns the cells of the table that change."""
        changes = self._take(links)
        for row in {change.u for change in changes}:
            self._out[row] = [
                (other, self._length[link], k)
                for other, link, k in self._links_out[row]
                if self._length[link]
            ]
        for row in {change.v for change in changes}:
            self._in[row] = [
                (other, self._length[link])
                for other, link in self._links_in[row]
                if self._length[link]
            ]
        cells: list[int] = []
        if changes:
            self._update_columns(changes, cells)
        cells.sort()
        return RouteDelta(array("I", cells), array("H", (self.table[cell] for cell in cells)))

    def _update_columns(self, changes: list[_Change], cells: list[int]) -> None:
        if self._fresh:
            # No distance is known yet: only the links into an anchor can begin anything.
            self._fresh = False
            into: dict[int, list[_Change]] = {}
            for change in changes:
                into.setdefault(change.v, []).append(change)
            for column, root in enumerate(self._roots):
                self._update_column(column, into.get(root, []), cells)
            return
        for column in range(len(self._roots)):
            self._update_column(column, changes, cells)

    def _take(self, links: Iterable[tuple[int, LinkState]]) -> list[_Change]:
        """The core links among `links` whose length is new."""
        changes = []
        for link, state in links:
            old = self._length.get(link)
            if old is None:
                continue
            new = 0
            if state.up:
                new = (state.delay_ns << _DELAY_SHIFT) + _HOP
                if self._by_hops:
                    new = (_HOP << _HOPS_SHIFT) + state.delay_ns
            if new != old:
                self._length[link] = new
                ends = self._topology.links[link]
                changes.append(_Change(self._row(ends.src), self._row(ends.dst), old, new))
        return changes

    def _update_column(self, column: int, changes: list[_Change], cells: list[int]) -> None:
        distance, root, forwards = self._distance[column], self._roots[column], self._forwards
        lost: list[int] = []
        gained: list[_Change] = []
        for change in changes:
            v = change.v
            if not forwards[v] and v != root:
                continue
            have, far = distance[change.u], distance[v]
            if change.old and have == far + change.old and have != _FAR:
                lost.append(change.u)
            if change.new and far + change.new <= have and far != _FAR:
                gained.append(change)
        if not lost and not gained:
            return
        moved = self._repair(column, lost, gained)
        self._choose_again(column, moved, {*lost, *(change.u for change in gained)}, cells)

    def _repair(self, column: int, lost: list[int], gained: list[_Change]) -> set[int]:
        """Makes the distances of this column right; returns the rows whose distance changed."""
        distance, root, forwards = self._distance[column], self._roots[column], self._forwards
        cut = self._cut_off(column, lost) if lost else set()
        before = {row: distance[row] for row in cut}
        heap: list[int] = []
        for row in cut:
            distance[row] = min(
                (
                    distance[other] + length
                    for other, length, _ in self._out[row]
                    if other not in cut and (forwards[other] or other == root)
                ),
                default=_FAR,
            )
            distance[row] = min(distance[row], _FAR)
            if distance[row] < _FAR:
                heappush(heap, distance[row] << _ROW_BITS | row)
        for change in gained:
            reach = distance[change.v] + change.new
            if reach < distance[change.u]:
                before.setdefault(change.u, distance[change.u])
                distance[change.u] = reach
                heappush(heap, reach << _ROW_BITS | change.u)
        self._settle(distance, root, heap, before)
        return {row for row, old in before.items() if distance[row] != old}

    def _cut_off(self, column: int, lost: list[int]) -> set[int]:
        """Rows that no tight link leads out of any more, directly or through each other."""
        distance, root, forwards = self._distance[column], self._roots[column], self._forwards
        heap: list[int] = []
        for row in lost:
            heappush(heap, distance[row] << _ROW_BITS | row)
        cut: set[int] = set()
        while heap:
            row = heappop(heap) & _ROW_MASK
            have = distance[row]
            if row in cut or any(
                distance[other] + length == have
                and other not in cut
                and (forwards[other] or other == root)
                for other, length, _ in self._out[row]
            ):
                continue
            cut.add(row)
            if forwards[row]:
                for other, length in self._in[row]:
                    if distance[other] == have + length:
                        heappush(heap, distance[other] << _ROW_BITS | other)
        return cut

    def _settle(
        self, distance: list[int], root: int, heap: list[int], before: dict[int, int]
    ) -> None:
        """Dijkstra from the rows in `heap`; notes in `before` what distances were."""
        forwards, links_in = self._forwards, self._in
        while heap:
            item = heappop(heap)
            row, have = item & _ROW_MASK, item >> _ROW_BITS
            if have > distance[row] or not (forwards[row] or row == root):
                continue
            for other, length in links_in[row]:
                reach = have + length
                if reach < distance[other]:
                    before.setdefault(other, distance[other])
                    distance[other] = reach
                    heappush(heap, reach << _ROW_BITS | other)

    def _choose_again(
        self, column: int, moved: set[int], stale: set[int], cells: list[int]
    ) -> None:
        """Next hops of rows whose distance or whose tight links changed."""
        distance, root, forwards = self._distance[column], self._roots[column], self._forwards
        width = len(self._roots)
        stale |= moved
        for row in moved:
            if not forwards[row]:
                continue
            # A neighbour that stays where it was matters if it used this row or can use it now.
            for other, length in self._in[row]:
                if other not in stale and (
                    distance[other] == distance[row] + length
                    or self._next_row(other, column) == row
                ):
                    stale.add(other)
        for row in stale:
            cell = row * width + column
            choice = 0
            if row != root and distance[row] < _FAR:
                have = distance[row]
                choice = next(
                    k
                    for other, length, k in self._out[row]
                    if distance[other] + length == have and (forwards[other] or other == root)
                )
            if self.table[cell] != choice:
                self.table[cell] = choice
                cells.append(cell)

    def _next_row(self, row: int, column: int) -> int:
        choice = self.table[row * len(self._roots) + column]
        if not choice:
            return -1
        return self._row(self._topology.links[self.core.out[row][choice - 1]].dst)
