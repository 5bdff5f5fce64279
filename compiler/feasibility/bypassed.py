"""TS0925: links that no path between two instances ever leads over. TS0960: `routing ecmp` that
never has more than one path.

Input: the next hops of every epoch, as they pass on their way into the plan. At 0 s each way from
where instances are is walked along, to the next place of instances. Later the ways behind a next
hop that has changed are, where instances are in front of it, which is looked up against the
direction of the way. Ways are left where no link that is looked for can be ahead of them in any
state. All ends when every declared link has been met or `WORK` is used up: the warning then says
so, and there is none where it was used up at 0 s. Links of instances that are behind one bridge are
what all their packets take, and not looked at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from compiler.declare.model import Model
from compiler.feasibility.statement_places import StatementPlaces
from compiler.phrases import link_name, moment, number
from compiler.plan.routes import tsroutes
from compiler.plan.routes.core import Core
from compiler.plan.routes.table import RouteDelta
from compiler.plan.types import Epoch
from tdl import ast
from tdl.diagnostics import Sink

WORK = 4_000_000  # steps along ways, about a second
MOST = 10  # warnings; the others are counted


class Bypassed:
    """One use: `through` first, all of it, then `warn`.

    unused    links that nobody has taken so far: number of the declaration, one of its directions
    """

    def __init__(self, model: Model) -> None:
        self._model, self._topology = model, model.planned
        self._places = StatementPlaces(model)
        self._core = core = Core(self._topology)
        self._width = len(core.columns)
        self._table = array("H", bytes(2 * core.cells))
        self._first = array("H")  # the table at 0 s
        self._sources = {core.row_of[core.anchor[i]] for i in range(core.endpoints)}
        enough = core.endpoints > 1
        links = range(0, len(self._topology.links) if enough else 0, 2)
        core_links = [d for d in links if core.is_core_link(self._topology, d)]
        self._links = {self._places.link_number(d): d for d in core_links}
        self.unused = dict(self._links)
        self._ahead = [core.row_of[link.dst] for link in self._topology.links]
        self._into: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (row, link) before a row
        for row, out in enumerate(core.out):
            for link in out:
                self._into[self._ahead[link]].append((row, link))
        self._hops = {hop: self._places.link_number(d) for d in core_links for hop in (d, d + 1)}
        self._work, self._states, self._looked = WORK, 0, 0
        self._near: set[int] = set()  # rows without instances from which an unused link is near
        self._nearest = 0  # how many of these there were when that was found out
        self._tells: dict[int, set[int]] = {}
        self._entered = set(self._sources)  # rows that ways begin at or may have led to so far

    def through(
        self, snapshots: Iterable[tuple[Epoch, RouteDelta]]
    ) -> Iterator[tuple[Epoch, RouteDelta]]:
        for epoch, delta in snapshots:
            self._states += 1
            self._core.add_groups(delta.groups)
            if delta.groups:
                self._tells.clear()
            if self.unused and self._work > 0:
                tsroutes.put(self._table, delta.cells, delta.values)
                if self._looked:
                    self._go_on(delta.cells)
                    self._looked += 1
                elif self._begin():
                    self._looked = 1
                else:
                    self.unused.clear()
            yield epoch, delta

    def _begin(self) -> bool:
        """All ways of the state at 0 s. False: it is too much, and nothing is known."""
        width, rows = self._width, range(len(self._core.rows))
        cells = [self._table[row * width : (row + 1) * width] for row in rows]
        found = list(map(set, cells))
        for row in self._sources:
            for value in found[row]:
                for link in self._core.leads(row, value):
                    self._meet(link)
        self._look_near()
        for row in rows:
            self._enter(row, found[row] & self._telling(row))
        for row in self._sources:
            if self._work <= 0:
                return False
            self._work -= width
            onward = found[row] & self._telling(row)
            for column, value in enumerate(cells[row]) if onward else ():
                if value in onward:
                    for link in self._ahead_of(row, column):
                        self._meet(link)
        self._first = self._table[:]
        return True

    def _look_near(self) -> None:
        """Finds out from where, through rows without instances, some state could lead to a link
        that nobody has taken yet. What was found with a few more of these does, too."""
        if self._nearest and 10 * len(self.unused) > 9 * self._nearest:
            return
        self._nearest = len(self.unused)
        self._tells.clear()
        links = self._topology.links
        todo = [self._core.row_of[links[link].src] for link in self._hops]
        self._near = set()
        while todo:
            row = todo.pop()
            if row not in self._sources and row not in self._near:
                self._near.add(row)
                todo += [before for before, _ in self._into[row]]

    def _go_on(self, cells: array[int]) -> None:
        """What has become the way of somebody leads over a next hop that has changed. `cells` are
        ascending."""
        self._look_near()
        width, at = self._width, 0
        while at < len(cells):
            row = cells[at] // width
            first, at = at, bisect_left(cells, (row + 1) * width, at)
            changed = cells[first:at]
            telling = self._telling(row).intersection(map(self._table.__getitem__, changed))
            self._enter(row, telling)
            for cell in changed if telling and row in self._entered else ():
                if self._table[cell] not in telling:
                    continue
                found = self._ahead_of(row, cell % width)
                if found and self._passed(row, cell % width):
                    for link in found:
                        self._meet(link)

    def _enter(self, row: int, values: Iterable[int]) -> None:
        """A cell of the row has one of these values: some way may go on from the next row."""
        for value in values:
            self._entered.update(self._ahead[link] for link in self._core.leads(row, value))

    def _telling(self, row: int) -> set[int]:
        """The values of cells of a row with which a way may lead over a link that nobody has taken
        yet."""
        if row not in self._tells:
            self._tells[row] = {
                value
                for value in range(1, self._core.values(row) + 1)
                for link in self._core.leads(row, value)
                if link in self._hops or self._ahead[link] in self._near
            }
        return self._tells[row]

    def _ahead_of(self, row: int, column: int) -> list[int]:
        """Links that nobody has taken yet, on the ways from a row to a destination, until they come
        to where instances are: from there on they are ways of theirs."""
        table, width, ahead, near = self._table, self._width, self._ahead, self._near
        found, todo, seen = [], [row], {self._core.row_of[self._core.columns[column]]}
        while todo:
            row = todo.pop()
            if row in seen or not (value := table[row * width + column]):
                continue
            seen.add(row)
            self._work -= 1
            for link in self._core.leads(row, value):
                if link in self._hops:
                    found.append(link)
                if ahead[link] in near:
                    todo.append(ahead[link])
        return found

    def _meet(self, link: int) -> None:
        """Somebody's packets take it."""
        declared = self._hops.get(link, -1)
        if declared in self.unused:
            first = self.unused.pop(declared)
            for one in (first, first + 1):
                self._hops.pop(one, None)

    def _chosen(self, row: int, link: int, column: int) -> bool:
        return link in self._core.leads(row, self._table[row * self._width + column])

    def _passed(self, row: int, column: int) -> bool:
        """Whether a place of instances is on a way that leads to the row."""
        before = [row]
        while before:
            row = before.pop()
            if row in self._sources:
                return True
            before += [one for one, link in self._into[row] if self._chosen(one, link, column)]
            self._work -= 1
        return False

    def _way(self, table: array[int], row: int, column: int) -> Iterator[tuple[int, int]]:
        """The links from a row to a destination, and the rows that they lead to."""
        core = self._core
        root = core.row_of[core.columns[column]]
        while row != root and (value := table[row * self._width + column]):
            link = core.leads(row, value)[0]
            row = self._ahead[link]
            yield link, row

    def empty(self) -> dict[int, str]:
        """Bridges with several links at which no instance is and that no packet passes, with their
        names: nobody is there yet, and no link of theirs is warned of."""
        if not self._whole:
            return {}
        pairs = [self._ends(direction) for direction in self._links.values()]
        count = Counter(node for pair in pairs for node in pair)
        taken = (d for link, d in self._links.items() if link not in self.unused)
        busy = {node for direction in taken for node in self._ends(direction)}
        busy |= {node for pair in pairs if min(pair) < self._core.endpoints for node in pair}

        def awaits_somebody(node: int) -> bool:
            return self._core.column_of[node] < 0 and node not in busy and count[node] > 1

        names = self._topology.nodes
        return {node: names[node].name for node in sorted(count) if awaits_somebody(node)}

    def _worth_telling(self) -> list[tuple[int, int]]:
        empty = self.empty().keys()
        found = sorted(self.unused.items())
        dynamics, links = self._model.declared.dynamics, self._model.declared.links
        moving = {one.span for one in dynamics if isinstance(one.action, ast.Move)}
        return [
            (link, direction)
            for link, direction in found
            if empty.isdisjoint(self._ends(direction)) and links[link].span not in moving
        ]

    def _ends(self, direction: int) -> tuple[int, int]:
        link = self._topology.links[direction]
        return link.src, link.dst

    def warn(self, sink: Sink) -> None:
        routing = self._model.declared.routing
        if routing and routing.metric == "ecmp" and not any(self._core.groups):
            sink.warning(
                "TS0960",
                routing.span,
                "no two instances ever have more than one path",
                "paths are shared if the sums of their latencies are equal, to the nanosecond, and "
                "they have as many links",
            )
        left = self._worth_telling()
        for link, direction in left[:MOST]:
            statement = self._model.declared.links[link]
            way = self._way_instead(direction)
            message = f"no packet ever takes {link_name(statement)!r}"
            message += self._why(direction, way) + self._how_far()
            sink.warning("TS0925", statement.span, message, self._remedy(way))
        if len(left) > MOST:
            after, _ = left[MOST]
            message = f"no packet ever takes {number(len(left) - MOST, 'more link')}"
            sink.warning("TS0925", self._model.declared.links[after].span, message)

    def _remedy(self, way: Sequence[int]) -> str:
        if self._topology.routing == "delay" and len(way) > 1:
            return "`routing direct` takes a link wherever there is one; or leave it out"
        if self._topology.routing == "delay" and not way:
            return "`routing ecmp` shares flows out over equally fast ways; or leave it out"
        return "leave it out"

    def _way_instead(self, direction: int) -> list[int]:
        """The links that are taken at 0 s from one of its ends to the other, where that is easily
        seen: several, or one beside it, or none."""
        core, ends = self._core, self._topology.links[direction]
        column = core.column_of[ends.dst]
        if column < 0 or not self._first:
            return []
        way = [link for link, _ in self._way(self._first, core.row_of[ends.src], column)]
        return way if direction not in way else []

    def _why(self, direction: int, way: Sequence[int]) -> str:
        if not way:
            return ""
        topology = self._topology
        ends = topology.links[direction]
        first, last = topology.nodes[ends.src].name, topology.nodes[ends.dst].name
        nodes = [topology.nodes[topology.links[link].dst].name for link in way[:-1]]
        by = ", ".join(nodes) or topology.links[way[0]].name
        said = f": from {first} to {last} they go by {by}"
        takes_ns = sum(topology.links[link].state.delay_ns for link in way)
        if takes_ns <= ends.state.delay_ns:  # else events at 0 s have changed one of them
            said += f" in {moment(takes_ns)}, not {moment(ends.state.delay_ns)}"
        return said

    def _how_far(self) -> str:
        """How much was looked at, if that is not all."""
        if self._whole:
            return ""
        return f" (looked at {self._looked:,} of {self._states:,} states of the network)"

    @property
    def _whole(self) -> bool:
        return self._work > 0 or self._looked >= self._states
