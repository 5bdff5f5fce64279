"""What one host has to tell its datapath: the paths of its own instances, from epoch to epoch.

Input: a plan, the steps of a run and the host's own instances. Output: for the first step every
path from an own instance that there is, then for each later step what changes, as lines of the path
protocol. Nothing is computed for instances of other hosts, except that they are destinations.

Everything is an iterator that does about a millisecond of work at a time, so that whoever has
something better to do can do it in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compiler.plan.collapse import Collapse
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from compiler.plan.types import Epoch
from runtime.agent import lines
from runtime.agent.figures import Block, Figures, blocks
from runtime.timeline import Step


class Line(NamedTuple):
    """One line about one path."""

    src: int
    dst: int
    text: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the run as the network sees it. `parts` are lines, a few hundred each."""

    step: int
    state: NetworkState
    parts: tuple[tuple[Line, ...], ...]


class Needs:
    """Follows the network through the steps of a run, from step `first` on.

    `begin` must be exhausted before `later` is begun. Any PlanError of the plan comes out of them.
    """

    def __init__(
        self,
        plan: Plan,
        steps: Sequence[Step],
        own: Sequence[int],
        start_at_ns: int,
        first: int = 0,
    ) -> None:
        self._plan = plan
        self._steps = steps
        self._own = own
        self._first = first
        self._collapse = Collapse(plan.topology)
        self._before: dict[int, list[Block]] = {}  # source -> what was told last
        at_ns = steps[first].epoch.at_ns if first else start_at_ns
        self.state = plan.state_at(at_ns)

    def begin(self, *, everything: bool = False) -> Iterator[tuple[Line, ...]]:
        """The lines of the first step; with `everything` also of pairs without a path.

        A datapath that nobody has spoken to has no paths; one that served somebody else before may
        have any, and needs to be told.
        """
        for block in blocks(self._collapse, self.state, self._own):
            self._before.setdefault(block.source, []).append(block)
            yield tuple(self.whole(block, everything=everything))

    def later(self) -> Iterator[Stage | None]:
        """One Stage for each step after the first, in order; None after every other bit of work."""
        for number in range(self._first + 1, len(self._steps)):
            epoch = self._steps[number].epoch
            self.state = self._advanced(epoch)
            parts: list[tuple[Line, ...]] = []
            # Routes and figures follow from the links.
            for block in self._changed_blocks() if epoch.links else ():
                if block:
                    parts.append(block)
                yield None
            yield Stage(number, self.state, tuple(parts))

    def _advanced(self, epoch: Epoch) -> NetworkState:
        """The next state; what does not change is the same object as before."""
        state = self.state
        nodes, links, table = list(state.nodes), state.links, state.table
        for node, word in epoch.nodes:
            nodes[node] = word
        if epoch.links:
            links = list(links)
            for link, link_state in epoch.links:
                links[link] = link_state
            delta = self._plan.routes.changes(epoch.index)
            if delta.cells:
                table = array("H", table)
                for cell, value in zip(delta.cells, delta.values, strict=True):
                    table[cell] = value
        return NetworkState(
            state.topology, state.core, epoch.index, epoch.at_ns, nodes, links, table
        )

    def _changed_blocks(self) -> Iterator[tuple[Line, ...]]:
        place: dict[int, int] = dict.fromkeys(self._own, 0)
        for block in blocks(self._collapse, self.state, self._own):
            known, at = self._before[block.source], place[block.source]
            found = tuple(self._changed(known[at], block))
            known[at] = block
            place[block.source] += 1
            yield found

    def _changed(self, before: Block, after: Block) -> Iterator[Line]:
        if before == after:
            return
        src = after.source
        for dst, old, new in zip(after.dests, before.rows(), after.rows(), strict=True):
            if old == new:
                continue
            if new is None:
                yield Line(src, dst, lines.down_line(src, dst))
            elif old is None:
                yield self._whole(src, dst, new)
            else:
                yield Line(src, dst, lines.changed_line(src, dst, old, new))

    def whole(self, block: Block, *, everything: bool) -> Iterator[Line]:
        """Lines that say all about the paths of a block, whatever was said before.

        Pairs without a path are closed with `everything`, and left out without.
        """
        src = block.source
        for dst, figures in zip(block.dests, block.rows(), strict=True):
            if figures is not None:
                yield self._whole(src, dst, figures)
            elif everything and src != dst:
                yield Line(src, dst, lines.closed_line(src, dst))

    def _whole(self, src: int, dst: int, figures: Figures) -> Line:
        nodes = self._plan.topology.nodes
        seed = lines.path_seed(self._plan.seed, nodes[src].name, nodes[dst].name)
        return Line(src, dst, lines.whole_line(src, dst, figures, seed))

    def about(self, state: NetworkState, nodes: Sequence[int]) -> Iterator[tuple[Line, ...]]:
        """All about the own paths that begin or end at `nodes`, as they are in `state`."""
        own = set(self._own)
        mine = [node for node in sorted(nodes) if node in own]
        for block in blocks(self._collapse, state, mine):
            yield tuple(self.whole(block, everything=True))
        others = [source for source in self._own if source not in set(mine)]
        for block in blocks(self._collapse, state, others, sorted(nodes)):
            yield tuple(self.whole(block, everything=True))
