"""Samples of a hosts run: every agent says by itself what moved, ten times a second.

What one agent said is one line, with the host that said it: their clocks are not quite the same,
and merging would claim more than is known. A pair is counted by its source's host.

Counters are cumulative and never fall, although a datapath that takes another one's place begins
anew: what the one before had counted last is added from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from operator import add, lt

from runtime.datapath.sampler import INTERVAL_NS, PAIR_COLUMNS, PAIR_DIGEST_COLUMNS
from runtime.rundir.line_files import LineFile
from runtime.schedule import PlanClock


class HostSamples:
    """`pairs` holds the latest counters of each; links are nowhere counted in a hosts run."""

    def __init__(
        self, file: LineFile, clock: PlanClock, names: Sequence[str], *, digests: bool = False
    ) -> None:
        self._file = file
        self._clock = clock
        self._names = names
        self._stop = asyncio.Event()
        self.links: Mapping[bytes, bytes] = {}
        self.pairs: dict[bytes, bytes] = {}
        self.counted_ns = 0
        self._last: dict[tuple[int, int], Sequence[int]] = {}  # as they came
        self._before: dict[tuple[int, int], list[int]] = {}  # counted by datapaths that are gone
        self._digests = digests
        header: dict[str, Sequence[str]] = {"links": (), "pairs": PAIR_COLUMNS}
        if digests:
            header["digests"] = PAIR_DIGEST_COLUMNS
        file.append({"columns": header, "interval_ns": INTERVAL_NS})

    def take(
        self,
        host: int,
        elapsed_ns: int,
        rows: Sequence[Sequence[int]],
        digests: Sequence[Sequence[object]] = (),
    ) -> None:
        """`digests` are of the datapath that is there now: another one begins them anew."""
        self.counted_ns = max(self.counted_ns, elapsed_ns)
        rows = [self._continued(row) for row in rows]
        more = {"digests": digests} if self._digests else {}
        self._file.append(
            {
                "at_ns": self._clock.plan_time(elapsed_ns),
                "elapsed_ns": elapsed_ns,
                "host": self._names[host],
                "links": [],
                "pairs": rows,
                **more,
            }
        )
        for row in rows:
            self.pairs[b"%d %d" % (row[0], row[1])] = b" ".join(b"%d" % value for value in row)

    def _continued(self, row: Sequence[int]) -> Sequence[int]:
        pair = (row[0], row[1])
        last, self._last[pair] = self._last.get(pair), row
        before = self._before.get(pair)
        if last is not None and any(map(lt, row[2:], last[2:])):
            before = [*map(add, before, last[2:])] if before else list(last[2:])
            self._before[pair] = before
        return row if before is None else [*pair, *map(add, row[2:], before)]

    async def run(self) -> None:
        """They come by themselves; the last ones with the answers to `stop`."""
        await self._stop.wait()

    def stop(self) -> None:
        self._stop.set()
