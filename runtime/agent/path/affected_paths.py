"""Which own paths a change of the network may have changed.

Input: the state before, the links and cells of the routing table that change, the own instances.
Output: for each own source the destinations to look at again; all others are as they were.

Algorithm: a path is the access link of its source, a walk through the table towards the anchor of
its destination, and an access link there. A walk that meets no changed cell, and at no node the
choice of a changed link, leads the same way over the same links as before. So for every column with
such *dirty* rows the walks of the own anchors are followed, in the table of before, until they meet
one or are known. Cost: dirty columns × rows, at most.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from compiler.plan.routes.core import NO_LINK
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology

Wanted = list[tuple[int, Sequence[int] | None]]  # sources, each with destinations; None: all
_COLUMNS = 16  # done in one go


class AffectedPaths:
    """Answers for one topology and some instances of it."""

    def __init__(self, state: NetworkState, own: Sequence[int]) -> None:
        core = state.core
        self._core = core
        self._topology: Topology = state.topology
        self._sources: dict[int, list[int]] = {}  # row -> the own instances that start there
        for source in own:
            self._sources.setdefault(core.row_of[core.anchor[source]], []).append(source)
        self._own = own
        self._far = [link.dst for link in state.topology.links]
        self._leaves_by = {core.access_out[i]: i for i in own if core.access_out[i] != NO_LINK}
        instances = range(core.endpoints)
        self._arrives_by = {core.access_in[i]: i for i in instances if core.access_in[i] != NO_LINK}

    def find(
        self, before: NetworkState, table: array[int], links: Iterable[int], cells: Iterable[int]
    ) -> Iterator[Wanted | None]:
        """None after every bit of work, and at last the answer, in order of the own instances.

        `table` is the one after the change.
        """
        links = list(links)
        whole = {self._leaves_by[link] for link in links if link in self._leaves_by}
        ends = {self._arrives_by[link] for link in links if link in self._arrives_by}
        dirty = self._dirty(before.table, table, links, cells)
        hits: dict[int, set[int]] = {}  # row of own anchors -> columns
        for count, (column, rows) in enumerate(sorted(dirty.items()), 1):
            for row in self._upstream(before.table, column, rows):
                hits.setdefault(row, set()).add(column)
            if count % _COLUMNS == 0:
                yield None
        yield self._wanted(whole, ends, hits)

    def _dirty(
        self,
        before: array[int],
        after: array[int],
        links: Iterable[int],
        cells: Iterable[int],
    ) -> dict[int, set[int]]:
        """Column -> rows whose cell changes, or chooses a link that changes."""
        core, width = self._core, len(self._core.columns)
        found: dict[int, set[int]] = {}
        for cell in cells:
            found.setdefault(cell % width, set()).add(cell // width)
        for link in links:
            ends = self._topology.links[link]
            row = core.row_of[ends.src]
            if row < 0 or core.row_of[ends.dst] < 0:
                continue
            choice = core.out[row].index(link) + 1
            for table in (before, after) if after is not before else (before,):
                values = table[row * width : (row + 1) * width]
                for column, value in enumerate(values):
                    if value == choice:
                        found.setdefault(column, set()).add(row)
        return found

    def _upstream(self, table: array[int], column: int, dirty: set[int]) -> Iterator[int]:
        """The rows of own anchors whose walk to the column meets a dirty row."""
        core, width, far = self._core, len(self._core.columns), self._far
        known = dict.fromkeys(dirty, True)
        known.setdefault(core.row_of[core.columns[column]], False)
        for start in self._sources:
            row, way = start, []
            while row not in known:
                way.append(row)
                choice = table[row * width + column]
                if not choice:
                    known[row] = False  # no way on, before and after
                    break
                row = core.row_of[far[core.out[row][choice - 1]]]
            verdict = known[row]
            for passed in way:
                known[passed] = verdict
            if verdict:
                yield start

    def _wanted(self, whole: set[int], ends: set[int], hits: dict[int, set[int]]) -> Wanted:
        core = self._core
        dests = {
            row: sorted(ends.union(*[core.behind[column] for column in columns]))
            for row, columns in hits.items()
        }
        rest = sorted(ends)
        found: Wanted = []
        for source in self._own:
            row = core.row_of[core.anchor[source]]
            some = None if source in whole else dests.get(row, rest)
            if some is None or some:
                found.append((source, some))
        return found
