"""How the paths of two networks differ, pair by pair: the instances that both have, by name.

Input: two sides (compiler/plan/sides.py) and what changes in them. Output: for a column of the
first one's routing table, which pairs differ there and in what. Algorithm: a *root* is a row whose
next link is another on the other side, or has another state. The way from a row differs only if it
leads through a root, so the rows upstream of roots are all that have to be composed and compared;
and beside these the pairs of instances whose access links differ. Roots are kept up to date cell by
cell. An instance that hangs off its network in another way on the other side is *irregular*: its
pairs are walked link by link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.plan.core import NO_LINK
from compiler.plan.figures import Stretch, joined, of_link
from compiler.plan.routetable import RouteDelta
from compiler.plan.sides import Parts, Side
from compiler.plan.types import LinkState

ONLY_A, ONLY_B, ROUTE, RATE, DELAY, JITTER, LOSS = (1 << bit for bit in range(7))

Happening = tuple[Sequence[tuple[int, LinkState]], RouteDelta | None]  # what an epoch changes
Masks = tuple[int, ...]  # what differs, for the pairs of one row and column (see `pairs`)


def differences(a: Stretch | None, b: Stretch | None, *, route: bool) -> int:
    """What differs between two composed paths; `route`: their links are others."""
    if a is None or b is None:
        return 0 if a is b else ONLY_B if a is None else ONLY_A
    found = ROUTE if route else 0
    if a == b:
        return found
    if a.rate_bps != b.rate_bps:
        found |= RATE
    if a.delay_ns != b.delay_ns:
        found |= DELAY
    if a.jitter_square != b.jitter_square and a.jitter_ns != b.jitter_ns:
        found |= JITTER
    if (a.kept, a.lossy) != (b.kept, b.lossy) and a.loss_ppb != b.loss_ppb:
        found |= LOSS
    return found


def composed(state: LinkState) -> tuple[bool, int, int, int, int]:
    """What of a link's state is seen in a path: not its queue and the form of its jitter."""
    return state.up, state.rate_bps, state.delay_ns, state.jitter_ns, state.loss_ppb


