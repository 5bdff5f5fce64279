"""Echoes from the networks of this host's own instances while a run goes on: a tprobe for each
pair, whose lines are told about once a second.

What of them cannot be sent is told as a notice: a run goes on without them. Whoever ends the task
ends the processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress

from runtime.agent.pod.podprocesses import PROC
from runtime.agent.process.orders import EchoOrder, EchoProbe
from runtime.coordinator.says import AgentNotice, EchoTimes, Say
from runtime.errors import RunError
from runtime.system import compiled_programs

SAY_SECONDS = 1.0
ROWS = 5000  # in one message
_USUAL = (0, 1)  # how tprobe ends; the latter where all were lost

Row = tuple[int, int, int | None]  # of EchoTimes


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
        return pair, sent_ns, delay

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            self._say(AgentNotice(f"some paths are not measured: {reason}"))

    async def _tell_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(SAY_SECONDS)
            self._tell()

    def _tell(self) -> None:
        rows, self._rows = self._rows, []
        for begin in range(0, len(rows), ROWS):
            self._say(EchoTimes(tuple(rows[begin : begin + ROWS])))


# Sends ICMP echoes from inside an instance's network: what its packets really meet (tprobe).

SPARE_SECONDS = 5.0  # for processes to start and end, beside the probes' own time


async def reach(network: int, probe: EchoProbe) -> list[int]:
    """The round-trip times, ns, of the echoes that were answered, in their order.

    `network` is a process in the network. Raises RunError where no echo can be sent at all.
    """
    seconds = (probe.echoes * probe.interval_ns + probe.timeout_ns) / 1e9 + SPARE_SECONDS
    process = await start(network, probe)
    try:
        said, complaints = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise RunError(f"the echoes to {probe.address} did not end in {seconds:.0f} s") from error
    lines = [json.loads(line) for line in said.splitlines()]
    if not lines:
        reason = complaints.decode(errors="replace").strip()
        raise RunError(f"no echo could be sent to {probe.address}: {reason:.400}")
    return [round(line["rtt_us"] * 1000) for line in lines if "rtt_us" in line]


async def start(network: int, probe: EchoProbe) -> asyncio.subprocess.Process:
    """A tprobe there, with a line for each echo."""
    words = ["rtt", probe.address, "--mode", "icmp", "--each", "--probe"]
    words += ["--count", str(probe.echoes), "--interval", f"{probe.interval_ns}ns"]
    words += ["--timeout", f"{probe.timeout_ns}ns"]
    try:
        space = os.open(PROC / str(network) / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(f"the network of process {network} is gone: {error.strerror}") from error
    enter = ["in", "--net", str(space), "--parent", str(os.getpid())]
    try:
        return await asyncio.create_subprocess_exec(
            compiled_programs.find("tstorm-ns"),
            *enter,
            str(compiled_programs.find("tprobe")),
            *words,
            pass_fds=[space],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise RunError(f"no probe can be started: {error.strerror}") from error
    finally:
        os.close(space)
