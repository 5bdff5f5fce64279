"""Two plans as networks: which pairs of instances differ, in what, and in which intervals.

Input: two plans. Output: `Network`: groups of pairs that differ in the same way over the same
interval. Algorithm: both plans' epochs are gone through in order of time; at each instant only the
columns of the routing table that may differ otherwise than before are compared again
(compiler/plan/contrast.py). Pairs are of instances that both plans have, by name; time ends where
the first of the two ends, and what lasts for no time is not seen.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.plan.contrast import Contrast, Happening, Masks
from compiler.plan.sides import Side

if TYPE_CHECKING:
    from compiler.plan.reader import Plan


@dataclass(frozen=True, slots=True)
class Group:
    """Pairs that differ in the same way from one time to another."""

    from_ns: int
    to_ns: int
    mask: int  # of compiler.plan.contrast
    pairs: array[int]  # 'Q': source * instances + destination, by the first plan's nodes; sorted


@dataclass(frozen=True, slots=True)
class Network:
    compared: int  # instances that both plans have
    instances: int  # of the first plan: how pairs are numbered
    end_ns: int
    groups: tuple[Group, ...]  # by time, then mask

    def names(self, pair: int) -> tuple[int, int]:
        """The nodes of a pair, in the first plan."""
        return divmod(pair, self.instances)


class _Open:
    """What differs now, since when; and what did before."""

    def __init__(self, instances: int) -> None:
        self._instances = instances
        self._closed: dict[tuple[int, int, int], array[int]] = {}

    def close(self, pair: tuple[int, int], mask: int, since: int, at_ns: int) -> None:
        if mask and since < at_ns:
            key = (since, at_ns, mask)
            if key not in self._closed:
                self._closed[key] = array("Q")
            self._closed[key].append(pair[0] * self._instances + pair[1])

    def groups(self) -> tuple[Group, ...]:
        return tuple(
            Group(*key, array("Q", sorted(self._closed[key]))) for key in sorted(self._closed)
        )


class _Comparison:
    """The walk through the instants."""

    def __init__(self, contrast: Contrast) -> None:
        self.contrast = contrast
        self.open = _Open(contrast.a.core.instances)
        # column -> row -> what differs, and since when, for the pairs of the two
        self._cells: dict[int, dict[int, tuple[Masks, tuple[int, ...]]]] = {}
        self._odd: dict[tuple[int, int], tuple[int, int]] = {}  # irregular pairs

    def compare(self, columns: set[int], at_ns: int) -> None:
        for column in sorted(columns):
            self._column(column, self.contrast.column(column), at_ns)
        if self.contrast.match.irregular:
            self._irregular(self.contrast.irregular_pairs(), at_ns)

    def end(self, at_ns: int) -> None:
        for column in sorted(self._cells):
            self._column(column, dict.fromkeys(self._cells[column], ()), at_ns)
        self._irregular({}, at_ns)

    def _column(self, column: int, changed: dict[int, Masks], at_ns: int) -> None:
        rows = self._cells.setdefault(column, {})
        for row, masks in changed.items():
            entry = rows.pop(row, None)
            if entry is not None:
                self._close(row, column, entry, masks, at_ns)
            if any(masks):
                rows[row] = (masks, _since(entry, masks, at_ns))

    def _close(
        self,
        row: int,
        column: int,
        entry: tuple[Masks, tuple[int, ...]],
        masks: Masks,
        at_ns: int,
    ) -> None:
        old, since = entry
        for i, pair in enumerate(self.contrast.pairs(row, column)):
            if old[i] and (not masks or masks[i] != old[i]):
                self.open.close(pair, old[i], since[i], at_ns)

    def _irregular(self, found: dict[tuple[int, int], int], at_ns: int) -> None:
        for pair in sorted(self._odd.keys() | found.keys()):
            old, since = self._odd.get(pair, (0, at_ns))
            new = found.get(pair, 0)
            if old != new:
                self.open.close(pair, old, since, at_ns)
                self._odd[pair] = (new, at_ns)
        self._odd = {pair: entry for pair, entry in self._odd.items() if entry[0]}


def _since(
    entry: tuple[Masks, tuple[int, ...]] | None, masks: Masks, at_ns: int
) -> tuple[int, ...]:
    """Since when each pair has been differing as it does now."""
    if entry is None:
        return (at_ns,) * len(masks)
    old, since = entry
    return tuple(since[i] if old[i] == mask else at_ns for i, mask in enumerate(masks))


def _happenings(plan: Plan) -> Iterator[tuple[int, Happening]]:
    """(time, what changes) of every epoch after the first."""
    for epoch in plan.epochs[1:]:
        yield epoch.at_ns, (epoch.links, plan.routes.peek(epoch.index))


def side_at(plan: Plan, epoch: int) -> Side:
    """The network of a plan in one epoch; before the first (-1) nothing is up."""
    table = plan.routes.table(epoch) if epoch >= 0 else array("H", bytes(2 * plan.core.cells))
    side = Side(plan.topology, plan.core, table)
    for earlier in plan.epochs[: epoch + 1]:
        side.take(earlier.links, None)
    return side


def compare(a: Plan, b: Plan) -> Network:
    """All differences between the paths of two plans. Raises PlanError."""
    end_ns = min(a.end_ns, b.end_ns)
    contrast = Contrast(side_at(a, 0), side_at(b, 0))
    comparison = _Comparison(contrast)
    comparison.compare(contrast.start(), 0)
    nothing: Happening = ((), None)
    for at_ns, there, other in _merged(a, b):
        if at_ns >= end_ns:
            break
        columns = contrast.update(there or nothing, other or nothing)
        comparison.compare(columns, at_ns)
    comparison.end(end_ns)
    return Network(
        len(contrast.match.common), contrast.a.core.instances, end_ns, comparison.open.groups()
    )


def _merged(a: Plan, b: Plan) -> Iterator[tuple[int, Happening | None, Happening | None]]:
    """Every instant after 0 at which one of the two or both have an epoch."""
    rest_a, rest_b = _happenings(a), _happenings(b)
    one, two = next(rest_a, None), next(rest_b, None)
    while one is not None or two is not None:
        at_ns = min(item[0] for item in (one, two) if item is not None)
        first = one[1] if one is not None and one[0] == at_ns else None
        second = two[1] if two is not None and two[0] == at_ns else None
        yield at_ns, first, second
        if first is not None:
            one = next(rest_a, None)
        if second is not None:
            two = next(rest_b, None)
