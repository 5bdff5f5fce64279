"""Composes the properties of a path from its links, exactly, rounding once at the end.

How is in compiler/plan/paths/path_properties.py. Where flows are shared out over equal links, a
path is that of one flow (compiler/plan/paths/flows.py): of a run's probes unless another is given;
or all of them are listed, with the share of flows that each is to get. Source: the network
collapsing of Kollaps and Thunderstorm; exact rounding rules in docs/plan.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.paths.flows import PROBES, FlowChoice, FlowTuple
from compiler.plan.paths.path_properties import NOTHING, Stretch, joined, of_link, totals
from compiler.plan.properties import Totals
from compiler.plan.routes.core import MAX_GROUP, NO_LINK
from compiler.plan.sparse import SparseState
from compiler.plan.state import NetworkState
from compiler.plan.types import Link


@dataclass(frozen=True, slots=True)
class PathProperties:
    """One direction between two instances. When unreachable, numbers are None and links empty.
    `shared`: it is one of several equal ones, which other flows may take."""

    src: int
    dst: int
    totals: Totals[int] | None
    rtt_ns: int | None  # None if either direction is unreachable
    links: tuple[int, ...]
    shared: bool = False

    @property
    def reachable(self) -> bool:
        return self.totals is not None


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a path, and its links."""

    total: Stretch
    links: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class EqualPath:
    """One of the paths that flows from one instance to another are shared out over."""

    share: Fraction
    path: PathProperties


class Paths:
    """Answers for one state; what is found once between two anchors is kept, or between two
    instances where they may have several paths."""

    def __init__(self, state: NetworkState | SparseState, flow: FlowTuple = PROBES) -> None:
        self._state = state
        self._flow = flow
        self._shared = any(state.core.groups)
        self._between: dict[tuple[int, int, FlowTuple | None], _Part | None] = {}

    def path(self, src: int, dst: int) -> PathProperties:
        """From instance to instance (node indices, different)."""
        part = self._part(src, dst, self._flow)
        if part is None:
            return PathProperties(src, dst, None, None, ())
        back = self._part(dst, src, self._flow.back())
        return self._path(src, dst, part, back)

    @staticmethod
    def _path(src: int, dst: int, part: _Part, back: _Part | None) -> PathProperties:
        return PathProperties(
            src=src,
            dst=dst,
            totals=totals(part.total),
            rtt_ns=None if back is None else part.total.delay_ns + back.total.delay_ns,
            links=part.links,
            shared=part.shared,
        )

    def equal(self, src: int, dst: int, most: int) -> tuple[int, list[EqualPath]]:
        """How many paths there are between two instances, and the first `most` of them, ordered by
        the numbers of their links; one without links where there is none."""
        core = self._state.core
        start, end = core.anchor[src], core.anchor[dst]
        back = self._part(dst, src, self._flow.back())
        found = []
        leads, links_of = partial(self._leads, end=end), self._state.topology.links
        ways = equal_ways(start, end, leads, links_of, f"epoch {self._state.epoch}")
        for one_in, links in islice(ways, most):
            total = NOTHING
            for link in links:
                total = joined(total, of_link(self._state.links[link]))
            part = self._with_ends(src, dst, _Part(total, links, one_in > 1))
            if part is None:
                break
            found.append(EqualPath(Fraction(1, one_in), self._path(src, dst, part, back)))
        if not found:
            return 1, [EqualPath(Fraction(1), PathProperties(src, dst, None, None, ()))]
        count = len(found) if len(found) < most else self._count(start, end)
        return count, found

    def _count(self, start: int, end: int) -> int:
        """How many ways there are from one core node to another."""
        known, todo = {end: 1}, [start]
        while todo:
            node = todo[-1]
            ends = [self._state.topology.links[link].dst for link in self._leads(node, end)]
            missing = [one for one in ends if one not in known]
            if not missing:
                known[node] = sum(known[one] for one in ends) if node != end else 1
                todo.pop()
            elif len(todo) > MAX_GROUP * len(self._state.core.rows):
                raise self._circle(node)
            todo += missing
        return known[start]

    def _leads(self, node: int, end: int) -> tuple[int, ...]:
        """The links by which packets for an anchor leave a core node."""
        state, core = self._state, self._state.core
        row = core.row_of[node]
        links = core.leads(row, state.table[row * len(core.columns) + core.column_of[end]])
        for link in links:
            if not state.links[link].up:
                raise PlanError(
                    ROUTES, f"epoch {state.epoch} routes over link {link}, which is down"
                )
        return links

    def _circle(self, node: int) -> PlanError:
        return PlanError(ROUTES, f"epoch {self._state.epoch} routes in a circle at node {node}")

    def _part(self, src: int, dst: int, flow: FlowTuple) -> _Part | None:
        core = self._state.core
        if src == dst:
            raise ValueError("a path needs two different instances")
        key: tuple[int, int, FlowTuple | None] = (core.anchor[src], core.anchor[dst], None)
        if self._shared:
            key = (src, dst, flow)
        if key not in self._between:
            choice = FlowChoice(self._state.topology, src, dst, flow)
            self._between[key] = self._walk(core.anchor[src], core.anchor[dst], choice)
        return self._with_ends(src, dst, self._between[key])

    def _with_ends(self, src: int, dst: int, part: _Part | None) -> _Part | None:
        first, last = self._state.core.access_out[src], self._state.core.access_in[dst]
        if part is not None and first != NO_LINK:
            part = self._joined(self._of_link(first), part)
        if part is not None and last != NO_LINK:
            part = self._joined(part, self._of_link(last))
        return part

    def _walk(self, start: int, end: int, choice: FlowChoice) -> _Part | None:
        """From core node to core node, along the table."""
        state, node = self._state, start
        total, links, shared = NOTHING, list[int](), False
        for _ in range(len(state.core.rows)):
            if node == end:
                break
            equal = self._leads(node, end)
            if not equal:
                return None
            link, shared = choice.link(equal), shared or len(equal) > 1
            total = joined(total, of_link(state.links[link]))
            links.append(link)
            node = state.topology.links[link].dst
        if node != end:
            raise self._circle(node)
        return _Part(total, tuple(links), shared)

    def _of_link(self, link: int) -> _Part | None:
        state = self._state.links[link]
        if not state.up:
            return None
        return _Part(of_link(state), (link,))

    @staticmethod
    def _joined(a: _Part | None, b: _Part | None) -> _Part | None:
        if a is None or b is None:
            return None
        return _Part(joined(a.total, b.total), a.links + b.links, a.shared or b.shared)


def path(state: NetworkState, src: int, dst: int) -> PathProperties:
    """One path. For many paths in one state keep a Paths: it does not start over each time."""
    return Paths(state).path(src, dst)


# All ways that flows between two nodes are shared out over, one by one: fat trees have many.
#
# Input: the links by which packets leave each node. Output: ways, ordered as these links are.


def equal_ways(
    start: int,
    end: int,
    leads: Callable[[int], Sequence[int]],
    links: Sequence[Link],
    whose: str,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields how few of the flows take a way, one in so many, and its links. Raises PlanError, in
    the name of `whose` routes they are, for a circle."""
    todo: list[tuple[int, int, tuple[int, ...]]] = [(start, 1, ())]
    while todo:
        node, one_in, way = todo.pop()
        if node == end:
            yield one_in, way
            continue
        if node in [start, *(links[one].dst for one in way)][:-1]:
            raise PlanError(ROUTES, f"{whose} routes in a circle at node {node}")
        equal = leads(node)
        for link in reversed(equal):
            todo.append((links[link].dst, one_in * len(equal), (*way, link)))
