"""Path properties in bulk: everything a source can reach in one state of the network.

Input: a NetworkState and which sources and destinations are asked about. Output: one Row per
source, with the figures of compiler.plan.paths.path in arrays. For single paths use that module: it
also names the links.

The work is done in C (tcal_c/routes: compose.c, row.c). What does not fit in its integers, or
cannot be rounded there with certainty, is asked of compiler.plan.paths.path; so is everything when
the routes cannot be followed, for its error.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.plan.paths.path import Paths
from compiler.plan.properties import COMPOSED, Totals
from compiler.plan.routes import tsroutes
from compiler.plan.routes.core import Core
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology

_BLOCK_BYTES = 32 << 20  # memory for the stretches between core nodes that are kept at a time
_STRETCH_BYTES = 64
_UNSURE = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class RouteRow:
    """From `source` to each of `dests` (instances, by node index); all sequences are parallel.

    Where `hops` is 0 there is no path (or the destination is the source itself), and the totals
    are 0 as well. Totals are arrays of type 'Q'; where one is 2^64 or more, a list.
    """

    source: int
    dests: Sequence[int]
    totals: Totals[Sequence[int]]
    hops: Sequence[int]  # links on the path


class Collapse:
    """Answers for any state of one topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.core = core = Core(topology)
        self._library = tsroutes.library()
        self._state: NetworkState | None = None  # whose links C knows
        self._request: object = None  # for whom C holds a block
        anchors = core.anchor[: core.endpoints]
        self._rows = [core.row_of[anchor] for anchor in anchors]
        self._columns = [core.column_of[anchor] for anchor in anchors]
        self._handle = self._library.tsroutes_paths_new(*core.shape(topology))
        if not self._handle:
            raise tsroutes.no_memory("for composing paths")
        weakref.finalize(self, self._library.tsroutes_paths_free, self._handle)

    def rows(
        self, state: NetworkState, sources: Sequence[int], dests: Sequence[int] | None = None
    ) -> Iterator[RouteRow]:
        """One row per source, in their order; `dests` are all instances unless given.

        Raises PlanError if the routes of the state are wrong (docs/plan.md, composing a path).
        """
        wanted = array("I", range(self.core.endpoints) if dests is None else dests)
        columns = array("I", sorted({self._columns[dest] for dest in wanted}))
        paths = Paths(state)
        for block in self._blocks(sources, len(columns)):
            request = object()
            for source in block:
                # Whoever takes rows of another state in between leaves another block behind.
                if self._request is not request:
                    known = self._compose(state, block, columns)
                    self._request = request
                if known:
                    yield self._row(paths, source, wanted)
                else:
                    yield _exact_row(paths, source, wanted)

    def _blocks(self, sources: Sequence[int], columns: int) -> Iterator[list[int]]:
        """The sources in their order, so many at a time as there is memory for."""
        limit = max(1, _BLOCK_BYTES // (_STRETCH_BYTES * max(1, columns)))
        block: list[int] = []
        rows: set[int] = set()
        for source in sources:
            if len(rows) == limit and self._rows[source] not in rows:
                yield block
                block, rows = [], set()
            block.append(source)
            rows.add(self._rows[source])
        if block:
            yield block

    def _compose(self, state: NetworkState, sources: list[int], columns: array[int]) -> bool:
        """False if the table cannot be followed, or only with more memory."""
        self._set(state)
        rows = array("I", sorted({self._rows[source] for source in sources}))
        failed: int = self._library.tsroutes_paths_compose(
            self._handle, state.table, len(rows), rows, len(columns), columns
        )
        return not failed

    def _set(self, state: NetworkState) -> None:
        if self._state is state:
            return
        links = state.links
        failed = self._library.tsroutes_paths_set(
            self._handle,
            array("B", [link.up for link in links]),
            array("Q", [link.delay_ns for link in links]),
            array("Q", [link.jitter_ns for link in links]),
            array("I", [link.loss_ppb for link in links]),
            array("Q", [link.rate_bps for link in links]),
        )
        assert not failed
        self._state = state

    def _row(self, paths: Paths, source: int, dests: array[int]) -> RouteRow:
        count = len(dests)
        delay, jitter, loss, rate = (array("Q", [0]) * count for _ in range(4))
        hops = array("I", [0]) * count
        unsure = self._library.tsroutes_paths_row(
            self._handle, source, count, dests, delay, jitter, loss, rate, hops
        )
        assert unsure >= 0
        row = RouteRow(source, dests, Totals(rate, delay, jitter, loss), hops)
        return _corrected(row, paths) if unsure else row

    def deciding(self, state: NetworkState, row: RouteRow) -> tuple[Sequence[int], Sequence[int]]:
        """Two links for each path of a row of `state`: the first of the least rate, where packets
        wait, and the first of the greatest jitter. Where there is no path, any number."""
        self._set(state)
        count = len(row.dests)
        narrowest, unsteadiest = array("I", [0]) * count, array("I", [0]) * count
        failed = self._library.tsroutes_paths_deciding(
            self._handle,
            state.table,
            row.source,
            count,
            array("I", row.dests),
            narrowest,
            unsteadiest,
        )
        assert not failed  # the row was found along the same table
        return narrowest, unsteadiest


def _exact_row(paths: Paths, source: int, dests: Sequence[int]) -> RouteRow:
    """The row with every path composed on its own."""
    unsure = array("I", [_UNSURE if dest != source else 0 for dest in dests])
    zeros = array("Q", [0]) * len(dests)
    return _corrected(RouteRow(source, dests, Totals._make([zeros] * len(COMPOSED)), unsure), paths)


def _corrected(row: RouteRow, paths: Paths) -> RouteRow:
    """The row with exact figures where C could not tell them."""
    columns = [list(one) for one in row.totals]
    hops = array("I", row.hops)
    for at, dest in enumerate(row.dests):
        if hops[at] != _UNSURE:
            continue
        found = paths.path(row.source, dest)
        hops[at] = len(found.links)
        for column, value in zip(columns, found.totals or (), strict=False):
            column[at] = value
    return RouteRow(row.source, row.dests, Totals._make(map(_as_array, columns)), hops)


def _as_array(numbers: list[int]) -> Sequence[int]:
    return array("Q", numbers) if max(numbers, default=0) < 1 << 64 else numbers
