"""One pair of instances through all epochs of a plan: its route, and when anything on it changes.

Input: a plan. Output: for a pair, the walk from one instance to the other in any epoch, and the
epochs in which that walk comes out differently. Algorithm: a walk notes the cells of the routing
table and the links that it looked at; it can only come out differently in an epoch that changes one
of these, and those epochs are found by bisection in the histories of cells and links. No table but
the first is ever made. Source: docs/plan.md (Routes).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from compiler.plan.event_kinds import DOWN, UP
from compiler.plan.format import ROUTES, PlanError
from compiler.plan.paths.flows import PROBES, FlowChoice, FlowTuple
from compiler.plan.paths.path import equal_ways
from compiler.plan.properties import LinkState
from compiler.plan.routes.core import NO_LINK
from compiler.plan.types import Epoch

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.routes.table import RouteDelta

T = TypeVar("T")


class _Values(Generic[T]):
    """What something was from which epoch on."""

    __slots__ = ("epochs", "values")

    def __init__(self, first: T) -> None:
        self.epochs = [0]
        self.values = [first]

    def put(self, epoch: int, value: T) -> None:
        if epoch == 0:
            self.values[0] = value
        else:
            self.epochs.append(epoch)
            self.values.append(value)

    def at(self, epoch: int) -> T:
        return self.values[bisect_right(self.epochs, epoch) - 1]

    def after(self, epoch: int) -> int | None:
        """The next epoch that changes it."""
        place = bisect_right(self.epochs, epoch)
        return self.epochs[place] if place < len(self.epochs) else None


@dataclass(frozen=True, slots=True)
class RouteWalk:
    """From one instance towards another in one epoch, as far as one gets."""

    links: tuple[int, ...]  # links taken; the last may be down when `arrives` is false
    arrives: bool  # at the destination, all links being up
    cells: tuple[int, ...]  # of the routing table that were looked at
    shared: bool = False  # other flows may go by other links


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a walk comes out at; equal outcomes are the same path with the same properties."""

    links: tuple[int, ...]  # empty: unreachable
    states: tuple[LinkState, ...]
    shared: bool = False  # other flows may take other links


UNREACHABLE = Outcome((), ())


