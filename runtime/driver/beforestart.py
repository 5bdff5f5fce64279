"""What is done in instances before time 0: their setups; and with `start when ready` the programs
that have a check are started and awaited, each at its own pace. What uses them, and has none,
starts at time 0. The network of the first step is in force meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compiler.plan.parts.service_words import ENDED, STARTED, after
from compiler.plan.reader import Plan
from runtime import say
from runtime.backend.instance import Incarnation, Instance, Joined
from runtime.driver.eventbook import EventBook, sleep_until
from runtime.driver.starts import (
    PAUSE_SECONDS,
    Readiness,
    Setups,
    cannot_start,
    check_of,
    in_words,
)
from runtime.errors import ProgramsError
from runtime.options import RunOptions
from runtime.schedule import first_moment


@dataclass(slots=True)
class Early:
    """How far an instance is before the start. Where its join has begun, it has `joined` with its
    program started, at `ready_ns` at the latest; or there is an `error`, and the program cannot be
    started. Others wait until it is `started` or `ready`; one that starts at time 0 is passed
    over."""

    joined: Joined | None = None
    ready_ns: int | None = None
    error: str = ""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_begun(self) -> bool:
        return self.joined is not None or bool(self.error)

    def passes(self) -> None:
        self.started.set()
        self.ready.set()


class BeforeStart:
    """`states`: of instances, as the timeline has them at the start."""

    def __init__(
        self,
        plan: Plan,
        instances: Mapping[str, Instance],
        states: Mapping[str, str],
        setups: Setups,
        book: EventBook,
    ) -> None:
        self._starts = plan.topology.start_when_ready
        self._instances = instances
        self._states = states
        self._setups = setups
        self._readiness = Readiness(book)
        self._book = book
        self._progress: dict[str, Early] = {}
        services = plan.topology.services
        self._after = {one.name: after(one) for one in services if self._starts}
        self._awaited = {name for waits in self._after.values() for name, _ in waits}
        self._service = {
            node.name: services[node.service].name
            for node in plan.topology.nodes
            if node.service >= 0
        }

    def is_wanted(self, names: Iterable[str]) -> bool:
        """Whether there is anything to do here; where others start programs, they see to it."""
        return any(
            self._instances[name].commands is not None
            and (
                self._is_early(self._instances[name])
                or self._setups.is_wanted(name)
                or self._after.get(self._service[name])
            )
            for name in names
        )

    def _is_early(self, instance: Instance) -> bool:
        """Whether its program runs before time 0."""
        stated = instance.commands is not None and bool(instance.commands.ready)
        awaited = self._service[instance.node.name] in self._awaited
        return self._starts and (stated or awaited or not instance.argv)

    @property
    def words(self) -> str:
        """What is awaited."""
        return "waiting until all are ready" if self._starts else "waiting for setups"

    async def carry_out(
        self, incarnations: Mapping[str, Incarnation], options: RunOptions
    ) -> dict[str, Early]:
        """By instance; those that are not in it join at the start as usual. ProgramsError."""
        begin_ns = first_moment(options, time.monotonic_ns())
        await sleep_until(begin_ns)
        self._progress = {name: Early() for name in incarnations}
        tasks = {
            name: asyncio.create_task(self._prepare(self._instances[name], incarnation))
            for name, incarnation in incarnations.items()
        }
        try:
            await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks.values():
                if task.done():
                    task.result()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.wait(tasks.values())
        return {name: early for name, early in self._progress.items() if early.has_begun}

    async def _prepare(self, instance: Instance, incarnation: Incarnation) -> None:
        name, why = instance.node.name, ""
        await self._wait_for_others(name)
        if self._setups.is_wanted(name):
            why = await self._setups.run(name, incarnation)
        if why and self._starts:
            raise self._cannot_start(instance, why)
        if self._is_early(instance):
            await self._start(instance, incarnation, self._progress[name])
        else:
            self._progress[name].error = why
        self._progress[name].passes()

    async def _wait_for_others(self, name: str) -> None:
        """What after= of its service says, of instances that are there at the start. ProgramsError
        where the program of one that is to end does not, or not well."""
        for service, what in self._after.get(self._service[name], ()):
            for other, progress in self._progress.items():
                if self._service[other] == service:
                    wanted = progress.started if what == STARTED else progress.ready
                    await wanted.wait()
                    if what == ENDED:
                        await self._end_of(self._instances[other])

    async def _end_of(self, instance: Instance) -> None:
        """Until its program has ended by itself, with 0."""
        commands, name = instance.commands, instance.node.name
        if commands is None or not instance.argv:
            return
        limit_ns = time.monotonic_ns() + commands.ready_timeout_ns
        while instance.ended is None:
            if time.monotonic_ns() > limit_ns:
                limit = say.seconds(commands.ready_timeout_ns)
                why = f"{name} has not ended within {limit} (ready-timeout=)"
                raise ProgramsError(f"{why}, and others start after it", name)
            await asyncio.sleep(PAUSE_SECONDS)
        if not instance.ended.well:
            how = instance.ended.words
            raise ProgramsError(f"{name} ended with {how}, and others start after it", name)

    async def _start(self, instance: Instance, incarnation: Incarnation, early: Early) -> None:
        instance.state = self._states[instance.node.name]
        await instance.arrive(incarnation)
        early.joined = await instance.start(incarnation)
        if early.joined.error:
            raise self._cannot_start(instance, early.joined.error)
        early.started.set()
        if not instance.argv:
            return
        if check_of(instance):
            why = await self._readiness.wait(instance, incarnation)
            if why:
                raise ProgramsError(f"{instance.node.name} is not ready: {why}", instance.node.name)
        early.ready_ns = time.monotonic_ns()

    def _cannot_start(self, instance: Instance, why: str) -> ProgramsError:
        instance.start_error = why = in_words(why)
        self._book.note({"kind": "exit", "target": instance.node.name, "error": why})
        return cannot_start(instance, why)
