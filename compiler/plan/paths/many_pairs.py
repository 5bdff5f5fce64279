"""The paths of very many pairs in one state, source by source, in little memory.

Input: a NetworkState, sources and destinations. Output: for each source in order, and each
destination in order that is another instance, what compiler.plan.paths.path says of them. The
figures come from compiler.plan.paths.collapse, forth and back for some sources at a time; which
links a path has is read from the table, once per source and anchor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.plan.paths.collapse import Collapse, RouteRow
from compiler.plan.paths.path import PathProperties, Paths
from compiler.plan.properties import Totals
from compiler.plan.routes.core import NO_LINK
from compiler.plan.state import NetworkState

BLOCK = 256  # sources at a time: 36 bytes for each of them and destination


def between(
    state: NetworkState, sources: Sequence[int], dests: Sequence[int]
) -> Iterator[PathProperties]:
    """Raises PlanError where the routes of the state are wrong. Where packets are shared out over
    equal links, the paths are those of a run's probes."""
    if any(state.core.groups):
        paths = Paths(state)
        yield from (paths.path(src, dst) for src in sources for dst in dests if src != dst)
        return
    collapse = Collapse(state.topology)
    for start in range(0, len(sources), BLOCK):
        block = sources[start : start + BLOCK]
        back = list(collapse.rows(state, dests, block))
        for place, row in enumerate(collapse.rows(state, block, dests)):
            returning = [one.totals.delay_ns[place] for one in back]
            returns = [bool(one.hops[place]) for one in back]
            yield from _from_one(state, row, returning, returns)


def _from_one(
    state: NetworkState, row: RouteRow, returning: Sequence[int], returns: Sequence[bool]
) -> Iterator[PathProperties]:
    """`returning` are the delays of the ways back, where there is one."""
    ways = _Ways(state, row.source)
    src = row.source
    figures: Iterator[Totals[int]] = map(Totals._make, zip(*row.totals, strict=True))
    both = zip(row.dests, row.hops, figures, returning, returns, strict=True)
    for dst, hops, totals, delay_back, way_back in both:
        if hops:
            rtt = totals.delay_ns + delay_back if way_back else None
            yield PathProperties(src, dst, totals, rtt, ways.to(dst, hops))
        elif src != dst:
            yield PathProperties(src, dst, None, None, ())


class _Ways:
    """The links from one source; stretches between anchors are kept."""

    def __init__(self, state: NetworkState, source: int) -> None:
        self._state = state
        core = state.core
        out = core.access_out[source]
        self._first = () if out == NO_LINK else (out,)
        self._row = core.row_of[core.anchor[source]]
        self._known: dict[int, tuple[int, ...]] = {}

    def to(self, dest: int, hops: int) -> tuple[int, ...]:
        """To an instance that can be reached by so many links."""
        core = self._state.core
        last = core.access_in[dest]
        end = () if last == NO_LINK else (last,)
        column = core.column_of[core.anchor[dest]]
        links = self._known.get(column)
        if links is None:
            links = self._known[column] = self._walk(column, hops - len(self._first) - len(end))
        return (*self._first, *links, *end)

    def _walk(self, column: int, hops: int) -> tuple[int, ...]:
        core, table = self._state.core, self._state.table
        links = self._state.topology.links
        row, width = self._row, len(core.columns)
        found = []
        for _ in range(hops):
            link = core.out[row][table[row * width + column] - 1]
            found.append(link)
            row = core.row_of[links[link].dst]
        return tuple(found)
