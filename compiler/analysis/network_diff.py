"""Two plans as networks: which pairs of instances differ, in what, and in which intervals.

Input: two plans. Output: `NetworkDifference`: groups of pairs that differ in the same way over the
same interval. Algorithm: both plans' epochs are gone through in order of time; at each instant only
the columns of the routing table that may differ otherwise than before are compared again
(compiler/analysis/path_diff.py). Pairs are of instances that both plans have, by name; time ends
where the first of the two ends, and what lasts for no time is not seen.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from compiler.analysis.network_side import NetworkSide
from compiler.analysis.path_diff import Contrast, Happening
from compiler.plan.types import Node, interfaces

if TYPE_CHECKING:
    from compiler.plan.reader import Plan


_NOTHING: Happening = ((), None)
_TIME = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Group:
    """Pairs that differ in the same way from one time to another."""

    from_ns: int
    to_ns: int
    mask: int  # of compiler.analysis.path_diff
    pairs: array[int]  # 'Q': source * instances + destination, by the first plan's nodes; sorted


@dataclass(frozen=True, slots=True)
class NetworkDifference:
    compared: int  # instances that both plans have
    instances: int  # of the first plan: how pairs are numbered
    end_ns: int
    groups: tuple[Group, ...]  # by time, then mask

    def names(self, pair: int) -> tuple[int, int]:
        """The nodes of a pair, in the first plan."""
        return divmod(pair, self.instances)


def own_pairs(nodes: Sequence[Node], endpoints: int) -> frozenset[int]:
    """Pairs of interfaces of one instance, by number: what it sends itself does not leave it."""
    ends = [(owner, *further) for owner, further in interfaces(nodes).items()]
    return frozenset(a * endpoints + b for one in ends for a in one for b in one if a != b)


class _Comparison:
    """The walk through the instants."""

    def __init__(self, contrast: Contrast) -> None:
        self.contrast = contrast
        self._instances = contrast.a.core.endpoints
        self._own = own_pairs(contrast.a.topology.nodes, self._instances)
        self._open: dict[int, tuple[int, int]] = {}  # pair -> what differs, since when
        self._closed: dict[tuple[int, int, int], array[int]] = {}  # (from, to, what) -> pairs
        self._odd: set[int] = set()  # irregular pairs that differ

    def compare(self, columns: set[int], at_ns: int) -> None:
        for column in sorted(columns):
            for src, dst, mask in self.contrast.column(column):
                self._put(src * self._instances + dst, mask, at_ns)
        if self.contrast.match.irregular:
            self._irregular(at_ns)

    def end(self, at_ns: int) -> tuple[Group, ...]:
        """Everything that differs at any time, when time ends."""
        for pair in list(self._open):
            self._put(pair, 0, at_ns)
        return tuple(
            Group(*key, array("Q", sorted(self._closed[key]))) for key in sorted(self._closed)
        )

    def _put(self, pair: int, mask: int, at_ns: int) -> None:
        before, since = self._open.get(pair, (0, at_ns))
        if mask == before or pair in self._own:
            return
        if before and since < at_ns:
            key = (since, at_ns, before)
            if key not in self._closed:
                self._closed[key] = array("Q")
            self._closed[key].append(pair)
        if mask:
            self._open[pair] = (mask, at_ns)
        else:
            del self._open[pair]

    def _irregular(self, at_ns: int) -> None:
        found = {
            src * self._instances + dst: mask
            for (src, dst), mask in self.contrast.irregular_pairs().items()
        }
        for pair in self._odd - found.keys():
            self._put(pair, 0, at_ns)
        for pair, mask in found.items():
            self._put(pair, mask, at_ns)
        self._odd = set(found)


def _happenings(plan: Plan, side: int) -> Iterator[tuple[int, int, Happening]]:
    """(time, whose, what changes) of every epoch after the first."""
    for epoch in plan.epochs[1:]:
        yield epoch.at_ns, side, (epoch.links, plan.routes.peek(epoch.index))


def side_at(plan: Plan, epoch: int) -> NetworkSide:
    """The network of a plan in one epoch; before the first (-1) nothing is up."""
    table = plan.routes.table(epoch) if epoch >= 0 else array("H", bytes(2 * plan.core.cells))
    side = NetworkSide(plan.topology, plan.core, table)
    for earlier in plan.epochs[: epoch + 1]:
        side.take(earlier.links, None)
    return side


def compare(a: Plan, b: Plan) -> NetworkDifference:
    """All differences between the paths of two plans. Raises PlanError."""
    end_ns = min(a.end_ns, b.end_ns)
    contrast = Contrast(side_at(a, 0), side_at(b, 0))
    comparison = _Comparison(contrast)
    comparison.compare(contrast.start(), 0)
    for at_ns, there, other in _merged(a, b):
        if at_ns >= end_ns:
            break
        comparison.compare(contrast.update(there, other), at_ns)
    groups = comparison.end(end_ns)
    return NetworkDifference(len(contrast.match.common), contrast.a.core.endpoints, end_ns, groups)


def _merged(a: Plan, b: Plan) -> Iterator[tuple[int, Happening, Happening]]:
    """Every instant after 0 at which one of the two or both have an epoch."""
    both = merge(_happenings(a, 0), _happenings(b, 1), key=_TIME)
    for at_ns, group in groupby(both, key=_TIME):
        found = {side: happening for _, side, happening in group}
        yield at_ns, found.get(0, _NOTHING), found.get(1, _NOTHING)
