"""The network of a run on one machine: pktd with every link as a queue (docs/pktd.md)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.plan.parts.led_links import led_links
from compiler.plan.properties import has_rare
from compiler.plan.reader import Plan
from runtime.backend.base import CapturedPart, Change, Counters, Effect, Held, RunContext
from runtime.backend.missing import Missing
from runtime.backend.onehost import captures, staging
from runtime.backend.onehost.link_holds import LinkHolds
from runtime.backend.ports import EnginePorts
from runtime.backend.refusals import Refusals
from runtime.datapath import capture_pipe, dialect, pktd
from runtime.datapath.capture_pipe import open_pipe
from runtime.datapath.pktd import Engine, EngineError, EngineProcess
from runtime.datapath.sampler import Sampler
from runtime.errors import RunError
from runtime.judge.pulse import Pulse
from runtime.options import VIRTUAL
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.schedule import READY_GRID_NS, START_GRID_NS, Schedule, Step, first_moment
from runtime.system.realtime import timers

FAULTS_AFTER_NS = 3_000_000_000  # time 0; then there is something to tell the fault from
_OF_LINK = "link"
_FAULT_WORDS = {"delay_ns": "delay", "rate_bps": "rate"}

START_MARGIN_NS = 100_000_000  # from the last staged line to T0


async def start(context: RunContext, argv: Sequence[str]) -> HopNetwork:
    """With a pktd of its own. RunError."""
    command, inherited = list(argv), []
    folder = _capture_folder(context)
    if folder is not None:
        command += capture_pipe.arguments(folder, live=not context.options.packets)
        inherited.append(folder.descriptor)
    try:
        process = await pktd.start(command, context.log, inherited=inherited)
        return HopNetwork(context, process, folder)
    except EngineError as error:
        raise RunError(error.message, f"its last words are in {context.log_name}") from error


def _capture_folder(context: RunContext) -> HeldDirectory | None:
    """Where the engine finds files and pipes for packets. RunError."""
    run = HeldDirectory.hold(context.directory)
    if context.options.packets:
        return captures.make(run)
    return None if context.options.time == VIRTUAL else run


class HopNetwork:
    """See backend/base.py."""

    def __init__(
        self, context: RunContext, process: EngineProcess, folder: HeldDirectory | None
    ) -> None:
        self._folder = folder
        self._plan = plan = context.plan
        self._schedule = context.schedule
        self._options = context.options
        self._process = process
        self.engine = process.engine
        self._log_name = context.log_name
        self._refusals = Refusals(context.notice)
        self._missing = Missing(context.record, context.notice)
        self._holds = LinkHolds(plan.topology, context.schedule.start.links)
        states = enumerate(context.schedule.start.links)
        self._rare = {index for index, state in states if has_rare(state)}
        self._led = led_links(plan.topology).keys()
        self._groups: dict[tuple[int, ...], int] = {}  # that were declared
        self._on_effect = context.on_effect
        self._t0_ns = 0
        self._in_force = False  # the network of the first step, before T0
        self._captures = context.options.packets
        self.facts: dict[str, Any] = {"engine": process.facts}
        self.pids = [process.process.pid]
        self.fault: RunError | None = None
        self.closed = self.engine.closed
        nodes = plan.topology.nodes
        self._numbers = staging.numbers(nodes)
        kind = context.options.ports
        self.ports = EnginePorts(self.engine, kind, nodes, self._refusals, self._gone)
        self._watching = asyncio.get_running_loop().create_task(self.ports.watch())
        self._planting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Its engine was started before."""

    def _gone(self, instance: str, device: str) -> None:
        elapsed = time.monotonic_ns() - self._t0_ns if self._t0_ns else 0
        self._missing.tell(instance, device, elapsed)

    # -- steps ----------------------------------------------------------------------------------

    async def put_in_force(self, bound: Mapping[int, int]) -> None:
        await self.engine.stage(self._first_lines(bound))
        await self.engine.commit([])
        self._in_force = True
        begin_ns = first_moment(self._options, time.monotonic_ns())
        _draw_anew(self._schedule, self._plan.seed, begin_ns, is_start=False)

    def _first_lines(self, bound: Mapping[int, int]) -> list[str]:
        plan, schedule = self._plan, self._schedule
        start_ns = self._options.start_at_ns
        traces = plan.topology.traces
        lines = list(staging.trace_lines(traces, plan.attached.traces, start_ns)) if traces else []
        if plan.topology.delays:
            lines.extend(staging.delays_lines(plan.attached.delays))
        lines.extend(staging.declaration_lines(plan.topology, schedule.start.links, self._led))
        routes = list(plan.route_groups(schedule.first, whole=True))
        self._groups = staging.numbered(plan.core)
        lines.extend(staging.group_lines(plan.topology, self._groups))
        lines.extend(staging.route_lines(routes, self._groups))
        lines.extend(dialect.attach_lines(bound))
        return lines

    async def begin(self, bound: Mapping[int, int]) -> int:
        plan, schedule = self._plan, self._schedule
        grid_ns = READY_GRID_NS if self._in_force else START_GRID_NS
        if not self._in_force:
            await self.engine.stage(self._first_lines(bound))
        self.facts.update(ports=sorted(self.ports.kinds), stamps=sorted(self.ports.stamps))
        earliest_ns = time.monotonic_ns() + START_MARGIN_NS
        self._t0_ns = first_moment(self._options, earliest_ns, grid_ns)
        unix_ns = timers.unix_ns(self._t0_ns)
        more = _reseeding_words(schedule, self._t0_ns)
        await self.engine.call(f"epoch {self._t0_ns} unix={unix_ns}{more}")
        _draw_anew(schedule, plan.seed, self._t0_ns, is_start=True)
        if self._captures:
            await self.engine.stage(list(captures.lines(plan.topology)))
        await self._commit([], 0, schedule.steps[0])
        faults = _plant(self.engine, self._options.faults, self._t0_ns)
        self._planting = asyncio.get_running_loop().create_task(faults)
        return self._t0_ns

    def sampler(self, file: LineFile, pulse: Pulse) -> Counters:
        digests = pktd.keeps_digests(self._process.facts)
        rests = self._options.time == VIRTUAL
        clock = self._schedule.clock
        return Sampler(self.engine, file, clock, self._t0_ns, pulse, digests=digests, rests=rests)

    async def stage(self, change: Change) -> Held:
        step, gone = change.step, set(change.gone)
        targets = {event.target for event in step.events}
        leaving = set(change.leaving)
        links, held = self._holds.take(step.epoch, leaving, gone - leaving, targets)
        links.extend(self._holds.back(change.bound, links))
        ended = self._holds.ended_routes(sorted(change.bound))
        changed = self._plan.route_groups(step.epoch.index)
        routes = [*ended, *self._holds.routes(changed, held.keys())]
        numbers = self._numbers
        links = [(index, staging.numbered_ends(state, numbers)) for index, state in links]
        lines = staging.delta_lines(links, routes, self._groups, self._rare, self._led)
        lines.extend(dialect.attach_lines(change.bound, gone - held.keys()))
        if lines:
            await self._commit(lines, change.number, step)
        else:
            due_ns = self._t0_ns + step.due_ns
            timers.call_at(due_ns, lambda: self._on_effect(change.number, None))
        return {node: frozenset(numbers) for node, numbers in held.items()}

    async def offer(self, plan: Plan, base: str, left: Path) -> str:
        """The engine knows no plan."""
        del plan, base, left
        return ""

    async def withdraw(self) -> None:
        """Nothing has changed."""

    def follow(self, plan: Plan) -> None:
        self._plan = plan

    async def capture(self, target: str, *, is_link: bool, probes: bool, part: int) -> CapturedPart:
        del part
        if self._folder is None or self._options.time == VIRTUAL:
            raise RunError(
                "the run has virtual time, in which nobody waits for who looks on from outside",
                "replay it with --packets: the same packets come again, and are kept for capture",
            )
        if self._captures:
            raise RunError(
                "the run has --packets: its packets are in files already",
                f"read {self._folder.path}, also while it goes on",
            )
        places = captures.at(self._plan.topology, target, is_link=is_link)
        told = [(str(one.link), one.offered, one.interface) for one in places]
        try:
            pipe = await open_pipe(
                self._folder,
                lambda name: self.engine.call(dialect.capture_line(name, told, probes=probes)),
            )
        except EngineError as error:
            raise RunError(f"cannot capture at {target}: {error.message}") from error
        return CapturedPart(pipe, [place.interface for place in places])

    async def use(self, links: Sequence[int], *, up: bool) -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        lines = [f"set {link} up={int(up)}" for link in links]
        await self.engine.commit(lines, on_applied=done.set_result)
        either: set[asyncio.Future[Any]] = {done, self.closed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise RunError("the packet engine (pktd) has ended")
        return done.result() - self._t0_ns

    async def cut(self, node: int, links: frozenset[int]) -> bool:
        lines = [f"set {link} up=0" for link in sorted(links)]
        lines += staging.route_lines(self._holds.ended_routes([node]), self._groups)
        try:
            await self.engine.commit([*lines, f"unbind {node}"])
        except EngineError:
            return False  # the engine is gone: `closed` says so
        return True

    async def _commit(self, lines: Sequence[str], number: int, step: Step) -> None:
        """The step may have taken effect before this returns."""

        def applied(at_ns: int) -> None:
            self._on_effect(number, Effect(at_ns - self._t0_ns))

        await self.engine.commit(lines, self._t0_ns + step.due_ns, applied)

    # -- the end --------------------------------------------------------------------------------

    def waiting_for(self) -> list[str]:
        return ["pktd"]

    async def why(self) -> RunError:
        return self._ended(await self._process.end())

    def _ended(self, status: int) -> RunError:
        return RunError(
            f"the packet engine (pktd) ended during the run (status {status})",
            f"its last words are in {self._log_name}",
        )

    async def lost(self) -> dict[str, str]:
        try:
            found = (await self.engine.call("stats engine")).values()
        except EngineError:
            return {}  # it is gone, which ends the run
        return {name: count for name, count in found.items() if name.startswith("drop_")}

    async def end(self) -> dict[str, Any]:
        """A run that failed because of the engine ends without its totals."""
        self._watching.cancel()
        if self._planting is not None:
            self._planting.cancel()
        totals: dict[str, Any] = {}
        try:
            await self.ports.look()
            totals["refused"] = self._refusals.record()
            if self._captures:
                totals["captures"] = captures.counts((await self.engine.call("captures")).values())
            totals["totals"] = (await self.engine.call("stats engine")).values()
        except EngineError as error:
            self.fault = error
        gone = self.closed.done()
        status = await self._process.end()
        if status and (gone or self.fault is None):  # else it was we who killed it
            self.fault = self._ended(status)
        return totals


async def _plant(engine: Engine, faults: Mapping[str, Mapping[str, int]], t0_ns: int) -> None:
    """Fault injection (`faults` of the options): pktd is given other values of links than the plan
    has, as by a step, and nobody is told. Returns once all are in force."""
    lines = []
    for name, values in sorted(faults.items()):
        if name.startswith(_OF_LINK):
            given = " ".join(
                f"{_FAULT_WORDS[key]}={value}" for key, value in sorted(values.items())
            )
            lines.append(f"set {name.removeprefix(_OF_LINK)} {given}")
    if lines:
        now = asyncio.get_running_loop().time()  # CLOCK_MONOTONIC in s
        await asyncio.sleep((t0_ns + FAULTS_AFTER_NS) / 1e9 - now)
        await engine.commit(lines)


# What a run in virtual time draws by from which moment on: its own seed, and those of `--reseed`.
#
# The guest's kernel and pktd are told ahead, and nothing wakes at the moment itself: each looks
# at the time when it draws. So a run is the same until then, to the last byte. From the start of
# programs on, too, the guest draws by a seed that it is told: how often getting ready has drawn
# (what the driver reads is longer with more events) leaves no trace.

_GUEST = "/proc/tstorm"  # arch/um/tstorm/seed.c


def _drawn_by(what: str, seed: int, at_ns: int) -> bytes:
    return hashlib.sha256(f"{what} {seed} from {at_ns}".encode()).digest()


def _moments(schedule: Schedule, t0_ns: int) -> Iterator[tuple[int, int, int]]:
    """Each in ns of CLOCK_MONOTONIC and of the plan, and its seed."""
    for at_ns, seed in schedule.options.reseeded:
        yield t0_ns + schedule.clock.due(at_ns), at_ns, seed


def _reseeding_words(schedule: Schedule, t0_ns: int) -> str:
    """What pktd is told with its epoch."""
    return "".join(
        f" reseed={due_ns}:{int.from_bytes(_drawn_by('links', seed, at_ns)[:8], 'big')}"
        for due_ns, at_ns, seed in _moments(schedule, t0_ns)
    )


def _draw_anew(schedule: Schedule, seed: int, moment_ns: int, *, is_start: bool) -> None:
    """The guest's randomness is the seed's from this moment on (CLOCK_MONOTONIC), at which
    programs start: at time 0, or before it, where some start then. RunError."""
    if schedule.options.time != VIRTUAL:
        return
    words = "start" if is_start else "programs before the start"
    told = [(moment_ns, f"randomness of a guest, {words},", seed, 0)]
    if is_start:
        for due_ns, at_ns, other in _moments(schedule, moment_ns):
            told.append((due_ns, "randomness of a guest", other, at_ns))
    try:
        # By system calls that do not fail: those would take time, which the run without has not.
        file = os.open(_GUEST, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for due_ns, what, by, at_ns in told:
                os.write(file, f"reseed {due_ns} {_drawn_by(what, by, at_ns).hex()}".encode())
        finally:
            os.close(file)
    except OSError as error:
        raise RunError(f"the guest's kernel takes no other seed: {error.strerror}") from error
