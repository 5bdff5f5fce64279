"""The figures of collapsed paths in bulk, with what plan.paths.collapse does not tell: the queue
and the distribution.

Input: one state of the network, sources and destinations. Output: a Block per source and some of
its destinations. A path's queue is that of its first link of the least rate: there packets wait.
Its distribution is that of its first link of the greatest jitter: the others change the sum's
shape less.

Between two anchors that is found once per state and kept (as compiler.plan.paths.collapse does with
the rest), so a path costs its two access links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compiler.plan.paths.collapse import Collapse, Row
from compiler.plan.properties import LinkState
from compiler.plan.routes.core import NO_LINK
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology

BLOCK_PATHS = 512  # paths at a time: about a millisecond


class Figures(NamedTuple):
    """What one path is to do to packets."""

    rate_bps: int  # 0 = unlimited
    delay_ns: int
    jitter_ns: int
    loss_ppb: int
    queue_bytes: int
    dist: str


class Block(NamedTuple):
    """From `source` to each of `dests`; None where there is no path."""

    source: int
    dests: Sequence[int]
    figures: list[Figures | None]


class _Narrow(NamedTuple):
    """The narrowest and the most unsteady link of a stretch."""

    rate_bps: int
    queue_bytes: int
    jitter_ns: int
    dist: str


def _of_link(state: LinkState) -> _Narrow:
    return _Narrow(state.rate_bps, state.queue_bytes, state.jitter_ns, state.distribution)


def _joined(first: _Narrow, then: _Narrow) -> _Narrow:
    narrower = then.rate_bps and (not first.rate_bps or then.rate_bps < first.rate_bps)
    rate, queue = then[:2] if narrower else first[:2]
    jitter, dist = then[2:] if then.jitter_ns > first.jitter_ns else first[2:]
    return _Narrow(rate, queue, jitter, dist)


class _Stretches:
    """Between core nodes of one state; None from a node to itself. Only for what can be reached."""

    def __init__(self, state: NetworkState) -> None:
        self._state = state
        self._known: dict[int, _Narrow] = {}

    def between(self, row: int, column: int) -> _Narrow | None:
        core, table, links = self._state.core, self._state.table, self._state.topology.links
        width, end = len(core.columns), core.row_of[core.columns[column]]
        way: list[tuple[int, int]] = []
        found: _Narrow | None = None
        while row != end:
            cell = row * width + column
            found = self._known.get(cell)
            if found is not None:
                break
            link = core.out[row][table[cell] - 1]
            way.append((cell, link))
            row = core.row_of[links[link].dst]
        for cell, link in reversed(way):
            first = _of_link(self._state.links[link])
            found = first if found is None else _joined(first, found)
            self._known[cell] = found
        return found


class Bulk:
    """Answers for any state of one topology."""

    def __init__(self, topology: Topology) -> None:
        self._collapse = Collapse(topology)
        core = self._collapse.core
        self._column = [core.column_of[core.anchor[i]] for i in range(core.instances)]

    def blocks(
        self, state: NetworkState, wanted: Iterable[tuple[int, Sequence[int] | None]]
    ) -> Iterator[Block]:
        """Source by source in their order, at most BLOCK_PATHS destinations a block.

        `wanted` are sources, each with its destinations (None: all instances). Raises PlanError for
        wrong routes.
        """
        stretches = _Stretches(state)
        for source, dests in wanted:
            # One source at a time, so that nobody waits long for a block.
            for row in self._collapse.rows(state, [source], dests):
                yield from self._cut(state, row, stretches)

    def _cut(self, state: NetworkState, row: Row, stretches: _Stretches) -> Iterator[Block]:
        heads = _Heads(state, row.source, stretches)
        for begin in range(0, len(row.dests), BLOCK_PATHS):
            part = slice(begin, begin + BLOCK_PATHS)
            yield Block(row.source, row.dests[part], self._figures(state, row, part, heads))

    def _figures(
        self, state: NetworkState, row: Row, part: slice, heads: _Heads
    ) -> list[Figures | None]:
        access, links, column = state.core.access_in, state.links, self._column
        found: list[Figures | None] = []
        columns = (row.dests, row.hops, row.rate_bps, row.delay_ns, row.jitter_ns, row.loss_ppb)
        for dest, hops, rate, delay, jitter, loss in zip(
            *[values[part] for values in columns], strict=True
        ):
            if not hops:
                found.append(None)
                continue
            head = heads[column[dest]]
            if access[dest] == NO_LINK:
                assert head is not None  # a path has a link
                queue, dist = head.queue_bytes, head.dist
            else:
                end = links[access[dest]]
                ahead = head is not None and head.rate_bps == rate
                queue = head.queue_bytes if head and ahead else end.queue_bytes
                steady = head is None or end.jitter_ns > head.jitter_ns
                dist = end.distribution if steady or head is None else head.dist
            found.append(Figures(rate, delay, jitter, loss, queue, dist if jitter else "normal"))
        return found


class _Heads(dict[int, _Narrow | None]):
    """From one source to a column's anchor, its access link included; found when asked for."""

    def __init__(self, state: NetworkState, source: int, stretches: _Stretches) -> None:
        core = state.core
        out = core.access_out[source]
        self._first = None if out == NO_LINK else _of_link(state.links[out])
        self._row = core.row_of[core.anchor[source]]
        self._stretches = stretches

    def __missing__(self, column: int) -> _Narrow | None:
        first, then = self._first, self._stretches.between(self._row, column)
        if first is None or then is None:
            found = then if first is None else first
        else:
            found = _joined(first, then)
        self[column] = found
        return found
