"""routes.bin: the next-hop table of every epoch, as full tables now and then and changes between.

A table has a row per core node and a column per destination anchor (compiler/plan/routes/core.py).
A cell is 0 (unreachable, or the destination itself) or k: the k-th core link out of that row's
node, or one of the groups of such links that are listed before all tables. Layout in docs/plan.md.
Everything is little-endian. Reading one epoch needs one table and the changes since; the writer
adds a table as soon as the changes since the last one would be larger.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from operator import lt

from compiler.plan.format import ROUTES, Place
from compiler.plan.routes import tsroutes
from compiler.plan.routes.core import MAX_GROUP, Core, Group
from compiler.plan.types import Topology

MAGIC = b"TSROUTES"
_HEAD = struct.Struct("<8sIIII")  # magic, rows, columns, epochs, numbers of groups
_ENTRY = struct.Struct("<QQII")  # offset of changes, offset of base table, changes, base epoch
BYTES_A_CHANGE = 6
MAX_VALUE = (1 << 16) - 1  # of a cell
_NOWHERE = -1  # the offset of an empty block, written as 0


@dataclass(frozen=True, slots=True)
class RouteDelta:
    """Cells of the table that changed in one epoch, ascending, and their new values. `groups`:
    those that no cell had before, in the order in which these cells have them."""

    cells: array[int]  # 'I'
    values: array[int]  # 'H'
    groups: tuple[Group, ...] = ()


def pack(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers.tobytes()


def unpack(typecode: str, data: bytes | memoryview) -> array[int]:
    numbers: array[int] = array(typecode)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def groups_of(numbers: array[int]) -> Iterator[Group]:
    """Groups from what the file has of each: its row, how many links, and these."""
    at = 0
    while at < len(numbers):
        row, count = numbers[at : at + 2]
        yield row, tuple(numbers[at + 2 : at + 2 + count])
        at += 2 + count


def _numbers_of(groups: Iterable[Group]) -> array[int]:
    found = array("H")
    for row, choices in groups:
        found.extend((row, len(choices), *choices))
    return found


class RouteWriter:
    """Collects one RouteDelta per epoch, epoch 0's counted from the empty table."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._table: array[int] = array("H", bytes(2 * core.cells))
        self._entries: list[tuple[int, int, int, int]] = []  # offsets count from the first block
        self._blocks: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._end = 0
        self._since_base = 0
        self._groups: list[Group] = []

    def add(self, delta: RouteDelta) -> None:
        table = self._table
        self._groups += delta.groups
        tsroutes.put(table, delta.cells, delta.values)
        if not self._entries:
            self._entries.append((_NOWHERE, self._put(pack(table)), 0, 0))
            return
        _, base_offset, _, base = self._entries[-1]
        changes = self._put(pack(delta.cells) + pack(delta.values))
        self._since_base += BYTES_A_CHANGE * len(delta.cells)
        if self._since_base > 2 * len(table):
            self._since_base = 0
            base, base_offset = len(self._entries), self._put(pack(table))
        self._entries.append((changes, base_offset, len(delta.cells), base))

    def _put(self, block: bytes) -> int:
        """Where this block is: where the same bytes were put before, or at the end."""
        if not block:
            return _NOWHERE
        key = hashlib.sha256(block).digest()
        if key not in self._known:
            self._known[key] = self._end
            self._blocks.append(block)
            self._end += len(block)
        return self._known[key]

    def copied(self) -> RouteWriter:
        """One that goes on from here by itself."""
        found = copy(self)
        found._table, found._entries = self._table[:], self._entries[:]
        found._blocks, found._known = self._blocks[:], dict(self._known)
        found._groups = self._groups[:]
        return found

    def encode(self) -> bytes:
        core, count = self._core, len(self._entries)
        groups = _numbers_of(self._groups)
        start = index_bytes(count) + groups.itemsize * len(groups)
        head = _HEAD.pack(MAGIC, len(core.rows), len(core.columns), count, len(groups))
        index = b"".join(
            _ENTRY.pack(_absolute(start, changes), _absolute(start, table), cells, base)
            for changes, table, cells, base in self._entries
        )
        return b"".join((head, index, pack(groups), *self._blocks))


def _absolute(start: int, offset: int) -> int:
    return 0 if offset == _NOWHERE else start + offset


def index_bytes(epochs: int) -> int:
    """How many bytes of routes.bin come before the groups and the blocks."""
    return _HEAD.size + epochs * _ENTRY.size


