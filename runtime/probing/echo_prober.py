"""Probes a run in a cluster: agents send ICMP echoes from the networks of instances, all the time,
and tell what became of them; kernels answer. What is measured is there and back, since every node
has a clock of its own.

Each two instances are probed from one side, but for those of which expectations ask both. If nobody
sends echoes, the run goes on without probes, and says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from compiler.plan.reader import Plan
from runtime.errors import RunError
from runtime.probing.chosen import chosen
from runtime.probing.probe_record import LOST_NS, Probe, line
from runtime.probing.prober import PairProber
from runtime.rundir.line_files import LineFile
from runtime.schedule import Schedule

MOST_WAIT_NS = 3_600_000_000_000
MOST_ECHOES = 1_000_000  # of a pair


@dataclass(frozen=True, slots=True)
class Echo:
    """Echoes between two nodes of the plan: the first one `wait_ns` from now, `count` in all.
    `number`: of the pair in the header."""

    number: int
    src: int
    dst: int
    count: int
    interval_ns: int
    timeout_ns: int
    wait_ns: int


Row = tuple[int, int, int | None]  # number of a pair, ns since time 0, round trip or lost
Heard = Callable[[Sequence[Row]], None]
Send = Callable[[Sequence[Echo], Heard], Awaitable[None]]
"""Has them sent from now on to the end of the run. RunError."""


class EchoProber(PairProber):
    """`send`: see Send."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        file: LineFile | None,
        send: Send,
        notice: Callable[[str], None],
        on_end: Callable[[str], None],
    ) -> None:
        super().__init__(plan, schedule, file, notice, on_end)
        self._send = send
        self._moved: set[int] = set()  # nodes that have another address by now
        self._end_ns: int | None = None  # what is sent later is of no interest
        self._asking: asyncio.Task[None] | None = None

    # -- before the start -----------------------------------------------------------------------

    async def start(self, _log: IO[bytes]) -> None:
        """Chooses pairs. PlanError."""
        if self._file is not None:
            self._chosen = chosen(self._plan, self._schedule)

    def follow(self, schedule: Schedule) -> None:
        """Elsewhere nobody changes the timeline of a run."""

    # -- while it goes on -----------------------------------------------------------------------

    def see(self, record: Mapping[str, Any]) -> None:
        """Echoes go to the address that an instance had at the start."""
        if record.get("kind") != "moved":
            return
        name = str(record["target"])
        nodes = self._plan.topology.nodes
        self._moved |= {number for number, node in enumerate(nodes) if node.name == name}
        if self._chosen.ways:
            self._notice(f"paths of {name} are not measured from now on: it has another address")

    def go(self) -> None:
        """After `begin`, until `end`."""
        if self._file is not None and self._chosen.ways:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        end_ns = self._schedule.end_due_ns - (time.monotonic_ns() - self._t0_ns)
        chosen, wanted = self._chosen, []
        rows = zip(chosen.ways, chosen.back, chosen.intervals_ns, strict=True)
        for number, (there, back, interval_ns) in enumerate(rows):
            timeout_ns = min(there.delay_ns + back.delay_ns + LOST_NS, MOST_WAIT_NS)
            wait_ns = chosen.first_ns(number)
            count = min(max(end_ns // interval_ns + 1, 1), MOST_ECHOES)
            wanted.append(
                Echo(number, there.src, there.dst, count, interval_ns, timeout_ns, wait_ns)
            )
        try:
            await self._send(wanted, self._heard)
        except RunError as error:
            self._on_end(error.message)

    def _heard(self, rows: Sequence[Row]) -> None:
        assert self._file is not None
        clock = self._schedule.clock
        probes = [
            Probe(number, clock.plan_time(sent_ns), delay_ns)
            for number, sent_ns, delay_ns in rows
            if number < len(self._chosen.ways) and self._counts(number, sent_ns)
        ]
        if probes:
            at_ns = clock.plan_time(time.monotonic_ns() - self._t0_ns)
            self._file.append(line(at_ns, probes))

    def _counts(self, number: int, sent_ns: int) -> bool:
        there = self._chosen.ways[number]
        late = self._end_ns is not None and sent_ns > self._end_ns
        return sent_ns >= 0 and not late and self._moved.isdisjoint((there.src, there.dst))

    # -- the end --------------------------------------------------------------------------------

    async def end(self) -> None:
        """Agents tell the last ones when they are asked to end."""
        if self._t0_ns:
            self._end_ns = time.monotonic_ns() - self._t0_ns
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