class History:
    """Answers about single nodes, links, cells and pairs in any epoch of one plan. Where flows are
    shared out over equal links, a walk is that of one flow: of the pair's in `flows`, or else of a
    run's probes."""

    def __init__(
        self, plan: Plan, flows: Mapping[tuple[int, int], FlowTuple] | None = None
    ) -> None:
        self.plan = plan
        self._flows = flows or {}
        self.topology = plan.topology
        self.core = plan.core
        self.epochs: tuple[Epoch, ...] = plan.epochs
        self.starts = [epoch.at_ns for epoch in self.epochs]
        self._nodes: dict[int, _Values[str]] = {}
        self._links: dict[int, _Values[LinkState]] = {}
        for epoch in self.epochs:
            self._take(epoch)
        self._first: array[int] | None = None  # the table of epoch 0
        self._deltas: list[RouteDelta] = []  # of epochs 1, 2, …
        self._cells: dict[int, _Values[int]] = {}

    def with_flows(self, flows: Mapping[tuple[int, int], FlowTuple]) -> History:
        """The same, with what it has found out so far, for other flows."""
        found = copy(self)
        found._flows = flows
        return found

    def _take(self, epoch: Epoch) -> None:
        for node, word in epoch.nodes:
            self._node(node).put(epoch.index, word)
        for link, state in epoch.links:
            self._link(link).put(epoch.index, state)

    def _node(self, node: int) -> _Values[str]:
        if node not in self._nodes:
            self._nodes[node] = _Values(DOWN)
        return self._nodes[node]

    def _link(self, link: int) -> _Values[LinkState]:
        if link not in self._links:
            self._links[link] = _Values(self.topology.links[link].state._replace(up=False))
        return self._links[link]

    def _cell(self, cell: int) -> _Values[int]:
        if self._first is None:
            self._first = self.plan.routes.table(0)
            self._deltas = [self.plan.routes.peek(e) for e in range(1, len(self.epochs))]
        if cell not in self._cells:
            found = _Values(self._first[cell])
            for epoch, delta in enumerate(self._deltas, 1):
                place = bisect_left(delta.cells, cell)
                if place < len(delta.cells) and delta.cells[place] == cell:
                    found.put(epoch, delta.values[place])
            self._cells[cell] = found
        return self._cells[cell]

    # --- one moment ----------------------------------------------------------------------------

    def epoch_at(self, at_ns: int) -> int:
        """The epoch that includes this time, which is not negative."""
        return bisect_right(self.starts, at_ns) - 1

    def node(self, node: int, epoch: int) -> str:
        """'up', 'cut' or 'down'."""
        return self._node(node).at(epoch)

    def link(self, link: int, epoch: int) -> LinkState:
        """The effective state: up only when its ends are, rate without background."""
        return self._link(link).at(epoch)

    def together(self, *nodes: int) -> int | None:
        """The first epoch in which all these instances are joined and connected."""
        found = 0
        while True:
            late = [self._nodes[node] for node in nodes if self.node(node, found) != UP]
            if not late:
                return found
            after = late[0].after(found)
            if after is None:
                return None
            found = after

    def walk(self, src: int, dst: int, epoch: int) -> RouteWalk:
        """From instance to instance (different ones)."""
        core, links, cells = self.core, list[int](), list[int]()
        node, choice, shared = src, self._choice(src, dst), False
        for _ in range(len(core.rows) + 2):
            if node == dst:
                return RouteWalk(tuple(links), True, tuple(cells), shared)
            equal = self._next(node, dst, epoch, cells)
            if not equal:
                return RouteWalk(tuple(links), False, tuple(cells))
            link, shared = choice.link(equal), shared or len(equal) > 1
            links.append(link)
            if not self.link(link, epoch).up:
                if self.core.is_core_link(self.topology, link):
                    raise PlanError(ROUTES, f"epoch {epoch} routes over link {link}, which is down")
                return RouteWalk(tuple(links), False, tuple(cells))
            node = self.topology.links[link].dst
        raise PlanError(ROUTES, f"epoch {epoch} routes in a circle at node {node}")

    def _choice(self, src: int, dst: int) -> FlowChoice:
        return FlowChoice(self.topology, src, dst, self._flows.get((src, dst), PROBES))

    def equal_routes(self, src: int, dst: int, epoch: int) -> Iterator[tuple[int, ...]]:
        """The links of all paths that flows from one instance to another are shared out over."""
        leads = partial(self._next, dst=dst, epoch=epoch, cells=[])
        ways = equal_ways(src, dst, leads, self.topology.links, f"epoch {epoch}")
        return (links for _, links in ways)

    def _next(self, node: int, dst: int, epoch: int, cells: list[int]) -> tuple[int, ...]:
        """As NetworkState.next_links; adds the cell that it looks at, if any."""
        core = self.core
        if core.access_out[node] != NO_LINK:
            return (core.access_out[node],)
        anchor = core.anchor[dst]
        if anchor == node:
            return (core.access_in[dst],)
        row = core.row_of[node]
        cell = row * len(core.columns) + core.column_of[anchor]
        cells.append(cell)
        choice = self._cell(cell).at(epoch)
        if choice > core.values(row):
            raise PlanError(ROUTES, f"cell {cell} names link {choice} of {core.values(row)}")
        return core.leads(row, choice)

    def outcome(self, walk: RouteWalk, epoch: int) -> Outcome:
        if not walk.arrives:
            return UNREACHABLE
        states = tuple(self.link(link, epoch) for link in walk.links)
        return Outcome(walk.links, states, walk.shared)

    # --- through time --------------------------------------------------------------------------

    def changes(
        self, pairs: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Epochs from which on the outcome of any of these pairs is another, with the outcomes.

        The first is always epoch 0.
        """
        before: tuple[Outcome, ...] = ()
        epoch: int | None = 0
        while epoch is not None:
            walks = [self.walk(src, dst, epoch) for src, dst in pairs]
            outcomes = tuple(self.outcome(walk, epoch) for walk in walks)
            if outcomes != before:
                yield epoch, outcomes
                before = outcomes
            epoch = self._touched_after(walks, epoch)

    def _touched_after(self, walks: list[RouteWalk], epoch: int) -> int | None:
        """The next epoch that changes something these walks looked at."""
        found = [self._cells[cell].after(epoch) for walk in walks for cell in walk.cells]
        found += [self._link(link).after(epoch) for walk in walks for link in walk.links]
        return min((later for later in found if later is not None), default=None)
