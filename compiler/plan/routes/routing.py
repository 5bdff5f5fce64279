"""Shortest routes over the core of a topology, repaired when links change.

Metric: least total delay, then fewest hops (where the topology says so, fewest hops, then least
delay; or the link from one to the other where it is up, then as first), then at each node the next
node whose name sorts first (by code points), or all next nodes. Only bridges forward. The two
directions of a link are independent. Of several links to that node the one whose name sorts first
counts, or all of them. Source: docs/plan.md (routes).

The work is done in C (tcal_c/routes/table.c tells how); here topologies and link states become the
arrays of numbers that it reads. Cost follows the size of a change.
"""

from __future__ import annotations

import errno
import weakref
from array import array
from collections.abc import Iterable, Iterator

from compiler.plan.format import ROUTINGS, TOPOLOGY, PlanError
from compiler.plan.properties import LinkState
from compiler.plan.routes import tsroutes
from compiler.plan.routes.core import Core, Group
from compiler.plan.routes.table import RouteDelta, groups_of
from compiler.plan.state import epochs
from compiler.plan.types import Epoch, Event, Topology


class Routes:
    """The next hop of every core node towards every anchor; starts with all links down.

    Raises PlanError for a table that is too large, or when the library is missing.
    """

    def __init__(self, topology: Topology) -> None:
        self.core = core = Core(topology)
        self.table: array[int] = array("H", bytes(2 * core.cells))
        self._pin = memoryview(self.table)  # the table stays where it is while C writes to it
        self._library = tsroutes.library()
        order = _by_preference(topology, core)
        self._number = {link: i for i, (*_, link, _) in enumerate(order)}
        row_of = core.row_of
        self._handle = self._library.tsroutes_table_new(
            len(core.rows),
            len(core.columns),
            len(order),
            array("B", (_forwards(topology, node) for node in core.rows)),
            array("I", (row_of[anchor] for anchor in core.columns)),
            array("I", (row for row, *_ in order)),
            array("I", (row_of[topology.links[link].dst] for *_, link, _ in order)),
            array("H", (choice for *_, choice in order)),
            ROUTINGS.index(topology.routing),
            self.table,
        )
        self._group_numbers = 0  # of the groups that were told
        if not self._handle:
            raise self._no_memory()
        weakref.finalize(self, self._library.tsroutes_table_free, self._handle)

    def apply(self, links: Iterable[tuple[int, LinkState]]) -> RouteDelta:
        """Takes the new states of links and returns the cells of the table that change.

        Raises PlanError when there is no memory for it; these routes are then of no use any more.
        """
        numbers, delays, up = array("I"), array("Q"), array("B")
        for link, state in links:
            number = self._number.get(link)
            if number is not None:
                numbers.append(number)
                delays.append(state.delay_ns)
                up.append(state.up)
        if not numbers:
            return RouteDelta(array("I"), array("H"))
        failed = self._library.tsroutes_table_apply(self._handle, len(numbers), numbers, delays, up)
        if failed == -errno.ERANGE:
            what = "the equal paths of a bridge make more sets of links than a plan can have"
            raise PlanError(TOPOLOGY, what, "give links other latencies, or write `routing delay`")
        if failed:
            raise self._no_memory()
        count = self._library.tsroutes_table_changed(self._handle)
        cells, values = array("I", [0]) * count, array("H", [0]) * count
        if count:
            self._library.tsroutes_table_changes(self._handle, cells, values)
        return RouteDelta(cells, values, self._new_groups())

    def _new_groups(self) -> tuple[Group, ...]:
        """Those that the last apply was the first to use."""
        known = self._group_numbers
        self._group_numbers = self._library.tsroutes_table_group_numbers(self._handle)
        numbers = array("H", [0]) * (self._group_numbers - known)
        if not numbers:
            return ()
        self._library.tsroutes_table_groups(self._handle, known, numbers)
        found = tuple(groups_of(numbers))
        self.core.add_groups(found)
        return found

    def _no_memory(self) -> PlanError:
        rows, columns = len(self.core.rows), len(self.core.columns)
        return tsroutes.no_memory(
            f"for routes between {rows} core nodes and {columns} destinations"
        )


def _forwards(topology: Topology, node: int) -> bool:
    """A radio passes on what is for its own station only, which lies behind it."""
    return topology.nodes[node].service < 0 and not topology.nodes[node].air


def _by_preference(topology: Topology, core: Core) -> list[tuple[int, str, str, int, int]]:
    """Core links as (row, name of the next node, name of the link, link, choice): by row, then by
    these names."""
    named = topology.links
    return sorted(
        (row, topology.nodes[named[link].dst].name, named[link].name, link, choice)
        for row, links in enumerate(core.out)
        for choice, link in enumerate(links, 1)
    )


# From a topology and its timeline to the epochs of the plan: states and routes, as differences.
#
# Input: a Topology and its events in order. Output: for each epoch what changed in it (states of
# nodes and links, next hops). Source: docs/plan.md; the collapsing of paths itself is left to
# compiler.plan.paths.path, which needs only this.


def snapshots(topology: Topology, events: Iterable[Event]) -> Iterator[tuple[Epoch, RouteDelta]]:
    """One pair per epoch, in order. Raises PlanError if an event is impossible in its state."""
    routes = Routes(topology)
    for epoch in epochs(topology, events):
        yield epoch, routes.apply(epoch.links)
