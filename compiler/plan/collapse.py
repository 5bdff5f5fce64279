"""Path properties in bulk: everything a source can reach in one state of the network.

Input: a NetworkState and which sources and destinations are asked about. Output: one Row per
source, with the figures of compiler.plan.paths in arrays. For single paths use that module: it also
names the links.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.plan.core import Core
from compiler.plan.paths import Paths
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology


@dataclass(frozen=True, slots=True)
class Row:
    """From `source` to each of `dests` (instances, by node index); all arrays are parallel.

    Where `hops` is 0 there is no path (or the destination is the source itself), and the other
    values are 0 as well.
    """

    source: int
    dests: Sequence[int]
    delay_ns: array[int]  # 'Q'
    jitter_ns: array[int]  # 'Q'
    loss_ppb: array[int]  # 'Q'
    rate_bps: array[int]  # 'Q'; 0 = unlimited
    hops: array[int]  # 'I': links on the path


class Collapse:
    """Answers for any state of one topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.core = Core(topology)

    def rows(
        self, state: NetworkState, sources: Sequence[int], dests: Sequence[int] | None = None
    ) -> Iterator[Row]:
        """One row per source, in their order; `dests` are all instances unless given.

        Raises PlanError if the routes of the state are wrong (docs/plan.md, composing a path).
        """
        wanted = range(self.core.instances) if dests is None else tuple(dests)
        paths = Paths(state)
        for source in sources:
            yield self._row(paths, source, wanted)

    @staticmethod
    def _row(paths: Paths, source: int, dests: Sequence[int]) -> Row:
        row = Row(source, dests, array("Q"), array("Q"), array("Q"), array("Q"), array("I"))
        for dest in dests:
            found = paths.path(source, dest) if dest != source else None
            row.delay_ns.append(found.delay_ns or 0 if found else 0)
            row.jitter_ns.append(found.jitter_ns or 0 if found else 0)
            row.loss_ppb.append(found.loss_ppb or 0 if found else 0)
            row.rate_bps.append(found.rate_bps or 0 if found else 0)
            row.hops.append(len(found.links) if found else 0)
        return row
