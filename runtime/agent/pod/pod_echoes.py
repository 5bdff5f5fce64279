"""Echoes from the networks of this host's own instances while a run goes on: a tprobe for each
pair, whose lines are told about once a second.

What of them cannot be sent is told as a notice: a run goes on without them. Whoever ends the task
ends the processes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from runtime.agent.pod.reach import start
from runtime.agent.process.orders import EchoOrder
from runtime.errors import RunError

SAY_SECONDS = 1.0
ROWS = 5000  # in one message
_USUAL = (0, 1)  # how tprobe ends; the latter where all were lost

Say = Callable[[Mapping[str, object]], None]
Row = list[int | None]


class Echoes:
    """`since`: ns since T0 of a time of CLOCK_MONOTONIC."""

    def __init__(self, say: Say, since: Callable[[int], int]) -> None:
        self._say = say
        self._since = since
        self._rows: list[Row] = []
        self._complained = False

    async def run(self, wanted: Iterable[tuple[int, EchoOrder]]) -> None:
        """Until all are over, or it is cancelled. `wanted`: with a process in the network of each
        sender."""
        async with asyncio.TaskGroup() as group:
            for network, order in wanted:
                group.create_task(self._carry_out(network, order))
            telling = group.create_task(self._tell_again_and_again())
            telling.add_done_callback(lambda _: self._tell())

    async def _carry_out(self, network: int, order: EchoOrder) -> None:
        try:
            await asyncio.sleep(order.wait_ns / 1e9)
            process = await start(network, order.probe)
        except RunError as error:
            self._complain(error.message)
            return
        try:
            await self._read(order.pair, process)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _read(self, pair: int, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        told = False
        async for line in process.stdout:
            row = self._row(pair, line)
            if row is not None:
                self._rows.append(row)
                told = True
        status = await process.wait()
        if status not in _USUAL or not told:
            words = (await process.stderr.read(400)).decode(errors="replace").strip()
            self._complain(words or f"tprobe has ended with status {status}, without a word")

    def _row(self, pair: int, line: bytes) -> Row | None:
        """None for its summary."""
        try:
            found = json.loads(line)
            sent_ns = self._since(int(found["t_ns"]))
            delay = None if found.get("lost") else round(found["rtt_us"] * 1000)
        except (ValueError, KeyError, TypeError):
            return None
        return [pair, sent_ns, delay]

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            self._say({"say": "notice", "text": f"some paths are not measured: {reason}"})

    async def _tell_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(SAY_SECONDS)
            self._tell()

    def _tell(self) -> None:
        rows, self._rows = self._rows, []
        for begin in range(0, len(rows), ROWS):
            self._say({"say": "echoes", "rows": rows[begin : begin + ROWS]})
