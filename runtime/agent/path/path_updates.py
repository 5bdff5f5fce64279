"""What one host has to tell its datapath: the paths of its own instances, from epoch to epoch.

Input: a plan, the steps of a run and the host's own instances. Output: for the first step every
path from an own instance that there is, then for each later step what changes, as lines of the path
protocol. Nothing is computed for instances of other hosts, except that they are destinations.

Everything is an iterator that does about a millisecond of work at a time, so that whoever has
something better to do can do it in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compiler.plan.paths.collapse import Collapse, RouteRow
from compiler.plan.properties import LinkState, Totals
from compiler.plan.reader import Plan
from compiler.plan.routes.table import RouteDelta
from compiler.plan.state import NetworkState
from compiler.plan.types import Epoch, Topology
from runtime.agent.path import lines
from runtime.agent.path.affected_paths import AffectedPaths, Wanted
from runtime.schedule import Schedule

PART_LINES = 500  # told to the datapath at a time
SOURCES = 64  # whose figures of before are kept at a time, to compare with those after


class PathLine(NamedTuple):
    """One line about one path."""

    src: int
    dst: int
    text: str


@dataclass(frozen=True, slots=True)
class StagedPaths:
    """A step of the run as the network sees it. `parts` are at most PART_LINES lines each."""

    step: int
    state: NetworkState
    parts: tuple[tuple[PathLine, ...], ...]


class PathUpdates:
    """Follows the network through the `steps` of a run, from step `first` on.

    `begin` must be exhausted before `later` is begun. Any PlanError of the plan comes out of them.
    """

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        own: Sequence[int],
        first: int = 0,
    ) -> None:
        self._plan = plan
        self.steps = steps = schedule.steps
        self._own = own
        self._first = first
        self._bulk = Bulk(plan.topology)
        fold = plan.folded_at(steps[first].epoch.at_ns) if first else schedule.start
        self.state = plan.routed(fold)
        self._touched = AffectedPaths(self.state, own)

    def begin(self, *, everything: bool = False) -> Iterator[tuple[PathLine, ...]]:
        """The lines of the first step; with `everything` also of pairs without a path.

        A datapath that nobody has spoken to has no paths; one that served somebody else before may
        have any, and needs to be told.
        """
        for block in self._bulk.blocks(self.state, ((source, None) for source in self._own)):
            lines = list(self._all(block, everything=everything))
            yield tuple(lines)

    def later(self) -> Iterator[StagedPaths | None]:
        """StagedPaths for each step after the first, in order; None after every other bit of
        work."""
        for number in range(self._first + 1, len(self.steps)):
            before, epoch = self.state, self.steps[number].epoch
            delta = self._plan.routes.changes(epoch.index) if epoch.links else None
            self.state = after = _advanced(before, epoch, delta)
            parts: list[list[PathLine]] = []
            if delta is not None:  # routes and figures follow from the links
                touched = self._touched.find(
                    before, after.table, (link for link, _ in epoch.links), delta.cells
                )
                wanted = yield from _last(touched)
                for found in self._changed(before, after, wanted):
                    _add(parts, found)
                    yield None
            yield StagedPaths(number, after, tuple([tuple(part) for part in parts]))

    def _changed(
        self, before: NetworkState, after: NetworkState, wanted: Wanted
    ) -> Iterator[tuple[PathLine, ...]]:
        for begin in range(0, len(wanted), SOURCES):
            some = wanted[begin : begin + SOURCES]
            old: list[Block] = []
            for block in self._bulk.blocks(before, some):
                old.append(block)
                yield ()
            for was, block in zip(old, self._bulk.blocks(after, some), strict=True):
                lines = list(self._differences(was, block))
                yield tuple(lines)

    def _differences(self, before: Block, after: Block) -> Iterator[PathLine]:
        src = after.source
        for dst, old, new in zip(after.dests, before.figures, after.figures, strict=True):
            if old == new:
                continue
            if new is None:
                yield PathLine(src, dst, lines.down_line(src, dst))
            elif old is None:
                yield self._whole(src, dst, new)
            else:
                yield PathLine(src, dst, lines.changed_line(src, dst, old, new))

    def _all(self, block: Block, *, everything: bool) -> Iterator[PathLine]:
        """Lines that say all about the paths of a block, whatever was said before.

        Pairs without a path are closed with `everything`, and left out without.
        """
        src = block.source
        for dst, figures in zip(block.dests, block.figures, strict=True):
            if figures is not None:
                yield self._whole(src, dst, figures)
            elif everything and src != dst:
                yield PathLine(src, dst, lines.closed_line(src, dst))

    def _whole(self, src: int, dst: int, figures: LinkState) -> PathLine:
        nodes = self._plan.topology.nodes
        seed = lines.path_seed(self._plan.seed, nodes[src].name, nodes[dst].name)
        return PathLine(src, dst, lines.whole_line(src, dst, figures, seed))

    def about(self, state: NetworkState, nodes: Iterable[int]) -> Iterator[tuple[PathLine, ...]]:
        """All about the own paths that begin or end at `nodes`, as they are in `state`."""
        some = sorted(nodes)
        wanted: Wanted = [(source, None if source in some else some) for source in self._own]
        for block in self._bulk.blocks(state, wanted):
            lines = list(self._all(block, everything=True))
            yield tuple(lines)


def _add(parts: list[list[PathLine]], found: Sequence[PathLine]) -> None:
    """Fills the last part first."""
    while found:
        if not parts or len(parts[-1]) == PART_LINES:
            parts.append([])
        room = PART_LINES - len(parts[-1])
        parts[-1].extend(found[:room])
        found = found[room:]


def _last(search: Iterator[Wanted | None]) -> Generator[None, None, Wanted]:
    """Hands on that work is being done; returns what comes of it."""
    for found in search:
        if found is not None:
            return found
        yield None
    raise AssertionError("a search ends with an answer")


def _advanced(state: NetworkState, epoch: Epoch, delta: RouteDelta | None) -> NetworkState:
    """The next state; what does not change is the same object as before."""
    nodes, links, table = list(state.nodes), state.links, state.table
    for node, word in epoch.nodes:
        nodes[node] = word
    if epoch.links:
        links = list(links)
        for link, link_state in epoch.links:
            links[link] = link_state
    if delta is not None and delta.cells:
        table = array("H", table)
        for cell, value in zip(delta.cells, delta.values, strict=True):
            table[cell] = value
    return NetworkState(state.topology, state.core, epoch.index, epoch.at_ns, nodes, links, table)


# The figures of collapsed paths in bulk, with what plan.paths.collapse does not tell: the queue
# and the distribution.
#
# Input: one state of the network, sources and destinations. Output: a Block per source and some of
# its destinations. A path's queue is that of its first link of the least rate: there packets wait.
# Its distribution is that of its first link of the greatest jitter: the others change the sum's
# shape less.
#
# Both the figures and these links are found in C (tcal_c/routes: compose.c, row.c).

BLOCK_PATHS = 512  # paths at a time: about a millisecond


class Block(NamedTuple):
    """From `source` to each of `dests` what the path is to do to packets, as if it were one link;
    None where there is no path."""

    source: int
    dests: Sequence[int]
    figures: list[LinkState | None]


class Bulk:
    """Answers for any state of one topology."""

    def __init__(self, topology: Topology) -> None:
        self._collapse = Collapse(topology)

    def blocks(
        self, state: NetworkState, wanted: Iterable[tuple[int, Sequence[int] | None]]
    ) -> Iterator[Block]:
        """Source by source in their order, at most BLOCK_PATHS destinations a block.

        `wanted` are sources, each with its destinations (None: all instances). Raises PlanError for
        wrong routes.
        """
        for source, dests in wanted:
            # One source at a time, so that nobody waits long for a block.
            for row in self._collapse.rows(state, [source], dests):
                links = self._collapse.deciding(state, row)
                for begin in range(0, len(row.dests), BLOCK_PATHS):
                    part = slice(begin, begin + BLOCK_PATHS)
                    yield Block(source, row.dests[part], _figures(state, row, links, part))


def _figures(
    state: NetworkState, row: RouteRow, deciding: tuple[Sequence[int], Sequence[int]], part: slice
) -> list[LinkState | None]:
    links, found = state.links, list[LinkState | None]()
    totals: Iterator[Totals[int]] = map(
        Totals._make, zip(*[column[part] for column in row.totals], strict=True)
    )
    columns = (values[part] for values in (row.hops, *deciding))
    for total, hops, narrowest, unsteadiest in zip(totals, *columns, strict=True):
        if not hops:
            found.append(None)
            continue
        queue = links[narrowest].queue_bytes
        dist = links[unsteadiest].distribution if total.jitter_ns else "normal"
        rate, delay, jitter, loss = total
        found.append(LinkState(True, rate, delay, jitter, loss, queue, dist))
    return found
