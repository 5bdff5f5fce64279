"""One run on one host, after it was prepared: steps ahead of time, the sharing loop, what is said.

Owns the tasks of the run. What goes wrong in one of them (a plan that cannot be read further, a
datapath that refuses or is gone) ends up in `broken`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compiler.plan.parts.planned_reactions import are_waited_for
from compiler.plan.reader import Plan
from runtime.agent.clock import Clock
from runtime.agent.metadata.udp import Mailbox
from runtime.agent.path import captured_paths
from runtime.agent.path.captured_paths import CapturedPaths
from runtime.agent.path.datapath import Datapath
from runtime.agent.path.enforcer import Enforcer
from runtime.agent.path.path_updates import PathUpdates, StagedPaths
from runtime.agent.path.prefetcher import Prefetcher, Scenes
from runtime.agent.pod import container_files, podend
from runtime.agent.pod.container_files import ContainerFiles
from runtime.agent.pod.pod_echoes import Echoes
from runtime.agent.pod.podend import PodEnding
from runtime.agent.process.orders import (
    EchoOrder,
    OrderError,
    PrepareOrder,
    ResumeOrder,
)
from runtime.agent.process.program_supervisor import ProgramSupervisor
from runtime.agent.share.loop import MetadataPart, ShareLoop, SharingPart
from runtime.agent.vocabulary import Change, Moved, PathDelay
from runtime.coordinator.says import AgentNotice, FileReport, Say, StepApplied, TrafficSample
from runtime.datapath import dialect
from runtime.datapath.sampler import arrays, digest_arrays
from runtime.errors import RunError, fail
from runtime.options import CLOSE, REAL
from runtime.say import some
from runtime.schedule import Schedule
from runtime.system.realtime.rt_throttle import RESTS

RESUME_TICKS = 4
GREET_NS = 100_000_000
STAGE_AHEAD_NS = 600_000_000
EXTEND_NS = 10_000_000_000  # from `extend` to `adopt`: then it is as if nobody had asked
LATEST_STAGE_NS = 100_000_000  # before its moment a step is staged, whoever has asked
LEASE_NS = (
    1_000_000_000  # with on_agent_loss=close: the datapath closes when nothing came for so long
)
SAMPLE_ROWS = 5000  # in one message

APART_NS = 1_500_000  # from what one host of a machine does to what the next one does
MOST_APART_NS = 6_000_000  # from the first to the last one


def apart_ns(order: PrepareOrder) -> int:
    """How much later than the first agent this one ticks, where all of them share the processors
    of one machine: they would only wait for each other (runtime.system.realtime.rt_lock)."""
    options = order.options
    if not options.on_this_machine or options.time != REAL:
        return 0
    return order.host * min(APART_NS, MOST_APART_NS // len(order.hosts))


@dataclass(frozen=True, slots=True)
class _Extension:
    """A longer plan that may take the present one's place; `needs` begins with the last step that
    is staged, and no other one is until it is adopted or forgotten."""

    plan: Plan
    schedule: Schedule
    needs: PathUpdates
    first: int
    expires: asyncio.TimerHandle


class HostRun:
    """`applied` counts the steps that have taken effect here."""

    def __init__(
        self,
        plan: Plan,
        order: PrepareOrder,
        clock: Clock,
        datapath: Datapath,
        mailbox: Mailbox,
        sharing: SharingPart,
        metadata: MetadataPart,
        say: Say,
    ) -> None:
        self.order = order
        self.applied = 0
        self.started = False
        self._finished = False
        self._plan = plan
        self._clock = clock
        self._datapath = datapath
        self._mailbox = mailbox
        self._sharing = sharing
        self._metadata = metadata
        self._say = say
        self.schedule = Schedule(plan, order.options)
        own = {plan.topology.nodes[node].name: node for node in order.own}
        self.programs = ProgramSupervisor(
            own, self._now_ns, self._since_ns, say, self._gated(), self._endings(), self._files()
        )
        self._apart_ns = apart_ns(order)
        self._scenes = Scenes(order.placement, len(order.hosts))
        self._tasks: list[asyncio.Task[None]] = []
        self._echoing: asyncio.Task[None] | None = None
        self._early: list[Coroutine[Any, Any, None]] = []  # asked for before the start
        self._staging = asyncio.Lock()  # who has it tells the datapath a step, or prevents that
        self._extension: _Extension | None = None
        self._ahead_tasks: list[asyncio.Task[None]] = []  # which a longer plan ends
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _make(self, first: int) -> None:
        """The parts, to begin with step `first`."""
        order = self.order
        needs = PathUpdates(self._plan, self.schedule, order.own, first)
        self.enforcer = Enforcer(
            self._datapath, self._clock, needs, order.addresses, self._was_applied, self.notice
        )
        self.ahead = Prefetcher(
            needs.later(), self._scenes, self._clock, self.elapsed_ns, self._due_ns
        )
        self.loop = ShareLoop(
            self._clock,
            self._datapath,
            self.enforcer,
            self._sharing,
            self._metadata,
            self._mailbox,
            self._sample,
            order.options.period_ns,
            self._apart_ns,
        )
        self._needs, self._first = needs, first

    def elapsed_ns(self) -> int:
        """Since T0; 0 before."""
        return self._clock.now_ns() - self.enforcer.t0_ns if self.started else 0

    def _now_ns(self) -> int:
        return self._clock.machine_ns(self._clock.now_ns())

    def _since_ns(self, machine_ns: int) -> int:
        """The same of a time of CLOCK_MONOTONIC."""
        return self._clock.agent_ns(machine_ns) - self.enforcer.t0_ns if self.started else 0

    def _gated(self) -> frozenset[int]:
        """Instances of which nobody knows the program."""
        topology = self._plan.topology
        services = topology.services
        own = [(node, topology.nodes[node].service) for node in self.order.own]
        return frozenset(node for node, service in own if not services[service].entrypoint)

    def _endings(self) -> dict[int, PodEnding]:
        topology = self._plan.topology
        return {
            node: podend.ending_of(topology.services[topology.nodes[node].service])
            for node in self.order.own
        }

    def _files(self) -> ContainerFiles | None:
        topology = self._plan.topology
        if not are_waited_for(self._plan):
            return None
        wanted = container_files.waited_for(topology, self.order.own)
        folders = {node: topology.services[topology.nodes[node].service].cwd for node in wanted}

        def changed(node: int, path: str, how: str) -> None:
            self._say(FileReport(node, path, how, self._since_ns(self._now_ns())))

        def warn(node: int, words: str) -> None:
            self.notice(f"{topology.nodes[node].name}: {words}")

        def broken(error: RunError) -> None:
            fail(self.broken, error)

        return ContainerFiles(wanted, folders, changed, warn, broken) if wanted else None

    def _due_ns(self, step: int) -> int:
        return self.schedule.steps[step].due_ns

    # -- from the beginning ------------------------------------------------------------------------

    async def prepare(self) -> int:
        """Declares the network of the first step, uncommitted. Returns the number of paths."""
        self._make(0)
        paths = await self.enforcer.declare()
        self._begin_loop()
        self._ahead_tasks.append(self._spawn(self.ahead.run()))
        self._spawn(self._greet())
        return paths

    async def _greet(self) -> None:
        """Until the loop does it: others know of us at its first tick, and tell us their flows."""
        while not self.loop.running:
            self.loop.greet()
            await self._clock.sleep_until(self._clock.now_ns() + GREET_NS)

    def _begin_loop(self) -> None:
        self.loop.begin(self._scenes.make(StagedPaths(self._first, self._needs.state, ())))

    async def open(self) -> None:
        """Puts the network of the first step in force, for echoes: no program runs before T0."""
        if self.started:
            raise OrderError("the experiment has started already")
        await self.enforcer.open()

    async def start(self, t0_ns: int) -> None:
        """Commits the first step for T0; from then on everything goes by itself."""
        if self.started:
            raise OrderError("the experiment has started already")
        self.started = True
        await self._datapath.epoch(t0_ns)
        await self.enforcer.start(t0_ns)
        for coroutine in self._early:
            await coroutine
        self._early.clear()
        self._go(t0_ns)

    def _go(self, first_ns: int) -> None:
        self._ahead_tasks.append(self._spawn(self._stage_all()))
        self._spawn(self._share(first_ns))
        self._spawn(self.programs.watch())

    async def _share(self, first_ns: int) -> None:
        await self._clock.sleep_until(first_ns)
        if self.order.options.on_agent_loss == CLOSE:
            await self._datapath.lease(LEASE_NS)
        await self.loop.run(first_ns)

    async def _stage_all(self) -> None:
        for step in range(self._first + 1, len(self.schedule.steps)):
            await self._clock.sleep_until(self.enforcer.due_ns(step) - STAGE_AHEAD_NS)
            scene = await self.ahead.take(step)
            async with self._staging:
                await self.enforcer.stage(scene.stage)
                self.loop.expect(scene)

    # -- a longer plan -----------------------------------------------------------------------------

    async def extend(self, plan: Plan) -> int:
        """Makes ready to go over to a longer plan; from now on no step is staged until that is
        adopted or forgotten. Returns for how many ns at most; 0 if it comes too late: another step
        was staged already, or the next one has to be."""
        if not self.started or self._finished:
            raise OrderError("the experiment does not go on")
        self.forget()
        await self._staging.acquire()
        try:
            first = self.enforcer.staged
            schedule = Schedule(plan, self.order.options)
            if schedule.steps[: first + 1] != self.schedule.steps[: first + 1]:
                return 0
            making = asyncio.to_thread(PathUpdates, plan, schedule, self.order.own, first)
            try:  # finding routes may take a while, and the loop goes on
                needs = await asyncio.wait_for(making, self._spare_ns() / 1e9)
            except TimeoutError:
                return 0
            left_ns = self._spare_ns()
            if left_ns > 0:
                expires = asyncio.get_running_loop().call_later(left_ns / 1e9, self.forget)
                self._extension = _Extension(plan, schedule, needs, first, expires)
            return max(left_ns, 0)
        finally:
            if self._extension is None:
                self._staging.release()

    def _spare_ns(self) -> int:
        """For how long nothing has to be staged."""
        following = self.enforcer.staged + 1
        if following >= len(self.schedule.steps):
            return EXTEND_NS
        due_ns = self.enforcer.due_ns(following)
        return min(due_ns - LATEST_STAGE_NS - self._clock.now_ns(), EXTEND_NS)

    def forget(self) -> None:
        """Goes on with the plan that there is."""
        if self._extension is not None:
            self._extension.expires.cancel()
            self._extension = None
            self._staging.release()

    def adopt(self, digest: str) -> Plan:
        """Later steps are those of the longer plan, which is returned. OrderError."""
        found = self._extension
        if found is None or found.plan.digest != digest:
            raise OrderError("this plan was not made ready, or too long ago")
        for task in self._ahead_tasks:
            task.cancel()
        self._plan, self.schedule = found.plan, found.schedule
        self._needs, self._first = found.needs, found.first
        self._scenes = Scenes(self.order.placement, len(self.order.hosts))
        self.enforcer.follow(found.needs)
        slice_max_ns = self.ahead.slice_max_ns
        self.ahead = Prefetcher(
            found.needs.later(), self._scenes, self._clock, self.elapsed_ns, self._due_ns
        )
        self.ahead.slice_max_ns = slice_max_ns
        self._ahead_tasks = [self._spawn(self.ahead.run()), self._spawn(self._stage_all())]
        self.forget()
        return found.plan

    # -- after a crash -----------------------------------------------------------------------------

    async def declare_again(self, resume: ResumeOrder) -> None:
        """Nodes, before any port is attached: the datapath may be a new one, and what is sent to
        an address that it does not know would pass unshaped."""
        elapsed = self._clock.now_ns() - resume.t0_ns
        steps = self.schedule.steps
        first = max((n for n, step in enumerate(steps) if step.due_ns <= elapsed), default=0)
        self._make(first)
        await self.enforcer.declare_nodes()

    async def resume(self, resume: ResumeOrder, attached: Mapping[int, str]) -> None:
        """Goes on from where the experiment is now; says what was missed, late. `attached` are the
        ports that are, with their networks."""
        first = self._first
        self.enforcer.t0_ns, self.started = resume.t0_ns, True
        self.enforcer.holds.hold(resume.held, first)
        self._begin_loop()
        limits = await self._find_limits()
        await self._datapath.epoch(resume.t0_ns)
        await self.enforcer.take_over(resume.t0_ns, first)
        await self.enforcer.enforce(limits)
        bound = {port.node: port.port for port in resume.ports if port.node >= 0}
        bound = {node: port for node, port in bound.items() if port in attached}
        await self._datapath.commit(dialect.attach_lines(bound))
        self.applied = first + 1
        await self.programs.restore(resume, set(attached.values()))
        self.programs.know({n: pid for n, pid in resume.lives.items() if n not in resume.pods})
        self.programs.carry_out_again(resume.orders)
        for step in range(resume.applied, first + 1):
            self.programs.carry_out(self.schedule, step)
            self._say_applied(step, self._clock.now_ns(), late=True)
        self._ahead_tasks.append(self._spawn(self.ahead.run()))
        self._go(self._clock.now_ns())

    async def _find_limits(self) -> list[Change]:
        """What sharing wants for the flows that there are. It takes some ticks until it has seen
        them and others have told of theirs; meanwhile all stays as it was enforced last."""
        now = self._clock.now_ns()
        self._sharing.restore(now, await self._datapath.usage(everything=True))
        found: dict[tuple[int, int, bool], Change] = {}
        for tick in range(RESUME_TICKS):
            await self._clock.sleep_until(now + tick * self.order.options.period_ns)
            for change in (await self.loop.look()).changes:
                found[change.src, change.dst, isinstance(change, PathDelay)] = change
        return [found[key] for key in sorted(found)]

    # -- while it runs -----------------------------------------------------------------------------

    async def bind(
        self, step: int, bound: Mapping[int, int], gone: Sequence[int], hold: Sequence[int]
    ) -> None:
        if step >= len(self.schedule.steps):
            raise OrderError(f"there is no step {step}: the last is {len(self.schedule.steps) - 1}")
        own = set(self.order.own)  # all agents are told alike, since holds concern all of them
        mine = {node: port for node, port in bound.items() if node in own}
        left = [node for node in gone if node in own]
        if not self.started and step == 0:
            await self.enforcer.attach_early(mine)
            return
        binding = self.enforcer.bind(step, mine, left, hold, bound.keys())
        if self.started:
            await binding
        else:
            self._early.append(binding)

    def check_own(self, nodes: Iterable[int]) -> None:
        """OrderError if one of them is not of this host."""
        strangers = sorted(set(nodes) - set(self.order.own))
        if strangers:
            raise OrderError(f"node {strangers[0]} is not on this host")

    def echo(self, wanted: Sequence[EchoOrder]) -> None:
        """From now on, in the place of what was wanted before. OrderError."""
        if not self.started or self._finished:
            raise OrderError("the experiment does not go on")
        nodes = {one.node for one in wanted}
        networks = self.programs.networks_of(nodes)
        lost = sorted(nodes - networks.keys())
        if lost:
            names = some([self._plan.topology.nodes[node].name for node in lost], 1)
            self.notice(f"paths from {names} are not measured: no process of its pod is here")
        if self._echoing is not None:
            self._echoing.cancel()
        running = Echoes(self._say, self._since_ns).run(
            [(networks[one.node], one) for one in wanted if one.node in networks]
        )
        self._echoing = self._spawn(running)

    def announce(self, starts: Sequence[int]) -> None:
        self._metadata.announce(starts)

    async def captured(self, path: str) -> CapturedPaths:
        """The places of a path, `a.0--b.0` or `a.0->b.0`, as paths are now. RunError, PlanError."""
        if not self.started or self._finished:
            raise OrderError("the experiment does not go on")
        now_ns = self.schedule.clock.plan_time(max(self.elapsed_ns(), 0))
        plan, placement = self._plan, self.order.placement

        def find() -> CapturedPaths:
            return captured_paths.at(plan.state_at(now_ns), placement, path, is_link=True)

        return await asyncio.to_thread(find)  # a large network takes a while

    async def cut(self, nodes: Sequence[int]) -> None:
        await self.enforcer.cut(nodes)

    def _was_applied(self, step: int, at_ns: int, late: bool) -> None:
        self.applied += 1
        self.programs.carry_out(self.schedule, step)
        self._say_applied(step, at_ns, late=late)

    def _say_applied(self, step: int, at_ns: int, *, late: bool) -> None:
        elapsed = at_ns - self.enforcer.t0_ns
        self._say(StepApplied(step, elapsed, late))

    def notice(self, text: str) -> None:
        self._say(AgentNotice(text))

    def _sample(self, at_ns: int, moved: Moved) -> None:
        elapsed = max(at_ns - self.enforcer.t0_ns, 0)
        for begin in range(0, max(len(moved.pairs), len(moved.digests)), SAMPLE_ROWS):
            end = begin + SAMPLE_ROWS
            pairs = json.loads(arrays(moved.pairs[begin:end]))
            digests = json.loads(digest_arrays(moved.digests[begin:end])) if moved.digests else ()
            self._say(TrafficSample(elapsed, pairs, digests))

    def counters(self) -> dict[str, dict[str, int]]:
        return {
            "run": {"applied": self.applied, "step": self.enforcer.present},
            "loop": {**self.loop.counters(), "slice_max_ns": self.ahead.slice_max_ns},
            "process": RESTS.counters(),
            "sharing": self._sharing.counters(),
            "metadata": self._metadata.counters(),
            "mailbox": self._mailbox.counters(),
        }

    # -- tasks and the end -------------------------------------------------------------------------

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            fail(self.broken, error)

    async def finish(self) -> None:
        """Ends the tasks and takes the last sample, once. The network stays as it is."""
        if self._finished:
            return
        self._finished = True
        with suppress(TimeoutError):
            await self.loop.stop()
        self.forget()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for coroutine in self._early:
            coroutine.close()
        if not self.started or self._datapath.engine.closed.done():
            return
        moved = await self._datapath.moved()
        if moved.pairs or moved.digests:
            self._sample(self._clock.now_ns(), moved)
        if self.order.options.on_agent_loss == CLOSE:
            await self._datapath.lease(0)  # it was promised to last as long as an agent does

    def close(self) -> None:
        """Lets go of the programs, which go on."""
        self.programs.close()
