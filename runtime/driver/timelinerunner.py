"""Carries the timeline out: stages each step at the network ahead of time, and does the rest of its
events (processes) when the network says that the step has taken effect.

Programs that are there at the start may run before it (runtime.driver.beforestart).

Times are ns of CLOCK_MONOTONIC; `elapsed` is relative to the common start T0.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from compiler.plan import run_clock
from compiler.plan.event_kinds import DOWN, ENDINGS, SIGNALS, STATE_AFTER
from compiler.plan.parts import action_texts, planned_reactions
from compiler.plan.reader import Plan
from compiler.plan.types import Event, interfaces, owner_of
from runtime import say
from runtime.backend.base import (
    Change,
    Effect,
    Held,
    Log,
    Notice,
    RunNetwork,
)
from runtime.backend.instance import Incarnation, Instance
from runtime.backend.instance_clocks import InstanceClocks
from runtime.backend.instance_disks import InstanceDisks
from runtime.driver.beforestart import BeforeStart, Early
from runtime.driver.eventbook import EventBook, sleep_until
from runtime.driver.starts import OnFailure, Setups, Starts
from runtime.errors import RunError, fail
from runtime.options import REAL, VIRTUAL, has_agents
from runtime.schedule import VIRTUAL_LEAD_NS, Preparation, Schedule, Step, preparations

STAGE_AHEAD_NS = 1_000_000_000
FAREWELL_NS = 1_000_000_000
MANUAL = "manual"  # `origin` of what was done by hand; what is planned has none
CONDITION = "condition"  # of what a `when` has done
# The same where something may still come in between, at least and at most. A loop that waits is up
# to 1 ms late.
_REACTING_AHEAD_NS = {REAL: (10_000_000, 50_000_000), VIRTUAL: (2_000_000, 2_000_000)}
Furnish = Callable[[str, Incarnation], Awaitable[None]]  # a life, before its program starts
OVERDUE_SECONDS = 30.0  # a step that takes effect later than this never will


def reacting_ahead_ns(schedule: Schedule, number: int) -> int:
    """How long before its moment this step is asked for, in a run with a `when`: half of the time
    since the step before, so that a reaction finds its place between the two."""
    if has_agents(schedule.options):
        return STAGE_AHEAD_NS  # agents stage their steps by themselves, some time before
    least_ns, most_ns = _REACTING_AHEAD_NS[schedule.options.time]
    gap_ns = schedule.steps[number].due_ns - schedule.steps[number - 1].due_ns
    return min(max(gap_ns // 2, least_ns), most_ns)


@dataclass(slots=True)
class _Staged:
    step: Step
    incarnations: dict[str, Incarnation] = field(default_factory=dict)
    early: Mapping[str, Early] = field(default_factory=dict)
    ordered: frozenset[str] = frozenset()  # whose programs wait for the gate
    held: Held = field(default_factory=dict)
    gate: int = -1  # closing it starts the programs that were never there before
    opened_ns: int = 0  # when it was closed


class _QuitCondition:
    """Whether the run is to end because programs have (`quit when`). `services`: names of those
    whose programs are waited for; empty if nobody waits."""

    def __init__(self, plan: Plan, schedule: Schedule, instances: Mapping[str, Instance]) -> None:
        topology = plan.topology
        waited_for = frozenset(topology.quit_when)
        self.services = [topology.services[number].name for number in sorted(waited_for)]
        self._names = [
            node.name for node in topology.nodes if node.is_instance and node.service in waited_for
        ]
        self._instances = instances
        self._last_join: dict[str, int] = {}
        for number, step in enumerate(schedule.steps):
            self._last_join.update(dict.fromkeys(step.joins, number))

    def is_over(self, next_step: int) -> bool:
        """All of their programs have ended, or the timeline has ended them, and none will join in
        this step or a later one. An instance without a program is not waited for."""
        there = [self._instances[name] for name in self._names if name in self._instances]
        there = [instance for instance in there if instance.argv]
        return bool(there) and all(self._has_ended(one, next_step) for one in there)

    def _has_ended(self, instance: Instance, next_step: int) -> bool:
        if self._last_join.get(instance.node.name, -1) >= next_step:
            return False
        return instance.state == DOWN or instance.is_over


class TimelineRunner:
    """`applied` counts the events done; `broken` holds an error that nobody expected."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        instances: Mapping[str, Instance],
        log: Log,
        warn: Notice,
        on_failure: OnFailure | None = None,
        notice: Notice = lambda _text: None,
        furnish: Furnish | None = None,
    ) -> None:
        self.plan = plan
        self.schedule = schedule
        self.instances = instances
        self.book = EventBook(log)
        self.applied = 0
        self.next_step = 0
        self.is_over = False  # nothing of the timeline is done any more
        self.quit_early = ""  # why, if the run has ended before its planned end
        self._log = log
        failed, setups = on_failure or (lambda *one: warn(one[2])), Setups(instances, self.book)
        self._starts = Starts(self.book, setups, warn, failed, self.look_for_the_end)
        self._quit_when = _QuitCondition(plan, schedule, instances)
        self._programs_over = asyncio.Event()
        self._clocks, self._disks = InstanceClocks(schedule), InstanceDisks(schedule)
        self._notice = notice
        self._furnish = furnish
        self._network: RunNetwork | None = None  # before the start nothing is there to be cut
        self._states = list(schedule.start.nodes)
        self._cuts: set[asyncio.Task[None]] = set()
        self._left: dict[str, Incarnation] = {}  # the last one of each instance that has left
        names = [node.name for node in plan.topology.nodes]
        self._node_index = {name: index for index, name in enumerate(names)}
        self._further = interfaces(plan.topology.nodes)
        self._initial = dict(zip(names, schedule.start.nodes, strict=True))
        self._seen: set[str] = set()  # instances that have joined in some staged step
        self._pending: dict[int, _Staged] = {}  # by step
        self._early: dict[int, Effect | None] = {}
        self._chains: dict[str, asyncio.Task[None]] = {}
        self._steps_left = len(schedule.steps)
        self._all_applied = asyncio.Event()
        self.staged = 1  # how many steps the network has been asked for, or is at this moment
        self.is_ending = False  # the planned end has come: nothing is added any more
        self._waits = planned_reactions.are_waited_for(plan)
        self._longer = asyncio.Event()
        self.held_ns: int | None = None  # where the text's time stands
        self._prepared: Counter[str] = Counter()  # lives that were begun ahead of their step
        self._preparing: asyncio.Task[None] | None = None
        self.broken = self._starts.broken

    @property
    def t0_ns(self) -> int:
        """0 before it is known."""
        return self.book.t0_ns

    @property
    def planned(self) -> int:
        """How many events there are, or were until an early end."""
        done = self.schedule.steps[: self.next_step]
        return sum(len(one.events) for one in done) if self.quit_early else self.schedule.total

    def elapsed(self) -> int:
        return time.monotonic_ns() - self.t0_ns

    def next_due_ns(self) -> int:
        """When the next step is due (CLOCK_MONOTONIC); far in the future after the last."""
        steps = self.schedule.steps
        if self.next_step >= len(steps):
            return time.monotonic_ns() + 10**12
        return self.t0_ns + steps[self.next_step].due_ns

    async def stage_start(self, network: RunNetwork) -> None:
        """Everything that is there at the start; sets T0. RunError."""
        self._network = network
        first = self.schedule.steps[0]
        found = await self._incarnations([*sorted(self.schedule.present), *first.joins])
        before = BeforeStart(
            self.plan, self.instances, self._initial, self._starts.setups, self.book
        )
        early: Mapping[str, Early] = {}
        if before.is_wanted(found):
            await network.put_in_force(self._ports(found))
            self._notice(before.words)
            early = await before.carry_out(found, self.schedule.options)
        staged = self._ordered(_Staged(first, found, early))
        self.book.begin(await network.begin(self._ports(found)))
        self._wait_for_effect(0, staged)

    async def _incarnations(self, names: Sequence[str]) -> dict[str, Incarnation]:
        self._prepared.subtract(name for name in names if self._prepared[name] > 0)
        found = {name: await self.instances[name].next_incarnation() for name in names}
        if self._furnish is not None:
            for name, incarnation in found.items():
                await self._furnish(name, incarnation)
        return found

    def _ordered(self, staged: _Staged) -> _Staged:
        """Starts of programs that were never there are ordered, unless a setup comes before."""
        wanted = [
            name
            for name in staged.incarnations
            if name not in self._seen
            and name not in staged.early
            and not self._starts.setups.is_wanted(name)
        ]
        self._seen.update(staged.incarnations)
        incarnations = {self.instances[name]: staged.incarnations[name] for name in wanted}
        staged.gate = self._starts.order(incarnations, staged.step.due_ns)
        staged.ordered = frozenset(wanted)
        return staged

    def _ports(self, incarnations: Mapping[str, Incarnation]) -> dict[int, int]:
        """Ports of the new incarnations that are still there after this step."""
        nodes = self.plan.topology.nodes
        wanted = {}
        for index, node in enumerate(nodes):
            incarnation = incarnations.get(nodes[owner_of(nodes, index)].name)
            if incarnation is not None and self._states[index] != DOWN:
                wanted[index] = incarnation.port if node.owner < 0 else incarnation.further[index]
        return wanted

    def _wait_for_effect(self, number: int, staged: _Staged) -> None:
        if number in self._early:
            self._take_effect(staged, self._early.pop(number))
        else:
            self._pending[number] = staged

    def on_effect(self, number: int, effect: Effect | None) -> None:
        """The network says that a step has taken effect; None: it did not change at all."""
        if self.is_over:
            return
        if number in self._pending:
            self._take_effect(self._pending.pop(number), effect)
        else:
            self._early[number] = effect  # before we knew that it was staged

    async def carry_out(self, network: RunNetwork) -> None:
        """Stages every later step in time. Returns when all events are done and the end is there,
        or programs have ended with which the run is to end.

        Raises RunError if the network refuses something or does not apply it.
        """
        self._preparing = asyncio.create_task(self._prepare_rejoins(preparations(self.schedule)))
        planned = asyncio.create_task(self._to_the_end(network))
        programs = asyncio.create_task(self._programs_over.wait())
        try:
            await asyncio.wait({planned, programs}, return_when=asyncio.FIRST_COMPLETED)
            if planned.done():
                planned.result()
            else:
                self._quit()
            if self._chains:
                await asyncio.wait(set(self._chains.values()), timeout=OVERDUE_SECONDS)
        finally:
            for task in (self._preparing, planned, programs, *self._cuts):
                task.cancel()
            self._starts.stop()

    async def _to_the_end(self, network: RunNetwork) -> None:
        while self.staged < len(self.schedule.steps) or not self.is_ending:
            if self.staged == len(self.schedule.steps):
                self.is_ending = await self._is_time(self.schedule.end_due_ns)
                if self.is_ending and self.held_ns is not None and not self._quits():
                    raise self._held_to_the_end(self.held_ns)
                continue
            number, step = self.staged, self.schedule.steps[self.staged]
            ahead_ns = self._ahead_ns(number)
            if await self._is_time(step.due_ns - ahead_ns):
                self.staged += 1
                await self._stage(network, number, step)
        try:
            await asyncio.wait_for(self._all_applied.wait(), OVERDUE_SECONDS)
        except TimeoutError as error:
            silent = ", ".join(network.waiting_for())
            raise RunError(f"the last changes were not applied by {silent}") from error

    def _quits(self) -> bool:
        """Whether the end is that of a `quit`, after which nothing waits: one was skipped to."""
        events, end_ns = self.plan.events, self.schedule.end_ns
        return bool(events) and events[-1].kind == "quit" and events[-1].at_ns <= end_ns

    @staticmethod
    def _held_to_the_end(held_ns: int) -> RunError:
        """What waits is not in the plan in force, so nobody knows here whether anything does."""
        return RunError(
            f"it was still held when it ended, at {say.seconds(held_ns)} of its text: what is"
            " planned after that, if anything is, has not happened",
            "run it again, and let it go on before its end: tstorm go RUN",
        )

    def _ahead_ns(self, number: int) -> int:
        """How long before its moment a step is asked for."""
        if self._waits:
            return reacting_ahead_ns(self.schedule, number)
        return VIRTUAL_LEAD_NS if self.schedule.options.can_branch else STAGE_AHEAD_NS

    async def _is_time(self, elapsed_ns: int) -> bool:
        """Waits for a moment since the start; False as soon as the timeline is another one."""
        self._longer.clear()
        while (left := self.t0_ns + elapsed_ns - time.monotonic_ns()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._longer.wait(), left / 1e9)
                return False
        return True

    def refusal(self, schedule: Schedule, margin_ns: int) -> str:
        """Why this timeline cannot take the place of the present one: what was asked for already
        would be another, or there is less than `margin_ns` until the first that is new."""
        kept = self.schedule.steps[: self.staged]
        late_ns = max(-margin_ns, 0)  # what may come late may be the end itself
        over = schedule.end_due_ns <= self.elapsed() - late_ns
        if self.is_over or self.is_ending or over:
            return "the run is ending"
        if schedule.steps[: self.staged] != kept:
            return "too late: what is planned about then has been asked for already"
        old = self.schedule.steps
        pairs = zip_longest(old, schedule.steps)
        new = next((after for before, after in pairs if before != after), None)
        if new is not None and new.due_ns < self.elapsed() + margin_ns:
            return "too late: the moment has come before the network could be asked"
        return ""

    def follow(self, plan: Plan, schedule: Schedule) -> None:
        """From now on this is the timeline. There is no refusal against it."""
        self._steps_left += len(schedule.steps) - len(self.schedule.steps)
        self.plan, self.schedule = plan, schedule
        self.held_ns = run_clock.read(plan.attached.includes).held_ns
        self._quit_when = _QuitCondition(plan, schedule, self.instances)
        if self._steps_left:
            self._all_applied.clear()
        if self._preparing is not None:
            self._preparing.cancel()
            later = [one for one in preparations(schedule) if one.step >= self.staged]
            begun, ahead = Counter(self._prepared), []
            for one in later:
                if begun[one.name] > 0:
                    begun[one.name] -= 1
                else:
                    ahead.append(one)
            self._preparing = asyncio.create_task(self._prepare_rejoins(ahead))
        self._longer.set()

    def expect_more(self) -> None:
        """Steps are asked for late from now on, since others may come in between."""
        if not self._waits:
            self._waits = True
            self._longer.set()

    def grow(self, plan: Plan, schedule: Schedule) -> None:
        """As follow(), of a timeline that has a step more, which nobody joins in."""
        self._steps_left += len(schedule.steps) - len(self.schedule.steps)
        self.plan, self.schedule = plan, schedule
        if self._quit_when.services:
            self._quit_when = _QuitCondition(plan, schedule, self.instances)
        if self._steps_left:
            self._all_applied.clear()
        self._longer.set()

    def look_for_the_end(self) -> None:
        """Something has ended: perhaps the run is to end with it (`quit when`)."""
        if self.t0_ns and not self._chains and self._quit_when.is_over(self.next_step):
            self._programs_over.set()

    def _quit(self) -> None:
        self.quit_early = f"the programs of {', '.join(self._quit_when.services)} have ended"
        self.end_early(self.quit_early)
        self._notice(self.quit_early)

    def end_early(self, why: str) -> None:
        """An end that nobody could plan, as a record of its own, once: what comes later is no part
        of the experiment. None before time 0."""
        at_ns = time.monotonic_ns()
        if self.is_over or not 0 < self.t0_ns <= at_ns:
            return
        self.is_over = True
        planned_ns = self.schedule.clock.plan_time(at_ns - self.t0_ns)
        record = {"kind": "quit", "target": "", "reason": why, "planned_ns": planned_ns}
        self.book.note(record, applied_ns=at_ns)

    async def _prepare_rejoins(self, items: Sequence[Preparation]) -> None:
        for item in items:
            await sleep_until(self.t0_ns + item.begin_ns)
            self._prepared[item.name] += 1
            self.instances[item.name].prepare()

    async def _stage(self, network: RunNetwork, number: int, step: Step) -> None:
        gone = self._follow(step)
        staged = self._ordered(_Staged(step, await self._incarnations(step.joins)))
        ports = self._ports(staged.incarnations)
        change = Change(number, step, ports, gone, self._leaving(step, gone))
        staged.held = await network.stage(change)
        self._wait_for_effect(number, staged)

    def _follow(self, step: Step) -> set[int]:
        """Takes note of the nodes' new states; returns the end points that are gone then."""
        gone = set()
        for index, state in step.epoch.nodes:
            self._states[index] = state
            if state == DOWN and self.plan.topology.nodes[index].service >= 0:
                gone.add(index)
        return gone

    def _leaving(self, step: Step, gone: set[int]) -> set[int]:
        """Those of them that have a program to end and end it by a leave."""
        last = {event.target: event.kind for event in step.events}
        nodes = self.plan.topology.nodes
        names = {index: nodes[owner_of(nodes, index)].name for index in gone}
        return {
            index
            for index, name in names.items()
            if last.get(name) == "leave" and self.instances[name].argv
        }

    async def _cut(self, incarnation: Incarnation, name: str, held: Held) -> None:
        """The network of an instance that has left, some time after its last process has ended:
        what its kernel sends then, to end connections, is still on its way."""
        await incarnation.gone
        await sleep_until(time.monotonic_ns() + FAREWELL_NS)
        instance = self.instances[name]
        back = instance.state != DOWN or self._left[name] is not incarnation
        if back or self._network is None:
            return  # its rejoin has seen to its network
        cut = [await self._network.cut(node, links) for node, links in held.items()]
        if any(cut):
            self._log({"kind": "cut", "target": name, "applied_ns": self.elapsed()})

    def _take_effect(self, staged: _Staged, network: Effect | None) -> None:
        """Does what is left of a step. `network` is None if that does not change."""
        step = staged.step
        self._clocks.take_effect(step, staged.incarnations, self.instances, self.t0_ns)
        self._disks.take_effect(step, staged.incarnations, self.instances)
        if staged.gate >= 0:
            staged.opened_ns = time.monotonic_ns()  # on return others may have had the processor
            os.close(staged.gate)
        self.next_step += 1
        for name in sorted(staged.incarnations.keys() - set(step.joins)):
            self.instances[name].state = self._initial[name]
            self._chain(name, self._join(name, None, staged, network))
            if name in self.schedule.held:
                self._chain(name, self._signalled(name, self.schedule.held[name]))
        for event in step.events:
            self._do(event, staged, network)
        self._steps_left -= 1
        if self._steps_left == 0:
            self._all_applied.set()
        self.look_for_the_end()

    def _do(self, event: Event, staged: _Staged, network: Effect | None) -> None:
        name = event.target
        if event.kind == "join":
            self._chain(name, self._join(name, event, staged, network))
        elif event.kind in ENDINGS:
            self._chain(name, self._end(event, staged, network))
        elif event.kind in SIGNALS:
            self._chain(name, self._signal(event, staged, network))
        else:
            applied = None if network is None else network.at_ns
            self._done(event, staged.step, network, applied)
        if event.kind in STATE_AFTER:
            self.instances[name].follows(event.kind)

    def _chain(self, name: str, action: Coroutine[Any, Any, object]) -> None:
        """Actions on one instance happen one after the other; different instances do not wait."""
        before = self._chains.get(name)

        async def after() -> None:
            if before is not None and not before.done():
                await asyncio.wait({before})
            await action

        task = asyncio.get_running_loop().create_task(after())
        self._chains[name] = task
        task.add_done_callback(lambda done: self._unchain(name, done))

    def _unchain(self, name: str, done: asyncio.Task[None]) -> None:
        if self._chains.get(name) is done:
            del self._chains[name]
        error = None if done.cancelled() else done.exception()
        if error is not None:
            fail(self.broken, error)
        self.look_for_the_end()

    async def _join(
        self, name: str, event: Event | None, staged: _Staged, network: Effect | None
    ) -> None:
        instance, incarnation = self.instances[name], staged.incarnations[name]
        early = staged.early.get(name)
        if early is not None and early.joined is not None:  # it runs already
            at_ns = self.elapsed() if network is None else network.at_ns
            joined = replace(early.joined, at_ns=self.t0_ns + at_ns)
        else:
            opened_ns = staged.opened_ns if name in staged.ordered else 0
            error = early.error if early else ""
            joined = await self._starts.join(instance, incarnation, error, opened_ns)
        applied = joined.at_ns - self.t0_ns
        started = None if joined.started_ns is None else joined.started_ns - self.t0_ns
        more = {} if started is None else {"started_ns": started}
        if early is not None and early.ready_ns is not None:
            more["ready_ns"] = early.ready_ns - self.t0_ns
        if event is None:
            self._log({"kind": "start", "target": name, "applied_ns": applied, **more})
        else:
            self._done(event, staged.step, network, applied, more)
        if joined.error:
            self._starts.failed(instance, incarnation, joined)
        elif started is not None and early is None:
            self._starts.follow_readiness(instance, incarnation)

    async def _end(self, event: Event, staged: _Staged, network: Effect | None) -> None:
        instance = self.instances[event.target]
        if event.kind == "crash":
            incarnation = instance.present
            elapsed, more = await instance.crash() - self.t0_ns, None
            if "power_seed" in event.args:
                if incarnation is not None:
                    await incarnation.gone
                more = instance.lose_power(int(event.args["power_seed"]))
            if incarnation is not None:  # what it has written by then comes before
                incarnation.gone.add_done_callback(
                    lambda _: self._starts.mark(instance, "crash", elapsed)
                )
            self._done(event, staged.step, network, elapsed, more)
            return
        if instance.present is not None:
            self._starts.mark(instance, "leave", self.elapsed())
        left = await instance.leave()
        self._done(event, staged.step, network, left.at_ns - self.t0_ns)
        node = self._node_index[event.target]
        ends = (node, *self._further.get(node, ()))
        held = {end: staged.held[end] for end in ends if end in staged.held}
        if left.incarnation is not None and held:
            self._left[event.target] = left.incarnation
            action = self._cut(left.incarnation, event.target, held)
            task = asyncio.get_running_loop().create_task(action)
            self._cuts.add(task)
            task.add_done_callback(self._cuts.discard)

    async def _signal(self, event: Event, staged: _Staged, network: Effect | None) -> None:
        elapsed = await self._signalled(event.target, event.kind)
        self._done(event, staged.step, network, elapsed)

    async def _signalled(self, name: str, kind: str) -> int:
        """When it was."""
        instance = self.instances[name]
        elapsed = await instance.signal(kind) - self.t0_ns
        self._starts.mark(instance, kind, elapsed)
        return elapsed

    def _done(
        self,
        event: Event,
        step: Step,
        network: Effect | None,
        applied: int | None,
        more: Mapping[str, int] | None = None,
    ) -> None:
        """Logs an event; `applied` is None if it was done just now, `more` is of a start."""
        when = self.elapsed() if applied is None else applied
        record: dict[str, object] = {
            "seq": event.seq,
            "kind": event.kind,
            "target": event.target,
            "args": dict(event.args),
            "line": event.line,
            "planned_ns": event.at_ns,
            "due_ns": step.due_ns,
            "applied_ns": when,
            "lag_ns": when - step.due_ns,
        }
        if event.file:
            record["file"] = event.file
        if action := action_texts.number_of(event.file):
            fired = action_texts.firing_of(event.file) is not None
            record |= {"origin": CONDITION if fired else MANUAL, "action": action}
        if network is not None:
            record["network_ns"] = network.at_ns
            if network.spread_ns is not None:
                record["network_spread_ns"] = network.spread_ns
            if network.late:
                record["late_hosts"] = list(network.late)
        self._log({**record, **(more or {})})
        self.applied += 1
