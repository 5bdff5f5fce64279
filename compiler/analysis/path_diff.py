"""How the paths of two networks differ, pair by pair: the instances that both have, by name.

Input: two sides (compiler/analysis/network_side.py) and what changes in them. Output: for a column
of the first one's routing table, which pairs differ there and in what. Algorithm: a *root* is a
row whose next link is another on the other side, or has another state. The way from a row differs
only if it leads through a root, so the rows upstream of roots are all that have to be composed and
compared; and beside these the pairs of instances whose access links differ (they are *odd*). Roots
are kept up to date cell by cell, and what is known about the way from a row until a link on it or
a cell on it changes. The pairs of irregular instances (compiler/analysis/element_matching.py) are
walked link by link, by all of their equal paths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from compiler.analysis.element_matching import Matching
from compiler.analysis.network_side import NetworkSide, Parts, Way
from compiler.plan.paths.path_properties import ROUNDED, Stretch, joined
from compiler.plan.properties import COMPOSED, Along, LinkState
from compiler.plan.routes.core import NO_LINK
from compiler.plan.routes.table import RouteDelta

ONLY_A, ONLY_B, ROUTE = 1, 2, 4
PROPERTY = {row.field: ROUTE << place for place, row in enumerate(COMPOSED, 1)}
# What equal links at the ends may make equal; sums that differ do so whatever is added to both.
_MASKABLE = itemgetter(*(i for i, row in enumerate(COMPOSED) if row.along is not Along.SUM))

Happening = tuple[Sequence[tuple[int, LinkState]], RouteDelta | None]  # what an epoch changes
Compared = Iterator[tuple[int, int, int]]  # source, destination, what differs (0: nothing)


def differences(a: Stretch | None, b: Stretch | None, *, route: bool) -> int:
    """What differs between two composed paths; `route`: their links are others."""
    if a is None or b is None:
        return 0 if a is b else ONLY_B if a is None else ONLY_A
    found = ROUTE if route else 0
    if a == b:
        return found
    for bit, rounded, one, two in zip(PROPERTY.values(), ROUNDED, a, b, strict=True):
        if one != two and rounded(one) != rounded(two):
            found |= bit
    return found


def _of_ways(a: Sequence[Way], b: Sequence[Way]) -> int:
    """The same between all paths of two instances in one network and those in the other."""
    if len(a) <= 1 and len(b) <= 1:
        route = bool(a and b) and a[0][1] != b[0][1]
        return differences(a[0][0] if a else None, b[0][0] if b else None, route=route)
    if not (a and b):
        return ONLY_A if a else ONLY_B
    same = {names for _, names in a} == {names for _, names in b}
    found = 0 if same else ROUTE
    for place, (bit, rounded) in enumerate(zip(PROPERTY.values(), ROUNDED, strict=True)):
        one, two = (
            {(rounded(total[place]), names if same else ()) for total, names in ways}
            for ways in (a, b)
        )
        found |= bit if one != two else 0
    return found


def _composed(state: LinkState) -> tuple[Any, ...]:
    """What of a link's state is seen in a path: not its queue and the form of its jitter."""
    return state[: 1 + len(COMPOSED)]


@dataclass(slots=True)
class _Column:
    """What is known about one column."""

    parts_a: Parts = field(default_factory=dict)
    parts_b: Parts = field(default_factory=dict)  # by rows of b
    ways: set[int] = field(default_factory=set)  # rows upstream of roots
    stale: bool = True  # `ways` may be others
    dirty: set[int] = field(default_factory=set)  # rows whose way has changed, on either side


