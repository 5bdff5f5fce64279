"""Single cells of one epoch's table of routes, without reading the rest of routes.bin.

Read are the index, the blocks of changes since the base epoch and, of the base table, the cells
that are asked for. What is read is checked as in compiler.plan.routes.table; the SHA-256 is not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice
from operator import ge

from compiler.plan.format import ROUTES, Place
from compiler.plan.routes.core import Core
from compiler.plan.routes.table import BYTES_A_CHANGE, RouteDelta, RouteIndex, index_bytes, unpack

Parts = Callable[[Sequence[tuple[int, int]]], list[bytes]]  # (offset, size) each -> bytes


class CellReader:
    """`cells[number]` is the value of one cell in `epoch`; any use may raise PlanError.

    `parts` reads from routes.bin, which has `size` bytes and should have the routes of `epochs`;
    `ends` is, by link, the node that it leads to.
    """

    def __init__(
        self,
        parts: Parts,
        size: int,
        core: Core,
        ends: Sequence[int],
        *,
        epoch: int,
        epochs: int,
    ) -> None:
        self._parts = parts
        self._core = core
        self._ends = ends
        self._place = Place(ROUTES)
        self._known: dict[int, int] = {}
        [head] = parts([(0, min(index_bytes(epochs), size))])
        index = RouteIndex(head, size, core, epochs)
        index.read_groups(b"".join(parts([index.groups])))
        _, _, self._table, base = index.entry(epoch)
        since = [index.entry(later) for later in range(base, epoch + 1)]
        self._place.what = f"epoch {epoch}"
        if not since or since[0][3] != base:
            self._place.fail("its base is no base")
        self._changes = self._read_changes([entry[:2] for entry in since[:0:-1]])

    def _read_changes(self, entries: Sequence[tuple[int, int]]) -> list[RouteDelta]:
        """The changes at these (offset, number)."""
        blocks = [(offset, BYTES_A_CHANGE * count) for offset, count in entries if count]
        found = []
        for data in self._parts(blocks):
            middle = len(data) // BYTES_A_CHANGE * 4
            delta = RouteDelta(unpack("I", data[:middle]), unpack("H", data[middle:]))
            self._check_order(delta.cells)
            found.append(delta)
        return found

    def _check_order(self, cells: array[int]) -> None:
        if any(map(ge, cells, islice(cells, 1, None))):
            self._place.fail("its changes or those before it are out of order")
        if cells[-1] >= self._core.cells:
            self._place.fail(f"cell {cells[-1]} is beyond the table")

    def __getitem__(self, cell: int) -> int:
        if cell not in self._known:
            self._known[cell] = self._checked(cell, self._read(cell))
        return self._known[cell]

    def _read(self, cell: int) -> int:
        """From the last epoch that changed it, or else from the base table."""
        for delta in self._changes:
            at = bisect_left(delta.cells, cell)
            if at < len(delta.cells) and delta.cells[at] == cell:
                return delta.values[at]
        [data] = self._parts([(self._table + 2 * cell, 2)])
        return unpack("H", data)[0]

    def _checked(self, cell: int, value: int) -> int:
        core = self._core
        row, column = divmod(cell, len(core.columns))
        anchor = core.columns[column]
        if value > core.values(row):
            self._place.fail(f"row {row} names link {value} of {core.values(row)}")
        if value and core.rows[row] == anchor:
            self._place.fail(f"column {column} leads away from its destination")
        for link in core.leads(row, value):
            end = self._ends[link]
            if end < core.endpoints and end != anchor:
                self._place.fail(f"row {row} leads through an instance")
        return value
