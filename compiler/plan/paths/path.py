"""Composes the properties of a path from its links, exactly, rounding once at the end.

How is in compiler/plan/paths/path_properties.py. Source: the network collapsing of Kollaps and
Thunderstorm; exact rounding rules in docs/plan.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.paths.path_properties import (
    NOTHING,
    Stretch,
    joined,
    of_link,
    totals,
)
from compiler.plan.properties import Totals
from compiler.plan.routes.core import NO_LINK
from compiler.plan.sparse import SparseState
from compiler.plan.state import NetworkState


@dataclass(frozen=True, slots=True)
class PathProperties:
    """One direction between two instances. When unreachable, numbers are None and links empty."""

    src: int
    dst: int
    totals: Totals[int] | None
    rtt_ns: int | None  # None if either direction is unreachable
    links: tuple[int, ...]

    @property
    def reachable(self) -> bool:
        return self.totals is not None


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a path, and its links."""

    total: Stretch
    links: tuple[int, ...]


class Paths:
    """Answers for one state; what is found once between two anchors is kept."""

    def __init__(self, state: NetworkState | SparseState) -> None:
        self._state = state
        self._between: dict[tuple[int, int], _Part | None] = {}

    def path(self, src: int, dst: int) -> PathProperties:
        """From instance to instance (node indices, different)."""
        part = self._part(src, dst)
        if part is None:
            return PathProperties(src, dst, None, None, ())
        back = self._part(dst, src)
        return PathProperties(
            src=src,
            dst=dst,
            totals=totals(part.total),
            rtt_ns=None if back is None else part.total.delay_ns + back.total.delay_ns,
            links=part.links,
        )

    def _part(self, src: int, dst: int) -> _Part | None:
        core = self._state.core
        first, last = core.access_out[src], core.access_in[dst]
        start, end = core.anchor[src], core.anchor[dst]
        if src == dst:
            raise ValueError("a path needs two different instances")
        key = (start, end)
        if key not in self._between:
            self._between[key] = self._walk(start, end)
        part = self._between[key]
        if part is not None and first != NO_LINK:
            part = self._joined(self._of_link(first), part)
        if part is not None and last != NO_LINK:
            part = self._joined(part, self._of_link(last))
        return part

    def _walk(self, start: int, end: int) -> _Part | None:
        """From core node to core node, along the table."""
        state, node = self._state, start
        core, width = state.core, len(state.core.columns)
        column = core.column_of[end]
        total, links = NOTHING, []
        for _ in range(len(core.rows)):
            if node == end:
                break
            row = core.row_of[node]
            choice = state.table[row * width + column]
            if not choice:
                return None
            link = core.out[row][choice - 1]
            if not state.links[link].up:
                raise PlanError(
                    ROUTES, f"epoch {state.epoch} routes over link {link}, which is down"
                )
            total = joined(total, of_link(state.links[link]))
            links.append(link)
            node = state.topology.links[link].dst
        if node != end:
            raise PlanError(ROUTES, f"epoch {state.epoch} routes in a circle at node {node}")
        return _Part(total, tuple(links))

    def _of_link(self, link: int) -> _Part | None:
        state = self._state.links[link]
        if not state.up:
            return None
        return _Part(of_link(state), (link,))

    @staticmethod
    def _joined(a: _Part | None, b: _Part | None) -> _Part | None:
        if a is None or b is None:
            return None
        return _Part(joined(a.total, b.total), a.links + b.links)


def path(state: NetworkState, src: int, dst: int) -> PathProperties:
    """One path. For many paths in one state keep a Paths: it does not start over each time."""
    return Paths(state).path(src, dst)
