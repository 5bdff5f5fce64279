"""Probes a run: starts `tprobe active`, tells it who is there and when to probe, writes down what
became of the probes.

One process probes between all instances of this machine. It is told the timetable a window ahead.
Where links have room for them some probes are as large as a packet can be: to it they are pairs of
their own, numbered after the others. In virtual time, where no host is between, there are none.
If it fails, the run goes on without probes, and that is an event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import IO, Any

from compiler.plan.event_kinds import ENDINGS
from compiler.plan.reader import Plan
from compiler.plan.types import device_mac, owner_of
from runtime.datapath import pktd
from runtime.datapath.pktd import EngineAnswer, EngineError, EngineProcess
from runtime.errors import RunError
from runtime.options import VIRTUAL
from runtime.probing import probe_intervals
from runtime.probing.chosen import Chosen, chosen
from runtime.probing.probe_record import (
    LOST_AT_END_NS,
    LOST_NS,
    OpenProbe,
    Probe,
    line,
)
from runtime.rundir.etchosts import addressed
from runtime.rundir.eventlog import how_ended
from runtime.rundir.line_files import LineFile
from runtime.schedule import Schedule
from runtime.system import compiled_programs

WINDOW_NS, AHEAD_NS = 1_000_000_000, 200_000_000
VIRTUAL_ROUNDS = 3  # in a window
PROGRAM = "tprobe"
_CAME, _WENT = ("join", "start"), (*ENDINGS, "killed")

Place = Callable[[str], tuple[str, asyncio.Future[None]] | None]
"""Of an instance: a path of its network namespace, and when this life is over; None if it is not
there, or cannot be entered from here."""


class PairProber:
    """Probes the pairs that are chosen. `notice` hears what a user should know, `on_end` once why
    nobody probes any more. Without a file it does nothing at all."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        file: LineFile | None,
        notice: Callable[[str], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._schedule = schedule
        self._file = file
        self._notice = notice
        self._on_end = on_end
        self._t0_ns = 0
        self._chosen = Chosen()

    def begin(self, t0_ns: int) -> None:
        """Time 0 is known (CLOCK_MONOTONIC)."""
        if self._file is None:
            return
        self._t0_ns = t0_ns
        self._file.append(self._chosen.header(self._plan, t0_ns).to_record())
        for text in self._chosen.left_out(self._plan):
            self._notice(text)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Prober(PairProber):
    """`place`: see Place."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        file: LineFile | None,
        place: Place,
        notice: Callable[[str], None],
        on_end: Callable[[str], None],
    ) -> None:
        super().__init__(plan, schedule, file, notice, on_end)
        self._place = place
        self._virtual = schedule.options.time == VIRTUAL
        self._process: EngineProcess | None = None
        self._header_bytes = 40 if plan.topology.network == "ipv6" else 20
        # Instances of which pairs are probed: the nodes of these end points, and their addresses
        # (with their devices, where these carry frames).
        self._ends: dict[str, dict[int, str]] = {}
        self._lives: dict[str, asyncio.Future[None]] = {}  # that were opened
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()
        self._failed = False
        self._unsent = {"skipped": 0, "refused": 0}

    # -- before the start -----------------------------------------------------------------------

    async def start(self, log: IO[bytes]) -> None:
        """Chooses pairs and starts the program. PlanError."""
        if self._file is None:
            return
        self._chosen = chosen(self._plan, self._schedule)
        ways = self._chosen.ways
        topology = self._plan.topology
        for node in sorted({node for way in ways for node in (way.src, way.dst)}):
            owner = topology.nodes[owner_of(topology.nodes, node)].name
            own = addressed(topology, topology.nodes[node])
            device = f" if={own.interface} mac={device_mac(node)}" if own.frames else ""
            self._ends.setdefault(owner, {})[node] = f"{own.ipv4 or own.ipv6}{device}"
        if not ways:
            return
        argv = [str(compiled_programs.find(PROGRAM)), "active"]
        try:
            self._process = await pktd.start(argv, log, PROGRAM)
            self._process.engine.closed.add_done_callback(self._closed)
            await self._process.engine.batch(
                f"pair {number} {way.src} {way.dst} wait={way.delay_ns}"
                for number, way in enumerate(ways)
            )
            size = probe_intervals.LARGE_BYTES - self._header_bytes
            large = [ways[number] for number in self._chosen.large]
            await self._process.engine.batch(
                f"pair {number} {way.src} {way.dst} wait={way.delay_ns} bytes={size}"
                for number, way in enumerate(large, len(ways))
            )
        except RunError as error:
            self._give_up(error)

    # -- who is there ---------------------------------------------------------------------------

    def see(self, record: Mapping[str, Any]) -> None:
        """An event that was done: instances come and go."""
        name, kind = str(record.get("target", "")), record.get("kind")
        if self._process is None or name not in self._ends:
            return
        if kind in _CAME:
            self._came(name)
        elif kind in _WENT:
            self._went(name)

    def _came(self, name: str) -> None:
        found = self._place(name)
        if found is None or name in self._lives:
            return
        netns, gone = found
        self._lives[name] = gone
        for node, address in self._ends[name].items():
            self._do(self._tell(f"open {node} netns={netns} addr={address}"))
        gone.add_done_callback(partial(self._is_gone, name))

    def _is_gone(self, name: str, gone: asyncio.Future[None]) -> None:
        if self._lives.get(name) is gone:
            self._went(name)

    def _went(self, name: str) -> None:
        """What is still under way to it or from it is told as open, with the next report."""
        if self._lives.pop(name, None) is not None and self._process is not None:
            self._do(self._report(LOST_AT_END_NS))
            for node in self._ends[name]:
                self._do(self._tell(f"close {node}"))

    async def _tell(self, command: str) -> None:
        """An instance may die before it can be entered, and what was never opened cannot be
        closed: a refusal is no news."""
        if self._process is not None:
            await self._process.engine.call(command)

    def _do(self, action: Coroutine[Any, Any, None]) -> None:
        """Beside all else. What is done so reaches the program in the order of these calls."""

        async def carry_out() -> None:
            with suppress(EngineError):
                await action

        task = asyncio.get_running_loop().create_task(carry_out())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    # -- while it goes on -----------------------------------------------------------------------

    def go(self) -> None:
        """After `begin`, until `end`."""
        if self._process is not None and not self._failed:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._carry_out()
        except EngineError as error:
            if not self._is_dead():  # else `_died` says how
                self._give_up(error)

    async def _carry_out(self) -> None:
        window_ns = WINDOW_NS
        if self._virtual:
            window_ns = max(window_ns, VIRTUAL_ROUNDS * min(self._chosen.intervals_ns))
        until_ns = 0
        while not self._stop.is_set():
            from_ns, until_ns = until_ns, until_ns + window_ns
            await self._ask(from_ns, min(until_ns, self._schedule.end_due_ns))
            due_ns = self._t0_ns + until_ns - AHEAD_NS
            with suppress(TimeoutError):
                left = max(due_ns - time.monotonic_ns(), 0) / 1e9
                await asyncio.wait_for(self._stop.wait(), left)
            await self._report(LOST_NS)

    def follow(self, schedule: Schedule) -> None:
        """The run has another end. Which pairs are probed, and how often, stays."""
        self._schedule = schedule

    async def _ask(self, from_ns: int, to_ns: int) -> None:
        assert self._process is not None
        moments = self._chosen.moments(from_ns, to_ns)
        await self._process.engine.batch(
            f"at {self._t0_ns + at_ns} {pair}" for at_ns, pair in moments
        )

    async def _report(self, lost_ns: int, *, last: bool = False) -> None:
        if self._process is None:
            return
        command = f"report {lost_ns} last" if last else f"report {lost_ns}"
        self._write(await self._process.engine.call(command), last=last)

    def _write(self, answer: EngineAnswer, *, last: bool) -> None:
        assert self._file is not None
        for word, count in answer.values().items():
            self._unsent[word] += int(count)
        rows = [row.split() for row in answer.body]
        told = [self._probe(row) for row in rows if row[2] != b"?"]
        small = len(self._chosen.ways)
        open_ = [self._open(row) for row in rows if row[2] == b"?" and int(row[0]) < small]
        probes = [one for one in told if one.pair < small]
        large = [
            one._replace(pair=self._chosen.large[one.pair - small])
            for one in told
            if one.pair >= small
        ]
        if told or open_ or last:
            at_ns = self._plan_time(time.monotonic_ns())
            self._file.append(line(at_ns, probes, large, open_, last=last))

    def _open(self, words: list[bytes]) -> OpenProbe:
        return OpenProbe(int(words[0]), self._plan_time(int(words[1])))

    def _probe(self, words: list[bytes]) -> Probe:
        pair, sent_ns, delay = words
        return Probe(
            int(pair), self._plan_time(int(sent_ns)), None if delay == b"-" else int(delay)
        )

    def _plan_time(self, at_ns: int) -> int:
        return self._schedule.clock.plan_time(at_ns - self._t0_ns)

    def _is_dead(self) -> bool:
        return self._process is not None and self._process.engine.closed.done()

    def _closed(self, _closed: asyncio.Future[None]) -> None:
        if self._process is not None:  # else it was asked to end
            self._do(self._died(self._process))

    async def _died(self, process: EngineProcess) -> None:
        status = await process.end()
        how = {"signal": -status} if status < 0 else {"status": status}
        self._give_up(EngineError(f"{PROGRAM} ended with {how_ended(how)}"))

    def _give_up(self, error: RunError) -> None:
        if not self._failed:
            self._failed = True
            self._on_end(error.message)

    # -- the end --------------------------------------------------------------------------------

    async def end(self) -> None:
        """Takes what is known by now. What has just been sent and is not there is open."""
        if self._running is not None:
            self._stop.set()  # to cancel it would lose an answer
            await asyncio.wait({self._running}, timeout=pktd.END_SECONDS)
            if not self._running.done():
                self._running.cancel()
                self._give_up(EngineError(f"{PROGRAM} does not answer"))
        process = self._process
        if process is None:
            return
        if self._t0_ns and not self._failed:
            try:
                await self._report(LOST_AT_END_NS, last=True)
            except EngineError as error:
                self._give_up(error)
        self._process = None
        await process.end()
        if self._telling:  # how it died may be among it
            await asyncio.wait(self._telling, timeout=pktd.END_SECONDS)
        late, refused = self._unsent["skipped"], self._unsent["refused"]
        if late or refused:
            self._notice(
                f"{late + refused:,} probes of paths were not sent: {late:,} since this machine"
                f" was too late for them, {refused:,} since the kernel refused them"
            )
