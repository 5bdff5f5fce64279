"""Carries the timeline out: stages each step at the network ahead of time, and does the rest of its
events (processes) when the network says that the step has taken effect.

Times are ns of CLOCK_MONOTONIC; `elapsed` is relative to the common start T0.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.plan.reader import Plan
from compiler.plan.state import CUT, DOWN, UP
from compiler.plan.types import Event
from runtime.backend.base import Change, Effect, Held, Log, Network, Notice
from runtime.backend.lives import Joined, Life, Lives
from runtime.errors import RunError
from runtime.schedule import Schedule, Step, preparations

STAGE_AHEAD_NS = 1_000_000_000
OVERDUE_SECONDS = 30.0  # a step that takes effect later than this never will

_STATE_AFTER = {
    "join": UP,
    "reconnect": UP,
    "disconnect": CUT,
    "leave": DOWN,
    "crash": DOWN,
}


async def sleep_until(at_ns: int) -> None:
    """Returns at or after the moment, not before."""
    while (left := at_ns - time.monotonic_ns()) > 0:
        await asyncio.sleep(left / 1e9)


@dataclass(slots=True)
class _Staged:
    step: Step
    lives: dict[str, Life] = field(default_factory=dict)
    held: Held = field(default_factory=dict)
    gate: int = -1  # closing it starts the programs that were never there before
    opened_ns: int = 0  # when it was closed


class TimelineRunner:
    """`applied` counts the events done; `broken` holds an error that nobody expected."""

    def __init__(
        self,
        plan: Plan,
        timeline: Schedule,
        instances: Mapping[str, Lives],
        log: Log,
        warn: Notice,
    ) -> None:
        self.plan = plan
        self.timeline = timeline
        self.instances = instances
        self.t0_ns = 0
        self.applied = 0
        self.next_step = 0
        self._log = log
        self._warn = warn
        self._network: Network | None = None  # before the start nothing is there to be cut
        self._states = list(timeline.start.nodes)
        self._cuts: set[asyncio.Task[None]] = set()
        names = [node.name for node in plan.topology.nodes]
        self._node_index = {name: index for index, name in enumerate(names)}
        self._initial = dict(zip(names, timeline.start.nodes, strict=True))
        self._seen: set[str] = set()  # instances that have joined in some staged step
        self._pending: dict[int, _Staged] = {}  # by step
        self._early: dict[int, Effect | None] = {}
        self._chains: dict[str, asyncio.Task[None]] = {}
        self._steps_left = len(timeline.steps)
        self._all_applied = asyncio.Event()
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def elapsed(self) -> int:
        return time.monotonic_ns() - self.t0_ns

    def next_due_ns(self) -> int:
        """When the next step is due (CLOCK_MONOTONIC); far in the future after the last."""
        steps = self.timeline.steps
        if self.next_step >= len(steps):
            return time.monotonic_ns() + 10**12
        return self.t0_ns + steps[self.next_step].due_ns

    async def stage_start(self, network: Network) -> None:
        """Everything that is there at the start; sets T0."""
        self._network = network
        staged = await self._incarnate(self.timeline.steps[0], self.timeline.present)
        self.t0_ns = await network.begin(self._ports(staged))
        self._wait_for_effect(0, staged)

    async def _incarnate(self, step: Step, more: frozenset[str] = frozenset()) -> _Staged:
        names = [*sorted(more), *step.joins]
        found = {name: await self.instances[name].next_life() for name in names}
        new = [name for name in names if name not in self._seen]
        self._seen.update(names)
        return _Staged(step, found, gate=self._gate(new, found))

    def _gate(self, names: list[str], lives: Mapping[str, Life]) -> int:
        """Orders the starts of instances that were never there ahead of time.

        So a hundred programs that join together cost one system call at that moment. Returns the
        descriptor to close, -1 if there is nothing to start.
        """
        if not names:
            return -1
        waiting, closing = os.pipe2(os.O_CLOEXEC)
        try:
            for name in names:
                self.instances[name].hold(lives[name], waiting)
        finally:
            os.close(waiting)
        return closing

    def _ports(self, staged: _Staged) -> dict[int, int]:
        """Ports of the new incarnations that are still there after this step."""
        nodes = self.plan.topology.nodes
        wanted = {}
        for index, node in enumerate(nodes):
            life = staged.lives.get(node.name)
            if life is not None and self._states[index] != DOWN:
                wanted[index] = life.port
        return wanted

    def _wait_for_effect(self, number: int, staged: _Staged) -> None:
        if number in self._early:
            self._take_effect(staged, self._early.pop(number))
        else:
            self._pending[number] = staged

    def on_effect(self, number: int, effect: Effect | None) -> None:
        """The network says that a step has taken effect; None: it did not change at all."""
        if number in self._pending:
            self._take_effect(self._pending.pop(number), effect)
        else:
            self._early[number] = effect  # before we knew that it was staged

    async def carry_out(self, network: Network) -> None:
        """Stages every later step in time. Returns when all events are done and the end is there.

        Raises RunError if the network refuses something or does not apply it.
        """
        preparing = asyncio.create_task(self._prepare_rejoins())
        try:
            for number, step in enumerate(self.timeline.steps[1:], start=1):
                await sleep_until(self.t0_ns + step.due_ns - STAGE_AHEAD_NS)
                await self._stage(network, number, step)
            await sleep_until(self.t0_ns + self.timeline.end_due_ns)
            try:
                await asyncio.wait_for(self._all_applied.wait(), OVERDUE_SECONDS)
            except TimeoutError as error:
                silent = ", ".join(network.waiting_for())
                raise RunError(f"the last changes were not applied by {silent}") from error
            if self._chains:
                await asyncio.wait(set(self._chains.values()), timeout=OVERDUE_SECONDS)
        finally:
            for task in (preparing, *self._cuts):
                task.cancel()

    async def _prepare_rejoins(self) -> None:
        for item in preparations(self.timeline):
            await sleep_until(self.t0_ns + item.begin_ns)
            self.instances[item.name].prepare()

    async def _stage(self, network: Network, number: int, step: Step) -> None:
        gone = self._follow(step)
        staged = await self._incarnate(step)
        change = Change(number, step, self._ports(staged), gone, self._leaving(step, gone))
        staged.held = await network.stage(change)
        self._wait_for_effect(number, staged)

    def _follow(self, step: Step) -> set[int]:
        """Takes note of the nodes' new states; returns the instances that are gone then."""
        gone = set()
        for index, state in step.epoch.nodes:
            self._states[index] = state
            if state == DOWN and self.plan.topology.nodes[index].service >= 0:
                gone.add(index)
        return gone

    def _leaving(self, step: Step, gone: set[int]) -> set[int]:
        """Those of them that have a program to end and end it by a leave."""
        last = {event.target: event.kind for event in step.events}
        names = {index: self.plan.topology.nodes[index].name for index in gone}
        return {
            index
            for index, name in names.items()
            if last.get(name) == "leave" and self.instances[name].argv
        }

    async def _cut(self, life: Life, name: str, node: int, links: frozenset[int]) -> None:
        """The network of an instance that has left, once its last process has ended."""
        await life.gone
        instance = self.instances[name]
        if instance.state != DOWN or self._network is None:
            return  # it is back already: its rejoin has seen to its network
        if await self._network.cut(node, links):
            self._log({"kind": "cut", "target": name, "applied_ns": self.elapsed()})

    def _take_effect(self, staged: _Staged, network: Effect | None) -> None:
        """Does what is left of a step. `network` is None if that does not change."""
        step = staged.step
        if staged.gate >= 0:
            staged.opened_ns = time.monotonic_ns()  # on return others may have had the processor
            os.close(staged.gate)
        self.next_step += 1
        for name in sorted(staged.lives.keys() - set(step.joins)):
            self.instances[name].state = self._initial[name]
            self._chain(name, self._join(name, None, staged, network))
        for event in step.events:
            self._do(event, staged, network)
        self._steps_left -= 1
        if self._steps_left == 0:
            self._all_applied.set()

    def _do(self, event: Event, staged: _Staged, network: Effect | None) -> None:
        if event.kind == "join":
            self._chain(event.target, self._join(event.target, event, staged, network))
        elif event.kind in ("leave", "crash"):
            self._chain(event.target, self._end(event, staged, network))
        else:
            applied = None if network is None else network.at_ns
            self._done(event, staged.step, network, applied)
        if event.kind in _STATE_AFTER:
            self.instances[event.target].state = _STATE_AFTER[event.kind]

    def _chain(self, name: str, action: Coroutine[Any, Any, None]) -> None:
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
        if error is not None and not self.broken.done():
            self.broken.set_exception(error)

    async def _join(
        self, name: str, event: Event | None, staged: _Staged, network: Effect | None
    ) -> None:
        instance, life = self.instances[name], staged.lives[name]
        joined = await instance.join(life, staged.opened_ns)
        applied = joined.at_ns - self.t0_ns
        started = None if joined.started_ns is None else joined.started_ns - self.t0_ns
        if event is None:
            record = {"kind": "start", "target": name, "applied_ns": applied}
            self._log(record if started is None else {**record, "started_ns": started})
        else:
            self._done(event, staged.step, network, applied, started)
        if joined.error:
            self._not_started(instance, life, joined)

    def _not_started(self, instance: Lives, life: Life, joined: Joined) -> None:
        """Whoever is let go before its program runs is no news."""
        name, applied = instance.node.name, joined.at_ns - self.t0_ns
        record = {"kind": "exit", "target": name, "applied_ns": applied, "error": joined.error}
        asked = instance.present is not life
        self._log({**record, "asked": True} if asked else record)
        if not asked:
            instance.start_error = joined.error
            program = instance.argv[0] if instance.argv else "?"
            self._warn(f"{name}: cannot start {program}: {joined.error}")

    async def _end(self, event: Event, staged: _Staged, network: Effect | None) -> None:
        instance = self.instances[event.target]
        if event.kind == "crash":
            at_ns = await instance.crash()
            self._done(event, staged.step, network, at_ns - self.t0_ns)
            return
        left = await instance.leave()
        self._done(event, staged.step, network, left.at_ns - self.t0_ns)
        node = self._node_index[event.target]
        if left.life is not None and node in staged.held:
            action = self._cut(left.life, event.target, node, staged.held[node])
            task = asyncio.get_running_loop().create_task(action)
            self._cuts.add(task)
            task.add_done_callback(self._cuts.discard)

    def _done(
        self,
        event: Event,
        step: Step,
        network: Effect | None,
        applied: int | None,
        started: int | None = None,
    ) -> None:
        """Logs an event; `applied` is None if it was done just now, `started` when exec worked."""
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
        if network is not None:
            record["network_ns"] = network.at_ns
            if network.spread_ns is not None:
                record["network_spread_ns"] = network.spread_ns
            if network.late:
                record["late_hosts"] = list(network.late)
        if started is not None:
            record["started_ns"] = started
        self._log(record)
        self.applied += 1