class RouteIndex:
    """Where the blocks of routes.bin are. Raises PlanError.

    `data` begins with the index; `size` is that of the whole file.
    """

    def __init__(self, data: bytes | memoryview, size: int, core: Core, epochs: int) -> None:
        self._place = Place(ROUTES)
        self._data = data
        self._size = size
        self._core = core
        self._read_head(epochs)

    def _read_head(self, epochs: int) -> None:
        core, place = self._core, self._place
        if len(self._data) < index_bytes(epochs):
            place.fail("shorter than its index")
        magic, rows, columns, count, groups = _HEAD.unpack_from(self._data)
        if magic != MAGIC:
            place.fail("not a table of routes")
        if (rows, columns, count) != (len(core.rows), len(core.columns), epochs):
            place.fail(
                f"{rows} x {columns} cells and {count} epochs, but the topology and the "
                f"snapshots make it {len(core.rows)} x {len(core.columns)} and {epochs}"
            )
        self.groups = (index_bytes(epochs), 2 * groups)  # offset and size
        if sum(self.groups) > self._size:
            place.fail("its groups lie outside the file")

    def read_groups(self, data: bytes | memoryview) -> None:
        """Adds to the core what stands where `groups` says."""
        core, place, numbers = self._core, self._place, unpack("H", data)
        core.groups = [[] for _ in core.rows]
        at, known = 0, set[Group]()
        while at < len(numbers):
            place.what = f"group {len(known)}"
            count = numbers[at + 1] if at + 1 < len(numbers) else 0
            group = numbers[at], tuple(numbers[at + 2 : at + 2 + count])
            at += 2 + count
            row, choices = group
            if row >= len(core.rows) or not 2 <= count <= MAX_GROUP or at > len(numbers):
                place.fail(f"not 2 to {MAX_GROUP} links of a row")
            if not all(map(lt, (0, *choices), (*choices, len(core.out[row]) + 1))):
                place.fail(f"must be some of the {len(core.out[row])} links of row {row}, in order")
            if group in known:
                place.fail("stands there twice")
            known.add(group)
            core.add_groups((group,))

    def entry(self, epoch: int) -> tuple[int, int, int, int]:
        """Offset and number of changes, offset of the base table, base epoch."""
        changes, table, cells, base = _ENTRY.unpack_from(self._data, index_bytes(epoch))
        self._place.what = f"epoch {epoch}"
        if base != epoch and (not epoch or base != self._base(epoch - 1)):
            self._place.fail("its base is neither itself nor the base of the epoch before")
        if (
            table + 2 * self._core.cells > self._size
            or changes + BYTES_A_CHANGE * cells > self._size
        ):
            self._place.fail("its routes lie outside the file")
        if cells > self._core.cells or (epoch == 0 and cells):
            self._place.fail(f"{cells} changes are too many")
        if bool(cells) != bool(changes) or bool(self._core.cells) != bool(table):
            self._place.fail("an offset must be 0 where there is nothing, and only there")
        return changes, cells, table, base

    def _base(self, epoch: int) -> int:
        base: int = _ENTRY.unpack_from(self._data, index_bytes(epoch))[3]
        return base


