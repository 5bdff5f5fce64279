"""One of two networks that are compared: its links and routes at one moment, and parts of paths.

Input: a topology, and changes of links and of the routing table, epoch by epoch. Output: for a
column of the table, which rows lead through given rows, and what the way from a row amounts to.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable
from itertools import islice

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.paths.path import equal_ways
from compiler.plan.paths.path_properties import (
    NOTHING,
    Stretch,
    joined,
    of_link,
)
from compiler.plan.properties import LinkState
from compiler.plan.routes.core import NO_LINK, Core
from compiler.plan.routes.table import RouteDelta
from compiler.plan.types import Topology

MOST_EQUAL = 256  # paths between two instances that are looked at
Way = tuple[Stretch, tuple[str, ...]]  # what it amounts to, and the names of its links
Parts = dict[int, Stretch | None]  # row -> to the column's anchor; None: no way


class NetworkSide:
    """A network at one moment. Routes are taken as given; what is impossible is a PlanError."""

    def __init__(self, topology: Topology, core: Core, table: array[int]) -> None:
        self.topology = topology
        self.core = core
        self.width = len(core.columns)
        self.table = table
        self.links = [link.state._replace(up=False) for link in topology.links]
        self._stretches: dict[int, Stretch] = {}
        self._ways: dict[tuple[int, int], list[tuple[int, ...]]] = {}  # row and column -> links
        row_of = core.row_of
        self.row_at = [row_of[link.dst] for link in topology.links]  # where a link leads
        self.place = {  # link -> its row and choice
            link: (row, k) for row, out in enumerate(core.out) for k, link in enumerate(out, 1)
        }
        self._into: list[list[tuple[int, int]]] = [[] for _ in core.rows]  # row -> (row, choice)
        for link, (row, k) in self.place.items():
            self._into[self.row_at[link]].append((row, k))
        self.anchor_row = [row_of[anchor] for anchor in core.columns]  # by column
        self.source_row = [row_of[core.anchor[i]] for i in range(core.endpoints)]
        self.column = [core.column_of[core.anchor[i]] for i in range(core.endpoints)]

    def take(self, links: Iterable[tuple[int, LinkState]], delta: RouteDelta | None) -> None:
        """The changes of one epoch (or the state of another moment)."""
        self._ways.clear()
        for link, state in links:
            self.links[link] = state
            self._stretches.pop(link, None)
        if delta is not None:
            table = self.table
            for cell, value in zip(delta.cells, delta.values, strict=True):
                table[cell] = value

    def next(self, row: int, column: int) -> int:
        """The next link from a row, of several the first; -1 if there is none."""
        links = self._leads(row, column)
        return links[0] if links else NO_LINK

    def _leads(self, row: int, column: int) -> tuple[int, ...]:
        choice = self.table[row * self.width + column]
        if choice > self.core.values(row):
            raise PlanError(ROUTES, f"row {row} names link {choice} of {self.core.values(row)}")
        return self.core.leads(row, choice)

    def columns_using(self, link: int) -> list[int]:
        """Columns in which the row of this core link sends by it."""
        row, k = self.place[link]
        start = row * self.width
        cells = self.table[start : start + self.width]
        return [column for column, choice in enumerate(cells) if choice == k]

    def upstream(
        self, column: int, roots: Iterable[int], among: Container[int] | None = None
    ) -> set[int]:
        """The rows whose way to the column's anchor leads through one of these, and these.

        With `among`, those of them that can be reached (against the way) within it.
        """
        table, width, into = self.table, self.width, self._into
        found = set(roots)
        todo = list(found)
        while todo:
            for row, k in into[todo.pop()]:
                if (
                    row not in found
                    and table[row * width + column] == k
                    and (among is None or row in among)
                ):
                    found.add(row)
                    todo.append(row)
        return found

    def part(self, row: int, column: int, known: Parts) -> Stretch | None:
        """From a row to the column's anchor. `known` holds what was found for this column."""
        way: list[tuple[int, int]] = []
        end = self.anchor_row[column]
        while row not in known:
            if row == end:
                known[row] = NOTHING
                break
            link = self.next(row, column)
            if link == NO_LINK:
                known[row] = None
                break
            if not self.links[link].up or len(way) > len(self.core.rows):
                raise PlanError(ROUTES, f"the route over link {link} is down, or in a circle")
            way.append((row, link))
            row = self.row_at[link]
        total = known[row]
        for before, link in reversed(way):
            total = None if total is None else joined(self._stretch(link), total)
            known[before] = total
        return total

    def access(self, link: int) -> tuple[int, bool]:
        """The instance whose access link this is, and whether it leads away from it."""
        ends = self.topology.links[link]
        if ends.src < self.core.endpoints and self.core.access_out[ends.src] == link:
            return ends.src, True
        return ends.dst, False

    def ends(self, src: int, dst: int) -> tuple[int, int]:
        """The access links at both ends; -1 where an end has none."""
        return self.core.access_out[src], self.core.access_in[dst]

    def are_up(self, ends: tuple[int, int]) -> bool:
        first, last = ends
        links = self.links
        return (first == NO_LINK or links[first].up) and (last == NO_LINK or links[last].up)

    def with_ends(self, part: Stretch | None, ends: tuple[int, int]) -> Stretch | None:
        """With the access links at both ends, where there are any."""
        if part is None or not self.are_up(ends):
            return None
        return joined(part, self.of_ends(ends))

    def of_ends(self, ends: tuple[int, int]) -> Stretch:
        """The access links at both ends alone."""
        first, last = ends
        if first == NO_LINK:
            return NOTHING if last == NO_LINK else self._stretch(last)
        part = self._stretch(first)
        return part if last == NO_LINK else joined(part, self._stretch(last))

    def _stretch(self, link: int) -> Stretch:
        if link not in self._stretches:
            self._stretches[link] = of_link(self.links[link])
        return self._stretches[link]

    def whole(self, src: int, dst: int) -> list[Way]:
        """The paths between two instances, which are several where flows are shared out; none if
        it is unreachable."""
        first, last = self.ends(src, dst)
        if not self.are_up((first, last)):
            return []
        key = self.source_row[src], self.column[dst]
        if key not in self._ways:
            self._ways[key] = self._between(*key)
        found = []
        for between in self._ways[key]:
            links = [link for link in (first, *between, last) if link != NO_LINK]
            total = NOTHING
            for link in links:
                total = joined(total, self._stretch(link))
            found.append((total, tuple(self.topology.links[link].name for link in links)))
        return found

    def _between(self, row: int, column: int) -> list[tuple[int, ...]]:
        """The links of all ways from a row to the column's anchor, up to MOST_EQUAL."""
        core = self.core

        def leads(node: int) -> list[int]:
            links = self._leads(core.row_of[node], column)
            return [link for link in links if self.links[link].up]

        ways = equal_ways(
            core.rows[row], core.columns[column], leads, self.topology.links, "a network"
        )
        return [links for _, links in islice(ways, MOST_EQUAL)]
