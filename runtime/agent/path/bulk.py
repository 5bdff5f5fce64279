"""The figures of collapsed paths in bulk, with what plan.paths.collapse does not tell: the queue
and the distribution.

Input: one state of the network, sources and destinations. Output: a Block per source and some of
its destinations. A path's queue is that of its first link of the least rate: there packets wait.
Its distribution is that of its first link of the greatest jitter: the others change the sum's
shape less.

Both the figures and these links are found in C (tcal_c/routes: compose.c, row.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compiler.plan.paths.collapse import Collapse, RouteRow
from compiler.plan.properties import LinkState, Totals
from compiler.plan.state import NetworkState
from compiler.plan.types import Topology

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
