"""Changes of the routing table, extended from anchors to the instances behind them.

For whoever has to tell an engine which link a node uses for which destination: the table knows
core nodes and anchors only; here every node and every destination instance appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.plan.routes.core import NO_LINK, Core
from compiler.plan.routes.table import RouteDelta

Links = tuple[int, ...]
Ranges = tuple[tuple[int, int], ...]  # (first, last) of destination instances, both included


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """At `node`, packets for these destinations now leave by one of `links`; () is unreachable."""

    node: int
    links: tuple[int, ...]
    ranges: Ranges

    def dests(self) -> list[int]:
        """Every destination instance, ascending."""
        return [dest for first, last in self.ranges for dest in range(first, last + 1)]


def _ranges(dests: Iterable[int]) -> Ranges:
    """Of ascending numbers."""
    found: list[tuple[int, int]] = []
    for dest in dests:
        if found and found[-1][1] == dest - 1:
            found[-1] = (found[-1][0], dest)
        else:
            found.append((dest, dest))
    return tuple(found)


def route_groups(core: Core, delta: RouteDelta, *, initial: bool) -> Iterator[RouteGroup]:
    """By node, then links, each (node, links) once.

    `initial` adds the routes that never change: an instance behind an anchor sends everything by
    its access link, the anchor hands over by the access link.
    """
    changed = _by_row(core, delta)
    fixed = _fixed(core) if initial else {}
    for node in sorted(changed.keys() | fixed.keys()):
        row, values = core.row_of[node], changed.get(node, {})
        groups = {core.leads(row, value): _ranges(sorted(values[value])) for value in values}
        groups.update(fixed.get(node, {}))
        for links in sorted(groups):
            if groups[links]:
                yield RouteGroup(node, links, groups[links])


def _by_row(core: Core, delta: RouteDelta) -> dict[int, dict[int, list[int]]]:
    """node -> value of cells -> destinations."""
    width = len(core.columns)
    found: dict[int, dict[int, list[int]]] = {}
    for cell, value in zip(delta.cells, delta.values, strict=True):
        row, column = divmod(cell, width)
        dests = found.setdefault(core.rows[row], {}).setdefault(value, [])
        dests.extend(core.behind[column])
    return found


def _fixed(core: Core) -> dict[int, dict[Links, Ranges]]:
    """node -> its access link -> destinations."""
    found: dict[int, dict[Links, Ranges]] = {}
    last = core.endpoints - 1
    for instance in range(core.endpoints):
        out, back = core.access_out[instance], core.access_in[instance]
        if out == NO_LINK:
            continue
        others = ((0, instance - 1), (instance + 1, last))
        found[instance] = {(out,): tuple(pair for pair in others if pair[0] <= pair[1])}
        found.setdefault(core.anchor[instance], {})[back,] = ((instance, instance),)
    return found
