"""The network of a run over several hosts (docs/agent.md): on each an agent that reads the plan and
a datapath that shapes what the host's own instances send.

The driver makes the instances and is the coordinator: it tells agents which ports instances have,
and they do the rest by themselves.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from compiler.plan.event_kinds import PROCESS_KINDS
from compiler.plan.reader import Plan
from compiler.plan.storage import plan_shards
from runtime.agent.path import captured_paths
from runtime.agent.process.orders import (
    AdoptOrder,
    BindOrder,
    CaptureOrder,
    CutOrder,
    EchoesOrder,
    ExtendOrder,
    InstanceOrder,
    PathPlace,
    ShardOrder,
    request,
)
from runtime.backend import plan_fit
from runtime.backend.base import CapturedPart, Change, Counters, Effect, Held, RunContext
from runtime.backend.hosts.acknowledged import HostSteps
from runtime.backend.hosts.agent_state import AgentState
from runtime.backend.hosts.hosts import Hosts, NetworkHandle
from runtime.backend.hosts.restarts import AgentRestarts
from runtime.backend.hosts.samples import HostSamples
from runtime.coordinator import says
from runtime.coordinator.agent_link import AgentError, LostError
from runtime.coordinator.coordinator import AgreedExperiment, Coordinator
from runtime.coordinator.placement import NO_HOST
from runtime.datapath.capture_pipe import open_pipe
from runtime.errors import RunError, UnfitError
from runtime.json_schema import encoded
from runtime.judge.pulse import Pulse
from runtime.options import VIRTUAL
from runtime.probing.echo_prober import Heard
from runtime.rpc.calls import Request
from runtime.rundir.line_files import LineFile
from runtime.schedule import READY_GRID_NS, START_GRID_NS, Schedule, first_moment
from runtime.system.realtime import timers
from runtime.system.realtime.rt_throttle import prefer

LARGEST = frozenset({"coalesced_max_ns", "busy_ppm", "longest_slice_ns"})
NOTICED_SECONDS = 0.3  # until the machine has told of a datapath's end
OFFER_SECONDS = 8.0  # for agents to read a longer plan: less than who asks for it waits
ADOPT_NS = 200_000_000  # for all of them to hear that they are to go over to it
BIND_SECONDS = 60.0  # for all agents to take note of everything that is there at the start
Value = TypeVar("Value")


def sum_up(datapaths: Iterable[Mapping[str, int]]) -> dict[str, str]:
    """Counters of all datapaths as those of one: times of lateness and loads are the largest."""
    found: dict[str, int] = {}
    for counters in datapaths:
        for name, value in counters.items():
            before = found.get(name, 0)
            largest = name.startswith("late_") or name in LARGEST
            found[name] = max(before, value) if largest else before + value
    return {name: str(value) for name, value in found.items()}


def shard_requests(plan: Plan) -> tuple[Request, ...]:
    """What brings a plan to an agent. PlanError if it is too long for that."""
    found = plan_shards.pack({name: plan.raw(name) for name in plan.names})
    return tuple(
        [
            Request.of(request(ShardOrder(plan.digest, number, b64encode(data).decode())))
            for number, data in enumerate(found.values())
        ]
    )


class AgentNetwork:
    """See runtime.backend.base. Hosts are numbers from 0."""

    def __init__(self, context: RunContext, hosts: Hosts) -> None:
        plan, options = context.plan, context.options
        self._options = options
        self._plan = plan
        self._schedule = context.schedule
        self._record = context.record
        self._on_file = context.on_file
        self._notice = context.notice
        self._on_effect = context.on_effect
        self._hosts = hosts
        self._names = tuple([host.name for host in hosts.agents])
        self._placement = hosts.placement.hosts
        self._experiment = AgreedExperiment(context.run_id, plan.digest, hosts.placement, options)
        self._offered: tuple[Request, ...] = ()  # what brings the longer plan to agents
        self._told = AgentState()
        self._steps = HostSteps(self._names, self._effect)
        self._samples: HostSamples | None = None
        self._digests = options.time == VIRTUAL and options.datapath != "kernel"
        self._beside: set[asyncio.Task[None]] = set()
        self._lives: set[tuple[int, int, str]] = set()  # step, node, what: that agents have said
        self._echoes: Mapping[int, EchoesOrder] = {}  # that agents send, by host
        self._heard: Heard | None = None
        self._reason = RunError("nothing has failed")
        self._t0_ns = self._unix_ns = 0
        self._in_force = False  # the network of the first step, before T0
        self.before_start: Callable[[], Awaitable[None]] | None = None  # all is wired by then
        self.facts: dict[str, Any] = {}
        self.fault: RunError | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ports = hosts.attaching(
            NetworkHandle(self._told, self._insist, self._fail, self._elapsed)
        )
        self._coordinator = Coordinator(
            hosts.agents,
            hosts.key,
            self._said,
            self._lost,
            lambda _host, text: context.notice(text),
            options.clock_budget_ns,
        )
        self._restarts = AgentRestarts(
            hosts.parts,
            self._coordinator,
            self._resume,
            self._changed,
            self._fail,
            hosts.back_seconds,
        )

    # -- the start ------------------------------------------------------------------------------

    @property
    def pids(self) -> list[int]:
        return [pid for host in self._hosts.parts for pid in host.pids]

    @property
    def t0_ns(self) -> int:
        """0 before it is known."""
        return self._t0_ns

    async def start(self) -> None:
        await self._unless_ended(self._coordinator.connect(self._hosts.connect_seconds))
        found = await self._unless_ended(self._coordinator.prepare(self._experiment))
        instances: list[list[str]] = [[] for _ in self._names]
        for node, host in zip(self._plan.topology.nodes, self._placement, strict=True):
            if host != NO_HOST:
                instances[host].append(node.name)
        self.facts["hosts"] = [
            {
                "name": self._names[host],
                "address": self._hosts.agents[host].address,
                "instances": instances[host],
                "datapath": facts.get("datapath"),
            }
            for host, facts in enumerate(found)
        ]

    async def _unless_ended(self, action: Awaitable[Value]) -> Value:
        """The result of what waits for agents, or an error that says which process has ended."""
        work = asyncio.ensure_future(action)
        either: list[asyncio.Future[Any]] = [work]
        for host in self._hosts.parts:
            either += [host.datapath.ended, host.agent.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for host in self._hosts.parts:
            error = host.ended()
            if error is not None:
                work.cancel()
                raise error
        return await work

    async def put_in_force(self, bound: Mapping[int, int]) -> None:
        await self._bind(bound)
        await self.open()
        self._in_force = True

    async def _bind(self, bound: Mapping[int, int]) -> None:
        told = BindOrder(0, bound)
        self._told.stage(told)
        await self._coordinator.broadcast(request(told), BIND_SECONDS)
        await self._hosts.wire(bound)

    async def begin(self, bound: Mapping[int, int]) -> int:
        if not self._in_force:
            await self._bind(bound)
        if self.before_start is not None:
            await self.before_start()
        grid_ns = READY_GRID_NS if self._in_force else START_GRID_NS
        moment = partial(first_moment, self._options, grid_ns=grid_ns)
        self._t0_ns = await self._coordinator.start(moment)
        self._unix_ns = timers.unix_ns(self._t0_ns)
        self._restarts.watch()
        for number, fact in self._coordinator.lost.items():
            self._restarts.lost(number, fact)
        for facts, clock in zip(self.facts["hosts"], self._coordinator.offsets(), strict=True):
            facts["clock"] = clock["last"]
        return self._t0_ns

    async def open(self) -> None:
        """Puts the network of the first step in force on all hosts, before the start."""
        await self._coordinator.broadcast({"do": "open"}, BIND_SECONDS)

    def sampler(self, file: LineFile, _pulse: Pulse) -> Counters:
        """Agents say by themselves how late they were."""
        names, clock = self._names, self._schedule.clock
        self._samples = HostSamples(file, clock, names, digests=self._digests)
        return self._samples

    async def echo(self, orders: Mapping[int, EchoesOrder], heard: Heard) -> None:
        """Has agents send echoes to the end (docs/agent.md), by host. RunError."""
        self._echoes, self._heard = orders, heard
        for host in sorted(orders):
            await self._insist(host, orders[host])

    def _echoed(self, host: int, rows: Sequence[tuple[int, int, int | None]]) -> None:
        sent = self._echoes.get(host)
        own = {one.pair for one in sent.echoes} if sent is not None else set()
        if self._heard is not None:
            self._heard([row for row in rows if row[0] in own])

    def elapsed_ns(self, host: int, unix_ns: int) -> tuple[int, int] | None:
        """A time of a host's wall clock since T0, and within which bound; None before T0."""
        found = self._coordinator.here_ns(host, unix_ns) if self._t0_ns else None
        return None if found is None else (found[0] - self._t0_ns, found[1])

    # -- instances ------------------------------------------------------------------------------

    def _elapsed(self) -> int:
        return time.monotonic_ns() - self._t0_ns if self._t0_ns else 0

    async def _insist(self, host: int, order: object) -> dict[str, Any]:
        """Gives an agent an order, and again when it is back if it is lost meanwhile. LostError
        where nobody brings it back: before the start and at the end."""
        while True:
            try:
                return await self._coordinator.request(host, request(order))
            except LostError as error:
                if not self._t0_ns or self._restarts.ending:
                    raise
                self._restarts.lost(host, error.message)
                await self._restarts.there(host)

    # -- steps ----------------------------------------------------------------------------------

    async def stage(self, change: Change) -> Held:
        """Agents come to the step by themselves; they are told what the plan does not say."""
        leaving = set(change.leaving)
        unbind = set(change.gone) - leaving
        if change.bound:
            self._steps.block(change.number)
        if change.bound or unbind or leaving:
            gone, held = tuple(sorted(unbind)), tuple(sorted(leaving))
            told = BindOrder(change.number, change.bound, gone, held)
            self._told.stage(told)
            await self._coordinator.broadcast(request(told), everyone=False)
        if change.bound:
            self._beside_this(self._wire_in_time(change))
        return {node: frozenset() for node in leaving}

    async def _wire_in_time(self, change: Change) -> None:
        """At the step's time, since the life before may have its network until then."""
        due_ns = self._t0_ns + change.step.due_ns
        while (left := due_ns - time.monotonic_ns()) > 0:
            await asyncio.sleep(left / 1e9)
        await self._hosts.wire(change.bound)
        self._steps.unblock(change.number)

    def _beside_this(self, action: Coroutine[Any, Any, None]) -> None:
        """Does something whose failure ends the run."""
        task = asyncio.get_running_loop().create_task(action)
        self._beside.add(task)
        task.add_done_callback(self._done_beside)

    def _done_beside(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error if isinstance(error, RunError) else RunError(repr(error)))

    def _effect(self, number: int, effect: Effect) -> None:
        self._told.effect(number)
        self._on_effect(number, effect)

    async def offer(self, plan: Plan, base: str, left: Path) -> str:
        """Each agent reads it and makes ready, or says why not; until `follow` or `withdraw` it
        stages no further step. So all of them go over, or none. Until then nobody is started again,
        who would not know which of the two plans is the run's."""
        chosen = str(self.facts.get("datapath", ""))
        try:
            await asyncio.to_thread(plan_fit.check, plan, self._options, chosen)
        except UnfitError as refused:
            keeps = "leave it out: a run keeps the hosts and the datapath that it was begun with"
            raise UnfitError(refused.misfit, refused.message, keeps) from refused
        if (host := self._restarts.wait_to_restart()) is not None:
            raise RunError(
                f"the agent of {self._names[host]} is not there", "nothing was changed: try again"
            )
        shared = self._hosts.shares_files
        self._offered = () if shared else await asyncio.to_thread(shard_requests, plan)
        told = request(ExtendOrder(base, plan.digest, left.name if shared else ""))
        try:
            await self._coordinator.deliver(self._offered, OFFER_SECONDS)
            asked_ns = time.monotonic_ns()
            answers = await self._coordinator.broadcast(told, OFFER_SECONDS)
        except AgentError as error:
            name = self._names[error.host]
            raise RunError(
                f"the agent of {name} does not take it: {error.message}", "nothing was changed"
            ) from error
        needed_ns = time.monotonic_ns() - asked_ns + ADOPT_NS
        late = [host for host, one in answers.items() if int(one.get("left_ns", 0)) < needed_ns]
        return f"too late: {self._names[late[0]]} has to go on with what is planned" if late else ""

    async def withdraw(self) -> None:
        self._restarts.restart()
        with suppress(AgentError):  # one that does not hear it forgets by itself
            await self._coordinator.broadcast(request("forget"), everyone=False)

    def follow(self, plan: Plan) -> None:
        """An agent that is lost before it hears of it begins again with this plan."""
        self._plan, self._schedule = plan, Schedule(plan, self._options)
        self._experiment = replace(self._experiment, digest=plan.digest, shards=self._offered)
        self._coordinator.follow(self._experiment)
        self._restarts.restart()
        for host in range(len(self._names)):
            self._beside_this(self._adopt(host, plan.digest))

    async def _adopt(self, host: int, digest: str) -> None:
        await self._insist(host, AdoptOrder(digest))

    async def capture(self, target: str, *, is_link: bool, probes: bool, part: int) -> CapturedPart:
        folder = self._hosts.pipes
        if folder is None:
            raise RunError(
                "packets are captured in runs on this machine, in real time, without the kernel's"
                " datapath",
                "those of an instance: tstorm exec RUN INSTANCE -- tcpdump",
            )
        found = await asyncio.to_thread(self._captured, target, is_link=is_link)
        hosts = sorted(found.by_host)
        host = hosts[part % len(hosts)]
        places = found.by_host[host]
        told = tuple(
            [PathPlace(one.src, one.dst, int(one.offered), one.interface) for one in places]
        )

        async def ask(name: str) -> object:
            order = CaptureOrder(name, int(probes), told)
            return await self._coordinator.request(host, request(order))

        try:
            pipe = await open_pipe(folder, ask)
        except AgentError as error:
            raise RunError(f"cannot capture at {target}: {error.message}") from error
        interfaces = [one.interface for one in places]
        return CapturedPart(pipe, interfaces, len(hosts), self._unix_ns, found.left_out)

    def _captured(self, target: str, *, is_link: bool) -> captured_paths.CapturedPaths:
        """In a thread: a large network takes a while."""
        now_ns = self._schedule.clock.plan_time(max(self._elapsed(), 0))
        state = self._plan.state_at(now_ns)
        return captured_paths.at(state, self._placement, target, is_link=is_link)

    async def use(self, links: Sequence[int], *, up: bool) -> int:
        del links, up
        raise RunError("links that programs ask for take one engine")  # the plan was refused

    async def cut(self, node: int, _links: frozenset[int]) -> bool:
        self._told.cut(node)
        try:
            await self._coordinator.broadcast(request(CutOrder((node,))), everyone=False)
        except AgentError as error:
            self._fail(error)
            return False
        return True

    # -- what agents say ------------------------------------------------------------------------

    def _said(self, host: int, said: says.Message) -> None:
        match said:
            case says.StepApplied():
                self._applied(host, said)
            case says.TrafficSample():
                if self._samples is not None:
                    self._samples.take(host, said.elapsed_ns, said.pairs, said.digests)
            case says.InstanceReport():
                self._lives.add((said.step, said.node, said.what))
                self._if_its_own(host, said.node, partial(self._hosts.lived, host, said))
            case says.HoldReport():
                self._if_its_own(host, said.node, partial(self._hosts.reported, host, said))
            case says.FileReport():
                self._if_its_own(host, said.node, partial(self._changed_file, said))
            case says.EchoTimes():
                self._echoed(host, said.rows)
            case says.AgentNotice():
                self._notice(f"{self._names[host]}: {said.text}")
            case says.AgentFailed():
                what = f"the agent of {self._names[host]} failed: {said.text}"
                self._fail(RunError(what))

    def _changed_file(self, said: says.FileReport) -> None:
        name = self._plan.topology.nodes[said.node].name
        self._on_file(name, said.path, said.how, said.elapsed_ns)

    def _if_its_own(self, host: int, node: int, act: Callable[[], None]) -> None:
        if node < len(self._placement) and self._placement[node] == host:
            act()
        else:
            name = self._names[host]
            self._fail(RunError(f"the agent of {name} speaks for node {node}, which is not its"))

    def _applied(self, host: int, said: says.StepApplied) -> None:
        if not self._steps.applied(host, said):
            record = {"kind": "late", "target": self._names[host], "step": said.step}
            self._record({**record, "applied_ns": said.elapsed_ns})

    def _lost(self, host: int, reason: str) -> None:
        if self._t0_ns:
            self._restarts.lost(host, reason)

    def _changed(self, host: int, reason: str) -> None:
        """It was noticed that an agent is gone (why), or has it back ('')."""
        if reason:
            self._steps.lost(host)
            self._told.lost(host)
        else:
            self._steps.back(host)
        kind = "agent_lost" if reason else "agent_back"
        elapsed = time.monotonic_ns() - self._t0_ns
        record: dict[str, object] = {
            "kind": kind,
            "target": self._names[host],
            "applied_ns": elapsed,
        }
        self._record({**record, "reason": reason} if reason else record)
        name = self._names[host]
        self._notice(f"lost the agent of {name}: {reason}" if reason else f"{name} is back")
        if not reason:
            prefer(*self._hosts.parts[host].pids)
            self._beside_this(self._tell_again(host))

    def _resume(self, host: int) -> dict[str, object]:
        """What a new agent of a host needs to know beside the plan, and beside T0 on its clock."""
        applied = self._steps.done(host)
        unsaid = tuple(self._unsaid(host, applied))
        told: dict[str, object] = encoded(self._told.resume(self._placement, host, applied, unsaid))
        return told

    def _unsaid(self, host: int, applied: int) -> list[InstanceOrder]:
        """Process events of a host's applied steps of which its agent has not said a `life`: what
        took longer than its step ended with the agent."""
        own = {
            self._plan.topology.nodes[node].name: node
            for node in self._told.lives
            if self._placement[node] == host
        }
        schedule = self._schedule
        found: list[InstanceOrder] = []
        for step in range(applied if own else 0):
            asked = [("join", name) for name in sorted(schedule.present)] if step == 0 else []
            asked += [(event.kind, event.target) for event in schedule.steps[step].events]
            for what, name in asked:
                if what in PROCESS_KINDS and name in own:
                    order = InstanceOrder(step, own[name], what)
                    found += [] if order in self._lives else [order]
        return found

    async def _tell_again(self, host: int) -> None:
        """What was said while the agent was not there."""
        for order in self._told.back(host):
            await self._insist(host, order)
        if host in self._echoes:
            try:
                await self._insist(host, self._echoes[host])
            except LostError:
                raise
            except AgentError as error:  # a run goes on without them
                name = self._names[host]
                self._notice(f"paths from {name} are not measured any more: {error.message}")

    # -- the end --------------------------------------------------------------------------------

    def waiting_for(self) -> list[str]:
        return self._steps.waiting_for()

    def _fail(self, error: RunError) -> None:
        if not self.closed.done():
            self._reason = error
            self.closed.set_result(None)

    async def why(self) -> RunError:
        """A datapath that has ended explains more than what its agent makes of it, which may have
        noticed it first."""
        datapaths = [host.datapath.ended for host in self._hosts.parts]
        await asyncio.wait(datapaths, timeout=NOTICED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ends = (host.ended(agent=False) for host in self._hosts.parts)
        return next((error for error in ends if error is not None), self._reason)

    async def lost(self) -> dict[str, str]:
        overflowed = self._hosts.overflowed()
        return {} if overflowed is None else {"drop_device": str(overflowed)}

    async def end(self) -> dict[str, Any]:
        for task in self._beside:
            task.cancel()
        self._restarts.stop()
        counters, told = await self._stop_agents()
        self.fault = await self._hosts.end(told)
        overflowed = self._hosts.overflowed()
        if overflowed is not None:
            counters["totals"]["drop_device"] = str(overflowed)
        return {**counters, "refused": self._hosts.refused()}

    async def _stop_agents(self) -> tuple[dict[str, Any], Collection[int]]:
        """Their last words: counters by host, and the clocks as they were to the end. And who
        has said any."""
        stopped = await self._coordinator.stop()
        await self._coordinator.close()
        clocks = self._coordinator.offsets()
        for host, facts in enumerate(self.facts.setdefault("hosts", [])):
            clock = clocks[host]
            facts["clock"] = clock["last"] or facts.get("clock")
            facts["drift_ppb"] = clock["drift_ppb"]
            facts["drift_bound_ppb"] = clock["drift_bound_ppb"]
            facts["largest_bound_ns"] = clock["largest_bound_ns"]
            facts["away_ns"] = clock["away_ns"]
        counters: list[dict[str, Any]] = [
            {"name": name, **stopped.answers.get(host, {"missing": stopped.missing.get(host, "")})}
            for host, name in enumerate(self._names)
        ]
        for one in counters:  # the datapath tells them as text
            told = one.get("datapath", {})
            one["datapath"] = {k: int(v) for k, v in told.items() if str(v).isdecimal()}
        totals = sum_up(one["datapath"] for one in counters)
        found = {"hosts": self.facts["hosts"], "counters": counters, "totals": totals}
        return found, stopped.answers.keys()
