"""Asks the engine for its counters ten times a second and writes what moved.

The engine's lines become JSON arrays by replacing bytes, never number by number: with thousands of
pairs that is the difference between 1 ms and 30 ms in which no event could be applied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from runtime.datapath.pktd import Engine, EngineError
from runtime.judge.lateness import ENGINE
from runtime.judge.pulse import Pulse
from runtime.rundir.records import LineFile
from runtime.schedule import PlanClock

INTERVAL_NS = 100_000_000

LINK_COLUMNS = (
    *("link", "pkts", "bytes", "out_pkts", "out_bytes"),
    *("drop_queue", "drop_loss", "drop_down", "backlog_bytes", "backlog_pkts"),
)
PAIR_COLUMNS = (
    *("src", "dst", "offered_pkts", "offered_bytes", "delivered_pkts", "delivered_bytes"),
    *("drop_queue", "drop_loss", "drop_down", "drop_route"),
)


def arrays(lines: list[bytes]) -> bytes:
    """`[b"1 2", b"3 4"]` to `[[1,2],[3,4]]`."""
    return b"[]" if not lines else b"[[" + b"],[".join(lines).replace(b" ", b",") + b"]]"


class Sampler:
    """`links` and `pairs` hold the latest counters of each, as the engine said them."""

    def __init__(
        self, engine: Engine, file: LineFile, clock: PlanClock, t0_ns: int, pulse: Pulse
    ) -> None:
        self._engine = engine
        self._pulse = pulse
        self._file = file
        self._clock = clock
        self._t0_ns = t0_ns
        self._stop = asyncio.Event()
        self.links: dict[bytes, bytes] = {}
        self.pairs: dict[bytes, bytes] = {}
        header = {"links": LINK_COLUMNS, "pairs": PAIR_COLUMNS}
        file.append({"columns": header, "interval_ns": INTERVAL_NS})

    async def sample(self) -> None:
        """One sample; nothing is written if nothing moved."""
        asked = self._pulse.asked()
        try:
            links, pairs = await self._engine.batch(["stats links", "stats pairs"])
        finally:
            self._pulse.answered(asked, ENGINE)
        if not links.body and not pairs.body:
            return
        elapsed = time.monotonic_ns() - self._t0_ns
        head = b'{"at_ns":%d,"elapsed_ns":%d,"links":' % (self._clock.plan_time(elapsed), elapsed)
        line = head + arrays(links.body) + b',"pairs":' + arrays(pairs.body) + b"}\n"
        self._file.append_bytes(line)
        for row in links.body:
            self.links[row.partition(b" ")[0]] = row
        for row in pairs.body:
            source, dest, _ = row.split(b" ", 2)
            self.pairs[source + b" " + dest] = row

    async def run(self) -> None:
        """Samples until `stop`. A sample that took longer than the interval skips the next."""
        due = self._t0_ns
        while not self._stop.is_set():
            due = max(due + INTERVAL_NS, time.monotonic_ns())
            left = (due - time.monotonic_ns()) / 1e9
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), left)
            try:
                await self.sample()
            except EngineError:
                return  # gone: the driver notices by itself

    def stop(self) -> None:
        """Ends `run` after one more sample. Cancelling it instead would lose an answer, and with
        it counters that do not move again."""
        self._stop.set()


def table(rows: Mapping[bytes, bytes]) -> list[list[int]]:
    """The latest counters, in order of their numbers."""
    return sorted([int(word) for word in row.split()] for row in rows.values())