class Contrast:
    """Two networks, and where they differ at this moment. Rows and columns are those of `a`."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a = a
        self.b = b
        names_b = {link.name: i for i, link in enumerate(b.topology.links)}
        self._link_b = [names_b.get(link.name, -2) for link in a.topology.links]
        self._link_a = _inverse(self._link_b, len(b.topology.links))
        nodes_b = {node.name: i for i, node in enumerate(b.topology.nodes)}
        self._node_b = [nodes_b.get(node.name, -1) for node in a.topology.nodes]
        self._node_a = _inverse(self._node_b, len(b.topology.nodes))
        self._row_b = [b.core.row_of[n] if n >= 0 else -1 for n in self._of(a.core.rows)]
        self._row_a = _inverse(self._row_b, len(b.core.rows))
        columns = [b.core.column_of[n] if n >= 0 else -1 for n in self._of(a.core.columns)]
        self._column_b = columns
        self._column_a = _inverse(columns, len(b.core.columns))
        self.same_table = self._row_b == list(range(len(b.core.rows))) and columns == list(
            range(len(b.core.columns))
        )
        self.same_table &= [*map(len, a.core.out)] == [*map(len, b.core.out)]
        self.sources: list[list[int]] = [[] for _ in a.core.rows]  # regular instances, by row
        self.dests: list[list[int]] = [[] for _ in columns]  # by column
        self.irregular: list[int] = []
        self.common: list[int] = []
        for i in range(a.core.instances):
            self._sort_in(i)
        self.roots: dict[int, set[int]] = {}  # column -> rows
        self._ways: dict[int, set[int]] = {}  # column -> rows upstream of roots, when last asked
        self._odd_links: set[int] = set()  # core links (of a) whose state differs
        self._odd_out: set[int] = set()  # instances whose access link differs, from them
        self._odd_in: set[int] = set()  # the same, to them

    def _of(self, nodes: Iterable[int]) -> Iterator[int]:
        return (self._node_b[node] for node in nodes)

    def _sort_in(self, i: int) -> None:
        a, b, j = self.a.core, self.b.core, self._node_b[i]
        if j < 0 or j >= b.instances:
            return
        self.common.append(i)
        alike = self._node_b[a.anchor[i]] == b.anchor[j]
        if alike and (a.access_out[i] == NO_LINK) == (b.access_out[j] == NO_LINK):
            self.sources[self.a.source_row[i]].append(i)
            self.dests[self.a.column[i]].append(i)
        else:
            self.irregular.append(i)

    # --- keeping up to date --------------------------------------------------------------------

    def start(self) -> set[int]:
        """Compares everything; the columns in which something may differ."""
        for link in range(len(self._link_b)):
            self._link_changed(link, set())
        width = self.a.width
        cells: Iterable[int] = range(len(self.a.core.rows) * width)
        if self.same_table:
            both = zip(self.a.table, self.b.table, strict=True)
            cells = [cell for cell, (one, two) in enumerate(both) if one != two]
        for cell in {*cells, *self._cells_of(self._odd_links)}:
            self._check_cell(cell)
        return set(range(width)) if self._odd_out else set(self.roots) | self._odd_columns()

    def update(self, a: Happening, b: Happening) -> set[int]:
        """Takes the changes of an instant; the columns that may differ otherwise than before."""
        before = set(self.roots) | self._odd_columns()
        one_way = bool(self._odd_out)
        touched = self._touched(a, b)
        self.a.take(*a)
        self.b.take(*b)
        recheck = self._recheck(a[1], b[1])
        flipped: set[int] = set()
        for link in [link for link, _ in a[0]] + [self._link_a[link] for link, _ in b[0]]:
            if link >= 0:
                self._link_changed(link, flipped)
        touched |= self._touched(a, b)
        for cell in recheck | self._cells_of(flipped):
            if self._check_cell(cell):
                touched.add(cell % self.a.width)
        if one_way or self._odd_out:
            return touched
        return touched & (before | set(self.roots) | self._odd_columns())

    def _cells_of(self, links: Iterable[int]) -> set[int]:
        """All cells of the rows where these core links begin."""
        width, place = self.a.width, self.a.place
        return {
            cell
            for row in {place[link][0] for link in links}
            for cell in range(row * width, row * width + width)
        }

    def _odd_columns(self) -> set[int]:
        return {self.a.column[i] for i in self._odd_in}

    def _touched(self, a: Happening, b: Happening) -> set[int]:
        """The columns in which these links are used or these cells lie."""
        if not (self.roots or self._odd_out or self._odd_in):
            return set()
        found: set[int] = set()
        for side, (links, routes) in ((self.a, a), (self.b, b)):
            columns: set[int] = set()
            if routes is not None:
                columns.update(cell % side.width for cell in routes.cells)
            for link, _ in links:
                if link in side.place:
                    columns.update(side.columns_using(link))
                else:
                    found |= self._by_access(side, link)
            if side is self.b:
                columns = {self._column_a[column] for column in columns} - {-1}
            found |= columns
        return found

    def _by_access(self, side: Side, link: int) -> set[int]:
        """The columns of pairs with the instance that has this access link."""
        ends, core = side.topology.links[link], side.core
        leaves = ends.src < core.instances and core.access_out[ends.src] == link
        instance = ends.src if leaves else ends.dst
        if side is self.b:
            instance = self._node_a[instance]
        if instance < 0:
            return set()
        if not leaves:
            return {self.a.column[instance]}
        if instance in self._odd_out:
            return set(range(self.a.width))
        row = self.a.source_row[instance]
        ways = {column for column, rows in self._ways.items() if row in rows}
        return ways | self._odd_columns()

    def _recheck(self, routes_a: RouteDelta | None, routes_b: RouteDelta | None) -> set[int]:
        """The cells (of a) whose being a root may have changed."""
        cells_a = set(routes_a.cells) if routes_a else set()
        cells_b = self._cells_to_a(routes_b) if routes_b else set()
        if not self.same_table:
            return cells_a | cells_b
        found = set[int]()
        if routes_a != routes_b:
            one = set(zip(routes_a.cells, routes_a.values, strict=True)) if routes_a else set()
            two = set(zip(routes_b.cells, routes_b.values, strict=True)) if routes_b else set()
            found = {cell for cell, _ in one ^ two}
        if not (self.roots or self._odd_links):
            return found
        # Beside these only cells that were roots, or choose a link whose state differs now.
        odd_rows, width = {self.a.place[link][0] for link in self._odd_links}, self.a.width
        for cell in cells_a & cells_b:
            row, column = divmod(cell, width)
            if row in odd_rows or row in self.roots.get(column, ()):
                found.add(cell)
        return found

    def _cells_to_a(self, routes: RouteDelta) -> set[int]:
        if self.same_table:
            return set(routes.cells)
        width_a, width_b = self.a.width, self.b.width
        found = set()
        for cell in routes.cells:
            row, column = self._row_a[cell // width_b], self._column_a[cell % width_b]
            if row >= 0 and column >= 0:
                found.add(row * width_a + column)
        return found

    def _link_changed(self, link: int, flipped: set[int]) -> None:
        """Whether the state of a link (of a) differs; adds core links for which this is new."""
        other = self._link_b[link]
        odd = other >= 0 and composed(self.a.links[link]) != composed(self.b.links[other])
        if link in self.a.place:
            if odd != (link in self._odd_links):
                flipped.add(link)
            _put(self._odd_links, link, odd)
            return
        ends, core = self.a.topology.links[link], self.a.core
        if ends.src < core.instances and core.access_out[ends.src] == link:
            _put(self._odd_out, ends.src, odd)
        else:
            _put(self._odd_in, ends.dst, odd)

    def _check_cell(self, cell: int) -> bool:
        """Whether the cell's row is a root in its column, or was."""
        row, column = divmod(cell, self.a.width)
        root = self._is_root(row, column)
        rows = self.roots.get(column)
        was = rows is not None and row in rows
        if root:
            self.roots.setdefault(column, set()).add(row)
        elif rows is not None:
            rows.discard(row)
            if not rows:
                del self.roots[column]
        return root or was

    def _is_root(self, row: int, column: int) -> bool:
        if not self.dests[column]:
            return False  # nobody to compare
        there = self.a.next(row, column)
        row_b, column_b = self._row_b[row], self._column_b[column]
        other = self.b.next(row_b, column_b) if row_b >= 0 and column_b >= 0 else NO_LINK
        if there == NO_LINK:
            return other != NO_LINK
        return self._link_b[there] != other or there in self._odd_links

    # --- what differs --------------------------------------------------------------------------

    def pairs(self, row: int, column: int) -> Iterator[tuple[int, int]]:
        """The pairs of a row and a column, in the order of their masks."""
        for src in self.sources[row]:
            for dst in self.dests[column]:
                yield src, dst

    def column(self, column: int) -> dict[int, Masks]:
        """The rows with pairs to this column's instances that differ, and in what they do."""
        self._ways.pop(column, None)
        if not self.dests[column]:
            return {}
        ways = self.a.upstream(column, self.roots.get(column, ()))
        if ways:
            self._ways[column] = ways
        rows: Iterable[int] = ways | {self.a.source_row[i] for i in self._odd_out}
        if not self._odd_in.isdisjoint(self.dests[column]):
            rows = range(len(self.sources))
        known_a: Parts = {}
        known_b: Parts = {}
        found: dict[int, Masks] = {}
        for row in sorted(rows):
            if not self.sources[row]:
                continue
            part_a = self.a.part(row, column, known_a)
            part_b = part_a
            if row in ways:
                part_b = self.b.part(self._row_b[row], self._column_b[column], known_b)
            route = row in ways and self._other_route(row, column)
            masks = self._masks(row, column, part_a, part_b, route)
            if any(masks):
                found[row] = masks
        return found

    def _other_route(self, row: int, column: int) -> bool:
        """Whether the links from a row to the anchor are others (and not only in another state)."""
        a, b, column_b = self.a, self.b, self._column_b[column]
        end = a.anchor_row[column]
        while row != end:
            there = a.next(row, column)
            if there == NO_LINK or self._link_b[there] != b.next(self._row_b[row], column_b):
                return True
            row = a.row_at[there]
        return False

    def _masks(
        self, row: int, column: int, part_a: Stretch | None, part_b: Stretch | None, route: bool
    ) -> Masks:
        """Of all pairs of a row and a column, from the parts between their anchors."""
        a, b = self.a, self.b
        found: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        for src, dst in self.pairs(row, column):
            if src == dst:
                found.append(0)
                continue
            ends_a = a.links_at(src, dst)
            ends_b = b.links_at(self._node_b[src], self._node_b[dst])
            key = (*map(id, ends_a), *map(id, ends_b))
            if key not in known:
                one = _with_ends(part_a, ends_a)
                two = _with_ends(part_b, ends_b)
                known[key] = differences(one, two, route=route)
            found.append(known[key])
        return tuple(found)

    def irregular_pairs(self) -> dict[tuple[int, int], int]:
        """What differs for the pairs with an irregular instance; those that differ only."""
        found: dict[tuple[int, int], int] = {}
        odd = set(self.irregular)
        for src in self.common if odd else ():
            for dst in self.common if src in odd else self.irregular:
                if src != dst:
                    one = self.a.whole(src, dst)
                    two = self.b.whole(self._node_b[src], self._node_b[dst])
                    route = one is not None and two is not None and one[1] != two[1]
                    mask = differences(one and one[0], two and two[0], route=route)
                    if mask:
                        found[src, dst] = mask
        return found


def _with_ends(
    part: Stretch | None, ends: tuple[LinkState | None, LinkState | None]
) -> Stretch | None:
    """With the access links at both ends, where there are any."""
    first, last = ends
    if part is None or (first and not first.up) or (last and not last.up):
        return None
    if first:
        part = joined(of_link(first), part)
    return joined(part, of_link(last)) if last else part


def _inverse(positions: list[int], size: int) -> list[int]:
    found = [-1] * size
    for position, target in enumerate(positions):
        if target >= 0:
            found[target] = position
    return found


def _put(members: set[int], member: int, there: bool) -> None:
    if there:
        members.add(member)
    else:
        members.discard(member)
