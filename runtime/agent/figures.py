"""The figures of collapsed paths in bulk, with what compiler.plan.collapse does not tell: the queue
and the distribution.

Input: one state of the network, sources and destinations. Output: a Block per source and some of
its destinations. A path's queue is that of its first link of the least rate: there packets wait.
Its distribution is that of its first link of the greatest jitter: the others change the sum's
shape less.

Between two anchors that is found once per state and kept (as compiler.plan.collapse does with the
rest), so a path costs its two access links.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from compiler.plan.collapse import Collapse, Row
from compiler.plan.core import NO_LINK
from compiler.plan.state import NetworkState
from compiler.plan.types import LinkState

BLOCK_PATHS = 512  # paths at a time: about a millisecond


class Figures(NamedTuple):
    """What one path is to do to packets."""

    rate_bps: int  # 0 = unlimited
    delay_ns: int
    jitter_ns: int
    loss_ppb: int
    queue_bytes: int
    dist: str


@dataclass(frozen=True, slots=True)
class Block:
    """From `source` to each of `dests`; all sequences are parallel.

    `hops` is 0 where there is no path. Figures as in compiler.plan.collapse.Row.
    """

    source: int
    dests: Sequence[int]
    rate_bps: Sequence[int]
    delay_ns: Sequence[int]
    jitter_ns: Sequence[int]
    loss_ppb: Sequence[int]
    queue_bytes: Sequence[int]
    dist: Sequence[str]
    hops: Sequence[int]

    def rows(self) -> Iterator[Figures | None]:
        """One per destination; None where there is no path."""
        columns = zip(
            *(self.rate_bps, self.delay_ns, self.jitter_ns, self.loss_ppb),
            *(self.queue_bytes, self.dist),
            strict=True,
        )
        for hops, values in zip(self.hops, columns, strict=True):
            yield Figures(*values) if hops else None


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


class _Source:
    """The ways from one source."""

    def __init__(self, state: NetworkState, stretches: _Stretches, source: int) -> None:
        core = state.core
        out = core.access_out[source]
        self._state = state
        self._stretches = stretches
        self._first = None if out == NO_LINK else _of_link(state.links[out])
        self._row = core.row_of[core.anchor[source]]
        self._known: dict[int, _Narrow | None] = {}

    def to(self, dest: int) -> _Narrow:
        """To an instance that can be reached."""
        core = self._state.core
        column = core.column_of[core.anchor[dest]]
        if column not in self._known:
            stretch = self._stretches.between(self._row, column)
            self._known[column] = _both(self._first, stretch)
        last = core.access_in[dest]
        end = None if last == NO_LINK else _of_link(self._state.links[last])
        found = _both(self._known[column], end)
        assert found is not None  # a path has a link
        return found


def _both(first: _Narrow | None, then: _Narrow | None) -> _Narrow | None:
    if first is None or then is None:
        return then if first is None else first
    return _joined(first, then)


def blocks(
    collapse: Collapse,
    state: NetworkState,
    sources: Sequence[int],
    dests: Sequence[int] | None = None,
) -> Iterator[Block]:
    """Source by source in their order, at most BLOCK_PATHS destinations a block.

    `dests` are all instances unless given. Raises PlanError for wrong routes.
    """
    stretches = _Stretches(state)
    for source in sources:
        # One source at a time, so that nobody waits long for a block.
        for row in collapse.rows(state, [source], dests):
            yield from _cut(row, _Source(state, stretches, source))


def _cut(row: Row, source: _Source) -> Iterator[Block]:
    for begin in range(0, len(row.dests), BLOCK_PATHS):
        part = slice(begin, begin + BLOCK_PATHS)
        queue, dist = array("Q"), []
        for dest, hops in islice(zip(row.dests, row.hops, strict=True), part.start, part.stop):
            if hops:
                narrow = source.to(dest)
                queue.append(narrow.queue_bytes)
                dist.append(narrow.dist if narrow.jitter_ns else "normal")
            else:
                queue.append(0)
                dist.append("")
        yield Block(
            row.source,
            row.dests[part],
            row.rate_bps[part],
            row.delay_ns[part],
            row.jitter_ns[part],
            row.loss_ppb[part],
            queue,
            dist,
            row.hops[part],
        )
