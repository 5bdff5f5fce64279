"""Asks the engine for its counters ten times a second and writes what moved.

In virtual time it sleeps while nothing moves: to wake up is all that takes real time there. In real
time it always asks, since an engine that does not answer has stood still (runtime.judge.pulse).

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
from runtime.rundir.line_files import LineFile
from runtime.schedule import PlanClock

INTERVAL_NS = 100_000_000

LINK_COLUMNS = (
    *("link", "pkts", "bytes", "out_pkts", "out_bytes"),
    *("drop_queue", "drop_loss", "drop_down", "backlog_bytes", "backlog_pkts"),
    "own_backlog_bytes",
)
PAIR_COLUMNS = (
    *("src", "dst", "offered_pkts", "offered_bytes", "delivered_pkts", "delivered_bytes"),
    *("drop_queue", "drop_loss", "drop_down", "drop_route"),
)
LINK_DIGEST_COLUMNS = ("link", "digest")
PAIR_DIGEST_COLUMNS = ("src", "dst", "digest")


def arrays(lines: list[bytes]) -> bytes:
    """`[b"1 2", b"3 4"]` to `[[1,2],[3,4]]`."""
    return b"[]" if not lines else b"[[" + b"],[".join(lines).replace(b" ", b",") + b"]]"


def digest_arrays(lines: list[bytes]) -> bytes:
    """`[b"1 00ff", b"2 01fe"]` to `[[1,"00ff"],[2,"01fe"]]`."""
    words = (line.rpartition(b" ") for line in lines)
    return arrays([b'%b "%b"' % (numbers, digest) for numbers, _, digest in words])


class Sampler:
    """`links` and `pairs` hold the latest counters of each, as the engine said them. With `digests`
    the engine's digests of links are written, too. One that `rests` sleeps while nothing moves."""

    def __init__(
        self,
        engine: Engine,
        file: LineFile,
        clock: PlanClock,
        t0_ns: int,
        pulse: Pulse,
        *,
        digests: bool = False,
        rests: bool = False,
    ) -> None:
        self._engine = engine
        self._digests = digests
        self._rests = rests
        self._pulse = pulse
        self._file = file
        self._clock = clock
        self._t0_ns = t0_ns
        self._stop = asyncio.Event()
        self.links: dict[bytes, bytes] = {}
        self.pairs: dict[bytes, bytes] = {}
        self.counted_ns = 0
        header: dict[str, tuple[str, ...]] = {"links": LINK_COLUMNS, "pairs": PAIR_COLUMNS}
        if digests:
            header["digests"] = LINK_DIGEST_COLUMNS
        file.append({"columns": header, "interval_ns": INTERVAL_NS})

    async def sample(self) -> bool:
        """One sample. Whether something moved; nothing is written if nothing did."""
        questions = ["stats links", "stats pairs"] + ["digests"] * self._digests
        asked = self._pulse.asked()
        try:
            links, pairs, *digests = await self._engine.batch(questions)
        finally:
            self._pulse.answered(asked, ENGINE)
        self.counted_ns = elapsed = time.monotonic_ns() - self._t0_ns
        if not (links.body or pairs.body or any(answer.body for answer in digests)):
            return False
        head = b'{"at_ns":%d,"elapsed_ns":%d,"links":' % (self._clock.plan_time(elapsed), elapsed)
        line = head + arrays(links.body) + b',"pairs":' + arrays(pairs.body)
        line += b"".join(b',"digests":' + digest_arrays(answer.body) for answer in digests)
        self._file.append_bytes(line + b"}\n")
        for row in links.body:
            self.links[row.partition(b" ")[0]] = row
        for row in pairs.body:
            source, dest, _ = row.split(b" ", 2)
            self.pairs[source + b" " + dest] = row
        return True

    async def run(self) -> None:
        """Samples until `stop`. A sample that took longer than the interval skips the next."""
        due = self._t0_ns
        while not self._stop.is_set():
            due = max(due + INTERVAL_NS, time.monotonic_ns())
            left = (due - time.monotonic_ns()) / 1e9
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), left)
            try:
                if not await self.sample() and self._rests:
                    await self._rest()
                    due += (time.monotonic_ns() - due) // INTERVAL_NS * INTERVAL_NS
            except EngineError:
                return  # gone: the driver notices by itself

    async def _rest(self) -> None:
        """Until something moves, or `stop`."""
        moved = self._engine.moved
        moved.clear()
        await self._engine.call("await")
        if await self.sample():  # since the last one
            moved.set()
            return
        waiting = {asyncio.create_task(event.wait()) for event in (moved, self._stop)}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if self._stop.is_set():
            await self.sample()

    def stop(self) -> None:
        """Ends `run` after one more sample. Cancelling it instead would lose an answer, and with
        it counters that do not move again."""
        self._stop.set()


def table(rows: Mapping[bytes, bytes]) -> list[list[int]]:
    """The latest counters, in order of their numbers."""
    return sorted([int(word) for word in row.split()] for row in rows.values())
