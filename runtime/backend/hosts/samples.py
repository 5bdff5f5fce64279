"""Samples of a hosts run: every agent says by itself what moved, ten times a second.

What one agent said is one line, with the host that said it: their clocks are not quite the same,
and merging would claim more than is known. A pair is counted by its source's host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from runtime.datapath.sampler import INTERVAL_NS, PAIR_COLUMNS
from runtime.rundir.records import LineFile
from runtime.schedule import PlanClock


class HostSamples:
    """`pairs` holds the latest counters of each; links are nowhere counted in a hosts run."""

    def __init__(self, file: LineFile, clock: PlanClock, names: Sequence[str]) -> None:
        self._file = file
        self._clock = clock
        self._names = names
        self._stop = asyncio.Event()
        self.links: Mapping[bytes, bytes] = {}
        self.pairs: dict[bytes, bytes] = {}
        header = {"links": (), "pairs": PAIR_COLUMNS}
        file.append({"columns": header, "interval_ns": INTERVAL_NS})

    def take(self, host: int, elapsed_ns: int, rows: Sequence[Sequence[int]]) -> None:
        self._file.append(
            {
                "at_ns": self._clock.plan_time(elapsed_ns),
                "elapsed_ns": elapsed_ns,
                "host": self._names[host],
                "links": [],
                "pairs": rows,
            }
        )
        for row in rows:
            self.pairs[b"%d %d" % (row[0], row[1])] = b" ".join(b"%d" % value for value in row)

    async def run(self) -> None:
        """They come by themselves; the last ones with the answers to `stop`."""
        await self._stop.wait()

    def stop(self) -> None:
        self._stop.set()