class RouteReader:
    """Random access to the tables in the bytes of routes.bin. Raises PlanError."""

    def __init__(self, data: bytes, topology: Topology, core: Core, epochs: int) -> None:
        self._place = Place(ROUTES)
        self._data = memoryview(data)
        self._core = core
        self._topology = topology
        index = RouteIndex(self._data, len(data), core, epochs)
        self._read_groups(index)
        self._entries = [index.entry(epoch) for epoch in range(epochs)]
        # Row -> {value: anchor}: links to an instance may be used for that instance alone.
        self._private: list[dict[int, int]] = [
            self._to_instances(row) for row in range(len(core.rows))
        ]

    def _read_groups(self, index: RouteIndex) -> None:
        core, place, (offset, size) = self._core, self._place, index.groups
        if size and self._topology.routing != "ecmp":
            place.fail(f"has groups, with routing {self._topology.routing}")
        index.read_groups(self._data[offset : offset + size])
        self._most = [core.values(row) for row in range(len(core.rows))]
        for row, groups in enumerate(core.groups):
            if self._most[row] > MAX_VALUE:
                place.fail(f"row {row} has more groups than cells can tell apart")
            for one in groups:
                ends = {self._topology.links[link].dst for link in one}
                if len(ends) > 1 and min(ends) < core.endpoints:
                    place.fail(f"a group of row {row} leads through an instance")

    def _to_instances(self, row: int) -> dict[int, int]:
        """Links of a row, and groups of several to one instance, by what cells have for them."""
        core = self._core
        first = ((value, core.leads(row, value)[0]) for value in range(1, core.values(row) + 1))
        ends = ((value, self._topology.links[link].dst) for value, link in first)
        return {value: end for value, end in ends if end < core.endpoints}

    def changes(self, epoch: int) -> RouteDelta:
        """What changed in this epoch; for epoch 0, all that is reachable."""
        if epoch == 0:
            return self.reachable(0)
        delta = self._read_changes(epoch)
        self._check_changes(delta)
        return delta

    def reachable(self, epoch: int) -> RouteDelta:
        """The cells that are not 0 in this epoch."""
        table = self.table(epoch)
        cells = array("I", (cell for cell, value in enumerate(table) if value))
        return RouteDelta(cells, array("H", (value for value in table if value)))

    def peek(self, epoch: int) -> RouteDelta:
        """What changed in this epoch, for whoever asks about a few cells and checks those.

        Cells are within the table and ascending; values are as they stand in the file.
        """
        delta = self._read_changes(epoch)
        if not all(map(lt, delta.cells, delta.cells[1:])):
            self._place.fail("its cells are out of order")
        return delta

    def _read_changes(self, epoch: int) -> RouteDelta:
        """Cells are within the table; nothing else is checked."""
        offset, count, _, _ = self._entries[epoch]
        middle = offset + 4 * count
        cells = unpack("I", self._data[offset:middle])
        self._place.what = f"epoch {epoch}"
        if count and max(cells) >= self._core.cells:
            self._place.fail(f"cell {max(cells)} is beyond the table")
        return RouteDelta(cells, unpack("H", self._data[middle : middle + 2 * count]))

    def _check_changes(self, delta: RouteDelta) -> None:
        core, columns, last = self._core, len(self._core.columns), -1
        for cell, value in zip(delta.cells, delta.values, strict=True):
            if cell <= last:
                self._place.fail(f"cell {cell} is out of order")
            last = cell
            row, column = divmod(cell, columns)
            if value > self._most[row]:
                self._place.fail(f"cell {cell} names link {value} of {self._most[row]}")
            anchor = core.columns[column]
            if value and core.rows[row] == anchor:
                self._place.fail(f"cell {cell} leads away from its destination")
            if self._private[row].get(value, anchor) != anchor:
                self._place.fail(f"cell {cell} leads through an instance")

    def table(self, epoch: int) -> array[int]:
        """The whole table in this epoch."""
        _, _, offset, base = self._entries[epoch]
        table = unpack("H", self._data[offset : offset + 2 * self._core.cells])
        for later in range(base + 1, epoch + 1):
            delta = self._read_changes(later)
            for cell, value in zip(delta.cells, delta.values, strict=True):
                table[cell] = value
        self._place.what = f"table of epoch {epoch}"
        self._check_table(table)
        return table

    def _check_table(self, table: array[int]) -> None:
        core, width = self._core, len(self._core.columns)
        for column, anchor in enumerate(core.columns):
            if table[core.row_of[anchor] * width + column]:
                self._place.fail(f"column {column} leads away from its destination")
        for row in range(len(core.rows) if width else 0):
            cells = table[row * width : (row + 1) * width]
            if max(cells) > self._most[row]:
                self._place.fail(f"row {row} names link {max(cells)} of {self._most[row]}")
            private = self._private[row]
            if not private:
                continue
            for column, value in enumerate(cells):
                if private.get(value, core.columns[column]) != core.columns[column]:
                    self._place.fail(f"row {row} leads through an instance")

    def verify(self) -> None:
        """Replays all changes and compares them with every full table; reads everything."""
        table = self.table(0)
        used = [0] * len(self._core.rows)  # groups of each row
        if any(self._core.groups):
            self._look_for_groups(self.reachable(0), used)
        for epoch in range(1, len(self._entries)):
            delta = self.changes(epoch)
            for cell, value in zip(delta.cells, delta.values, strict=True):
                if table[cell] == value:
                    self._place.fail(f"cell {cell} is listed as changed and has not changed")
                table[cell] = value
            if any(self._core.groups):
                self._look_for_groups(delta, used)
            if self._entries[epoch][3] == epoch and self.table(epoch) != table:
                self._place.fail("its table is not what the changes lead to")
        if used != list(map(len, self._core.groups)):
            self._place.fail("a group is used nowhere")

    def _look_for_groups(self, delta: RouteDelta, used: list[int]) -> None:
        """Groups of a row are first used in their order."""
        core, columns = self._core, len(self._core.columns)
        for cell, value in zip(delta.cells, delta.values, strict=True):
            row = cell // columns
            group = value - len(core.out[row])
            if group > used[row] + 1:
                self._place.fail(f"cell {cell} has group {group} of row {row} before {group - 1}")
            used[row] = max(used[row], group)
