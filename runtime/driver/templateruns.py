"""Schedules the commands of a test template (`expect drivers`) while a run goes on: which of them
begins when, beside which others, and which check ends it.

A template is a folder of executables whose names say what each is for (KINDS). One `first_` runs
before all others. Then either one `singleton_driver_` runs, once, or up to MOST_AT_ONCE lines of
work start one `parallel_driver_` or `serial_driver_` after the other, with pauses between them;
`anytime_` runs beside all of these. When the time of drivers is over nothing more is begun, and one
check is chosen: an `eventually_` has drivers killed that still run, a `finally_` waits for them.

All that is chosen follows from the seed, the text of the expectation and who chooses, not from how
long commands take; from a moment of `--reseed` on, from that seed. Records: TEMPLATE,
and of each command COMMAND and COMMAND_END. Source: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from compiler.plan.parts.expectations import DRIVERS, PlannedExpectation
from compiler.plan.reader import Plan
from runtime import say
from runtime.backend.instance import FolderEntry, Instance, UnreachableError
from runtime.driver.eventbook import EventBook, sleep_until
from runtime.errors import RunError
from runtime.rundir.runfiles import COMMAND, COMMAND_END, INSTANCE_ENDED, TEMPLATE
from runtime.schedule import Schedule

FIRST, EVENTUALLY, FINALLY, ANYTIME = "first_", "eventually_", "finally_", "anytime_"
PARALLEL, SERIAL, SINGLETON = "parallel_driver_", "serial_driver_", "singleton_driver_"
KINDS = (FIRST, PARALLEL, SERIAL, SINGLETON, ANYTIME, EVENTUALLY, FINALLY)
_STARTS = (PARALLEL, SERIAL, SINGLETON, ANYTIME)  # of these a template has one at least
HELPER = "helper_"
MOST_AT_ONCE = 4
LOOK_S = 0.01  # between two looks whether instances are there
PAUSE_NS, MOST_PAUSES = 1_000_000_000, 150  # longer ones where a line of work had more of them
_MS = 1_000_000
_SHOWN = 4
Chosen = TypeVar("Chosen")


@dataclass(frozen=True, slots=True)
class TemplateCommand:
    """An executable of a template, in one instance. `path` as its program is named there."""

    instance: str
    name: str
    path: str

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if self.name.startswith(kind))


def templates_of(
    plan: Plan, schedule: Schedule, instances: Mapping[str, Instance], book: EventBook
) -> list[TemplateRun]:
    """One for each `expect drivers` whose time begins in this run."""
    return [
        TemplateRun(plan, number, one, schedule, instances, book)
        for number, one in enumerate(plan.expectations)
        if one.kind == DRIVERS and schedule.clock.start_at_ns <= one.from_ns <= schedule.end_ns
    ]


class TemplateRun:
    """`number`: the place of the expectation in the plan."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        expectation: PlannedExpectation,
        schedule: Schedule,
        instances: Mapping[str, Instance],
        book: EventBook,
    ) -> None:
        self._number = number
        self._expectation = expectation
        self._seed = plan.seed
        self._schedule = schedule
        self._book = book
        self._names = [plan.topology.nodes[node].name for node in expectation.nodes]
        self._instances = instances
        self._turns = _Turns()

    async def carry_out(self) -> None:
        await sleep_until(self._at_ns(self._expectation.from_ns))
        await self._all_there()
        try:
            commands = self._chosen_template()
        except RunError as error:
            self._refuse(error)
            return
        if first := _of(commands, FIRST):
            await self._run(self._draws("first").one_of(first))
        async with asyncio.TaskGroup() as group:
            drivers = [group.create_task(one) for one in self._driving(commands)]
            anytime = _of(commands, ANYTIME)
            beside = [group.create_task(self._work("anytime", anytime))] if anytime else []
            await sleep_until(self._at_ns(self._expectation.to_ns))
            checks = _of(commands, EVENTUALLY, FINALLY)
            check = self._draws("check").one_of(checks) if checks else None
            if check is not None and check.kind == EVENTUALLY:
                for task in drivers:
                    task.cancel()
            await asyncio.wait([*drivers, *beside])
            if check is not None:
                await self._run(check)

    async def _all_there(self) -> None:
        """Until each has a life, or the time of drivers is over."""
        last_ns = self._at_ns(self._expectation.to_ns)
        while any(self._instances[name].present is None for name in self._names):
            if time.monotonic_ns() >= last_ns:
                return
            await asyncio.sleep(LOOK_S)

    # -- what there is --------------------------------------------------------------------------

    def _chosen_template(self) -> list[TemplateCommand]:
        """All commands of the one that is drawn, in the order of instances and names."""
        folders = {name: self._listed(name, "") for name in self._names}
        within = ""
        if not any(_is_command(one) for entries in folders.values() for one in entries):
            found = (one for entries in folders.values() for one in entries if one.is_folder)
            templates = sorted({one.name for one in found if not one.name.startswith(HELPER)})
            if not templates:
                raise RunError(f"there is no command in {self._folder}: {_WANTED}")
            within = self._draws("template").one_of(templates)
            holders = [
                name
                for name, entries in folders.items()
                if any(one.is_folder and one.name == within for one in entries)
            ]
            folders = {name: self._listed(name, within) for name in holders}
        commands = [
            TemplateCommand(name, one.name, self._path(name, within, one.name))
            for name, entries in folders.items()
            for one in entries
            if _is_command(one)
        ]
        self._check(folders, commands, within)
        ignored = {one.name for entries in folders.values() for one in entries}
        ignored -= {one.name for one in commands}
        self._note(
            TEMPLATE,
            "",
            template=within or PurePosixPath(self._folder).name,
            commands=sorted({one.name for one in commands}),
            ignored=sorted(ignored),
        )
        return commands

    def _listed(self, name: str, within: str) -> tuple[FolderEntry, ...]:
        instance = self._instances[name]
        runner, incarnation = instance.runner, instance.present
        if runner is None:
            raise UnreachableError("nobody runs commands in instances of this run")
        if incarnation is None:
            raise RunError(f"{name} was not there as long as drivers had time")
        try:
            return runner.listed(incarnation, self._path(name, within, ""))
        except UnreachableError:
            raise
        except RunError as error:
            raise RunError(f"in {name} {error.message}") from error

    def _path(self, name: str, *more: str) -> str:
        """A relative folder begins where relative programs do; a `/` makes it one of those."""
        runner = self._instances[name].runner
        assert runner is not None
        (folder,) = runner.resolved((f"{self._folder}/",))
        return str(PurePosixPath(folder, *more))

    @property
    def _folder(self) -> str:
        return self._expectation.argv[0]

    def _check(
        self,
        folders: Mapping[str, Sequence[FolderEntry]],
        commands: Sequence[TemplateCommand],
        within: str,
    ) -> None:
        place = f"{self._folder}/{within}" if within else self._folder
        entries = [one for found in folders.values() for one in found if not one.is_folder]
        dull = sorted({one.name for one in entries if _kind(one.name) and not one.runs})
        if dull:
            raise RunError(f"not executable in {place}: {say.some(dull, _SHOWN)} (chmod +x)")
        unknown = sorted({one.name for one in entries if one.runs and _is_unknown(one.name)})
        if unknown:
            raise RunError(
                f"no name of a command in {place}: {say.some(unknown, _SHOWN)}; a command begins "
                f"with {', '.join(KINDS)}, and {HELPER} is what is none"
            )
        if not _of(commands, *_STARTS):
            raise RunError(f"there is no driver in {place}: {_WANTED}")

    def _refuse(self, error: RunError) -> None:
        more = {"unavailable": True} if isinstance(error, UnreachableError) else {}
        nothing: dict[str, Any] = {"template": self._folder, "commands": [], "ignored": []}
        self._note(TEMPLATE, "", **nothing, error=error.message, **more)

    # -- what runs when -------------------------------------------------------------------------

    def _driving(self, commands: Sequence[TemplateCommand]) -> Iterator[Any]:
        """Coroutines: one of a singleton, or several that work beside each other."""
        draws = self._draws("drivers")
        alone, shared = _of(commands, SINGLETON), _of(commands, PARALLEL, SERIAL)
        which = draws.below(len(alone) + bool(shared)) if alone or shared else 0
        if which < len(alone):
            yield self._run(alone[which])
        elif shared:
            most = MOST_AT_ONCE if _of(shared, PARALLEL) else 1
            for line in range(1 + draws.below(most)):
                yield self._work(f"drivers {line}", shared)

    async def _work(self, who: str, commands: Sequence[TemplateCommand]) -> None:
        """One after the other, until the time of drivers is over."""
        draws, last_ns = self._draws(who), self._at_ns(self._expectation.to_ns)
        whole_ns = last_ns - self._at_ns(self._expectation.from_ns)
        longest_ns = max(whole_ns // MOST_PAUSES, PAUSE_NS)
        while True:
            pause_ns = draws.below(longest_ns // _MS + 1) * _MS
            await sleep_until(min(time.monotonic_ns() + pause_ns, last_ns))
            command = draws.one_of(commands)
            async with self._turns.of(command.kind):
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(last_ns - time.monotonic_ns(), 0) / 1e9):
                        await self._goes_on(command)
                if time.monotonic_ns() >= last_ns:
                    return
                if self._instances[command.instance].present is not None:
                    await self._run(command)

    async def _goes_on(self, command: TemplateCommand) -> None:
        """Until its instance is not paused, or not there."""
        instance = self._instances[command.instance]
        if instance.present is not None:
            await instance.goes_on(instance.present)

    async def _run(self, command: TemplateCommand) -> None:
        """To its end; one that is cancelled is killed."""
        await self._goes_on(command)
        instance, began_ns = self._instances[command.instance], time.monotonic_ns()
        said = {"command": command.name}
        self._note(COMMAND, command.instance, began_ns, **said)
        how: dict[str, Any] = {"lost": "it was ended with its run or by a check", "output": []}
        try:
            how = await _ended(instance, command)
        finally:
            record = {**self._record(COMMAND_END, command.instance), **said, **how}
            self._book.note(record, began_ns=began_ns)

    # -- records, times, draws ------------------------------------------------------------------

    def _note(self, kind: str, target: str, at_ns: int | None = None, **more: Any) -> None:
        times = {} if at_ns is None else {"applied_ns": at_ns}
        self._book.note({**self._record(kind, target), **more}, **times)

    def _record(self, kind: str, target: str) -> dict[str, Any]:
        return {"kind": kind, "target": target, "expectation": self._number}

    def _at_ns(self, plan_ns: int) -> int:
        """On CLOCK_MONOTONIC."""
        return self._book.t0_ns + self._schedule.clock.due(plan_ns)

    def _draws(self, who: str) -> _Draws:
        key = f"{self._expectation.text}\n{who}"
        return _Draws(self._seed, key, self._schedule, self._book)


async def _ended(instance: Instance, command: TemplateCommand) -> dict[str, Any]:
    """How it did, as its record has it."""
    incarnation, runner, was_dead = instance.present, instance.runner, instance.dead
    assert runner is not None
    if incarnation is None:
        return {"error": "could not be run: the instance was not there", "output": []}
    try:
        ran = await runner.run(incarnation, (command.path,))
        how: dict[str, Any] = {"status": ran.status, "output": [*ran.lines]}
        how |= {"reason": ran.reason} if ran.reason else {}
    except RunError as error:
        how = {"error": f"could not be run: {error.message}", "output": []}
    gone = instance.present is not incarnation or incarnation.gone.done()
    if gone or (instance.dead and not was_dead):
        return {"lost": INSTANCE_ENDED, "output": how["output"]}
    return how


_WANTED = f"it needs one of {', '.join(_STARTS)}"


def _kind(name: str) -> bool:
    return name.startswith(KINDS)


def _is_unknown(name: str) -> bool:
    return not name.startswith((*KINDS, HELPER))


def _is_command(one: FolderEntry) -> bool:
    return _kind(one.name) and not one.is_folder


def _of(commands: Sequence[TemplateCommand], *kinds: str) -> list[TemplateCommand]:
    return [one for one in commands if one.kind in kinds]


class _Draws:
    """What one of them draws, one after the other."""

    def __init__(self, seed: int, who: str, schedule: Schedule, book: EventBook) -> None:
        self._seed, self._who, self._schedule, self._book = seed, who, schedule, book
        self._count = 0

    def one_of(self, those: Sequence[Chosen]) -> Chosen:
        return those[self.below(len(those))]

    def below(self, count: int) -> int:
        now_ns = self._schedule.clock.plan_time(self._book.elapsed())
        seed = self._seed
        for from_ns, other in self._schedule.options.reseeded:
            seed = other if from_ns <= now_ns else seed
        self._count += 1
        digest = hashlib.sha256(f"drivers {seed}\n{self._who} {self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % count


class _Turns:
    """Who runs beside whom: a `serial_driver_` alone among drivers; while one waits for that, no
    other driver begins."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._running = self._waiting = 0
        self._alone = False

    @asynccontextmanager
    async def of(self, kind: str) -> AsyncIterator[None]:
        if kind == ANYTIME:
            yield
            return
        alone = kind == SERIAL
        await self._begin(alone=alone)
        try:
            yield
        finally:
            await self._end()

    async def _begin(self, *, alone: bool) -> None:
        async with self._changed:
            self._waiting += alone
            try:
                if alone:
                    await self._changed.wait_for(lambda: not self._running)
                else:
                    await self._changed.wait_for(lambda: not (self._alone or self._waiting))
            finally:
                self._waiting -= alone
            self._running += 1
            self._alone = alone

    async def _end(self) -> None:
        async with self._changed:
            self._running -= 1
            self._alone = False
            self._changed.notify_all()