class Contrast:
    """Two networks, and where they differ at this moment. Rows and columns are those of `a`."""

    def __init__(self, a: NetworkSide, b: NetworkSide) -> None:
        self.a = a
        self.b = b
        self.match = Matching(a, b)
        self.roots: dict[int, set[int]] = {}  # column -> rows
        self._known: dict[int, _Column] = {}
        self._odd_links: set[int] = set()  # core links (of a) whose state differs
        self._odd_out: set[int] = set()  # instances whose access link differs, from them
        self._odd_in: set[int] = set()  # the same, to them
        # Since the last update: instances whose access link has changed, and of these, those that
        # have begun or ceased to be odd.
        self._changed_out: set[int] = set()
        self._changed_in: set[int] = set()
        self._turned: set[int] = set()

    # --- keeping up to date --------------------------------------------------------------------

    def start(self) -> set[int]:
        """Compares everything; the columns in which something may differ."""
        for link in range(len(self.match.link_b)):
            self._link_changed(link, set())
        width = self.a.width
        cells: Iterable[int] = range(len(self.a.core.rows) * width)
        if self.match.same_table:
            both = zip(self.a.table, self.b.table, strict=True)
            cells = [cell for cell, (one, two) in enumerate(both) if one != two]
        for cell in {*cells, *self._cells_of(self._odd_links)}:
            self._check_cell(cell)
        return set(range(width)) if self._odd_out else set(self.roots) | self._odd_columns()

    def update(self, a: Happening, b: Happening) -> set[int]:
        """Takes the changes of an instant; the columns that may differ otherwise than before."""
        self._changed_out, self._changed_in, self._turned = set(), set(), set()
        touched = self._forget(self.a, a) | self._forget(self.b, b)
        self.a.take(*a)
        self.b.take(*b)
        recheck = self._recheck(a[1], b[1])
        flipped: set[int] = set()
        for link in [link for link, _ in a[0]] + [self.match.link_a[link] for link, _ in b[0]]:
            if link >= 0:
                touched |= self._link_changed(link, flipped)
        for cell in recheck | self._cells_of(flipped):
            if self._check_cell(cell):
                column = cell % self.a.width
                touched.add(column)
                if column in self._known:
                    self._known[column].stale = True
        return touched

    def _forget(self, side: NetworkSide, happening: Happening) -> set[int]:
        """Forgets about ways that lead over what is going to change; the columns of these.

        What was not known before leads there only where it becomes a root's upstream, or odd.
        """
        if not (self._known or self.roots):
            return set()
        links, routes = happening
        found: set[int] = set()
        for cell in routes.cells if routes is not None else ():
            row, column = divmod(cell, side.width)
            found |= self._forget_row(side, row, column, stale=True)
        for link, _ in links:
            if link in side.place:
                for column in side.columns_using(link):
                    found |= self._forget_row(side, side.place[link][0], column)
            else:
                found |= self._forget_access(side, link)
        return found

    def _forget_row(
        self, side: NetworkSide, row: int, column: int, *, stale: bool = False
    ) -> set[int]:
        """Of the column (as `side` counts it): this row and what is upstream of it.

        `stale`: its next link changes, and not only the state of that.
        """
        mine = side is self.a
        column_a = column if mine else self.match.column_a[column]
        known = self._known.get(column_a)
        if known is None:
            return {column_a} if column_a in self.roots else set()
        known.stale |= stale and mine
        parts = known.parts_a if mine else known.parts_b
        for lost in side.upstream(column, (row,), parts) if row in parts else ():
            del parts[lost]
            row_a = lost if mine else self.match.row_a[lost]
            if row_a >= 0:  # else a bridge that only `b` has, where nobody to compare begins
                known.dirty.add(row_a)
        return {column_a}

    def _forget_access(self, side: NetworkSide, link: int) -> set[int]:
        """The columns of pairs with the instance that has this access link."""
        instance, leaves = side.access(link)
        if side is self.b:
            instance = self.match.node_a[instance]
        if instance < 0:
            return set()
        if not leaves:
            self._changed_in.add(instance)
            return {self.a.column[instance]}
        self._changed_out.add(instance)
        if instance in self._odd_out:
            return set(range(self.a.width))
        row = self.a.source_row[instance]
        ways = {column for column, known in self._known.items() if row in known.ways}
        return ways | self._odd_columns()

    def _recheck(self, routes_a: RouteDelta | None, routes_b: RouteDelta | None) -> set[int]:
        """The cells (of a) whose being a root may have changed."""
        cells_a = set(routes_a.cells) if routes_a else set()
        if not self.match.same_table:
            cells_b = map(self.match.cell_a, routes_b.cells) if routes_b else ()
            return (cells_a | set(cells_b)) - {-1}
        found: set[int] = set()
        if routes_a != routes_b:
            one = set(zip(routes_a.cells, routes_a.values, strict=True)) if routes_a else set()
            two = set(zip(routes_b.cells, routes_b.values, strict=True)) if routes_b else set()
            found = {cell for cell, _ in one ^ two}
        if not (self.roots or self._odd_links):
            return found
        # Beside these only cells that were roots, or choose a link whose state differs now.
        odd_rows, width = {self.a.place[link][0] for link in self._odd_links}, self.a.width
        for cell in cells_a:
            row, column = divmod(cell, width)
            if row in odd_rows or row in self.roots.get(column, ()):
                found.add(cell)
        return found

    def _cells_of(self, links: Iterable[int]) -> set[int]:
        """All cells of the rows where these core links begin."""
        width, place = self.a.width, self.a.place
        rows = {place[link][0] for link in links}
        return {cell for row in rows for cell in range(row * width, row * width + width)}

    def _link_changed(self, link: int, flipped: set[int]) -> set[int]:
        """Whether the state of a link (of a) differs; adds core links for which this is new.

        Returns the columns that this concerns where it is an access link.
        """
        other = self.match.link_b[link]
        odd = other >= 0 and _composed(self.a.links[link]) != _composed(self.b.links[other])
        if link in self.a.place:
            if _put(self._odd_links, link, odd):
                flipped.add(link)
            return set()
        instance, leaves = self.a.access(link)
        if not _put(self._odd_out if leaves else self._odd_in, instance, odd):
            return set()
        self._turned.add(instance)
        (self._changed_out if leaves else self._changed_in).add(instance)
        return set(range(self.a.width)) if leaves else {self.a.column[instance]}

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
        if not self.match.dests[column]:
            return False  # nobody to compare
        there = self.a.next(row, column)
        other = self._next_b(row, column)
        if there == NO_LINK:
            return other != NO_LINK
        return self.match.link_b[there] != other or there in self._odd_links

    def _next_b(self, row: int, column: int) -> int:
        row_b, column_b = self.match.row_b[row], self.match.column_b[column]
        return self.b.next(row_b, column_b) if row_b >= 0 and column_b >= 0 else NO_LINK

    def _odd_columns(self) -> set[int]:
        return {self.a.column[i] for i in self._odd_in}

    # --- what differs --------------------------------------------------------------------------

    def column(self, column: int) -> Compared:
        """The pairs to this column's instances that may differ in other ways than when last asked.

        Others differ as they did then. A pair may come twice.
        """
        dests = self.match.dests[column]
        if not dests:
            return
        known = self._known.setdefault(column, _Column())
        before = known.ways
        if known.stale:
            known.ways = self.a.upstream(column, self.roots.get(column, ()))
            known.dirty |= known.ways ^ before
            known.stale = False
        odd_dests = self._odd_in.intersection(dests)
        for row in known.dirty:
            sources = self.match.sources[row]
            if row in known.ways or row in before:
                yield from self._compare(row, column, known, sources, dests)
                continue
            yield from self._compare(row, column, known, self._odd_out.intersection(sources), dests)
            yield from self._compare(row, column, known, sources, odd_dests)
        yield from self._changed(column, known)
        known.dirty = set()
        if not (known.ways or odd_dests or self._odd_out):
            del self._known[column]

    def _changed(self, column: int, known: _Column) -> Compared:
        """The pairs whose access links have changed, in rows that have not."""
        match, source_row = self.match, self.a.source_row
        dests = match.dests[column]
        for src in self._changed_out:
            mine = (src,) if src in match.sources[source_row[src]] else ()
            yield from self._compare(source_row[src], column, known, mine, dests)
        changed = self._changed_in.intersection(dests)
        if not changed:
            return
        everyone = range(len(match.sources))
        rows = known.ways | {source_row[src] for src in self._odd_out}
        for row in everyone if changed & self._turned or changed & self._odd_in else rows:
            yield from self._compare(row, column, known, match.sources[row], changed)

    def _compare(
        self,
        row: int,
        column: int,
        known: _Column,
        sources: Collection[int],
        dests: Collection[int],
    ) -> Compared:
        """Some of the sources of a row with some of the destinations of a column."""
        if not (sources and dests):
            return
        match, a, b = self.match, self.a, self.b
        part_a = part_b = a.part(row, column, known.parts_a)
        route = False
        if row in known.ways:
            part_b = b.part(match.row_b[row], match.column_b[column], known.parts_b)
            route = self._other_route(row, column)
        usual = _usual(part_a, part_b, route=route)
        results: dict[Stretch, int] = {}  # by the access links of both ends together
        for src in sources:
            for dst in dests:
                if src == dst:
                    continue
                ends = a.ends(src, dst)
                if src in self._odd_out or dst in self._odd_in:
                    ends_b = b.ends(match.node_b[src], match.node_b[dst])
                    one, two = a.with_ends(part_a, ends), b.with_ends(part_b, ends_b)
                    yield src, dst, differences(one, two, route=route)
                elif usual == 0 or not a.are_up(ends):
                    yield src, dst, 0
                elif usual is not None:
                    yield src, dst, usual
                else:
                    assert part_a is not None
                    assert part_b is not None
                    both = a.of_ends(ends)
                    if both not in results:
                        one, two = joined(part_a, both), joined(part_b, both)
                        results[both] = differences(one, two, route=route)
                    yield src, dst, results[both]

    def _other_route(self, row: int, column: int) -> bool:
        """Whether the links from a row to the anchor are others (and not only in another state)."""
        end = self.a.anchor_row[column]
        while row != end:
            there = self.a.next(row, column)
            if there == NO_LINK or self.match.link_b[there] != self._next_b(row, column):
                return True
            row = self.a.row_at[there]
        return False

    def irregular_pairs(self) -> dict[tuple[int, int], int]:
        """What differs for the pairs with an irregular instance; those that differ only."""
        found: dict[tuple[int, int], int] = {}
        match, odd = self.match, set(self.match.irregular)
        for src in match.common if odd else ():
            for dst in match.common if src in odd else match.irregular:
                if src != dst:
                    one = self.a.whole(src, dst)
                    two = self.b.whole(match.node_b[src], match.node_b[dst])
                    mask = _of_ways(one, two)
                    if mask:
                        found[src, dst] = mask
        return found


def _usual(part_a: Stretch | None, part_b: Stretch | None, *, route: bool) -> int | None:
    """What differs whatever equal access links (that are up) lie at the ends; None: it depends."""
    if part_a is None or part_b is None or _MASKABLE(part_a) == _MASKABLE(part_b):
        return differences(part_a, part_b, route=route)
    return None


def _put(members: set[int], member: int, there: bool) -> bool:
    """Whether this was new."""
    if there == (member in members):
        return False
    if there:
        members.add(member)
    else:
        members.discard(member)
    return True
