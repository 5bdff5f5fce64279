"""From an instance's network to a program that is ready: its setup, its start, and its check.

While the run goes on, Starts does that with instances that join; what takes longer than the join
goes on beside the timeline. Before time 0 runtime.driver.beforestart does it with what is here.

`setup=` runs in each instance of its service once, before the first start of its program. Its
output goes to the instance's log between two marks. A setup that does not end with 0 means that the
program could not start; the next join of the instance tries again.

`ready=` is tried at once, then after pauses that grow from PAUSE_SECONDS to LONGEST_PAUSE_SECONDS.
A program that has failed meanwhile will not be ready; one that has ended well may have left others
behind that will.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from compiler.plan.types import NO_CHECK, TCP_CHECK
from runtime import say
from runtime.backend.base import Notice
from runtime.backend.instance import Incarnation, Instance, Joined, ServiceCommands
from runtime.driver.eventbook import EventBook
from runtime.errors import ProgramsError, RunError, fail
from runtime.rundir import logmarks

PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
GROWTH = 1.5
ATTEMPT_SECONDS = 10.0  # a check that takes longer is given up and tried again
NO_PROGRAM = "no such program"  # or the interpreter that its first line names

OnFailure = Callable[[Instance, Mapping[str, Any], str], None]  # the record, and what to say of it


class Setups:
    """Those that `setup=` says, and which are done."""

    def __init__(self, instances: Mapping[str, Instance], book: EventBook) -> None:
        self._instances = instances
        self._book = book
        self._done: set[str] = set()

    def is_wanted(self, name: str) -> bool:
        commands = self._instances[name].commands
        return commands is not None and bool(commands.setup) and name not in self._done

    async def run(self, name: str, incarnation: Incarnation) -> str:
        """To its end, which is noted. Returns why the program cannot be started, '' if it can."""
        commands = self._instances[name].commands
        assert commands is not None
        began_ns = time.monotonic_ns()
        self._mark(commands, f"setup {commands.setup[0]}")
        try:
            status = (await commands.run_beside(incarnation, commands.setup, logged=True)).status
        except RunError as error:
            self._note(name, began_ns, {"error": error.message})
            return f"setup could not run: {error.message}"
        self._mark(commands, f"setup ended with {status}")
        self._note(name, began_ns, {"status": status})
        if status:
            return f"setup ended with {status}"
        self._done.add(name)
        return ""

    def _note(self, name: str, began_ns: int, how: Mapping[str, object]) -> None:
        now_ns = time.monotonic_ns()
        record = {"kind": "setup", "target": name, "took_ns": now_ns - began_ns, **how}
        self._book.note(record, applied_ns=now_ns)

    def _mark(self, commands: ServiceCommands, what: str) -> None:
        commands.mark(logmarks.words(self._book.since_start(time.monotonic_ns()), what))


def check_of(instance: Instance) -> tuple[str, ...]:
    """What is to be checked; empty if the instance is ready when its program runs."""
    commands = instance.commands
    return () if commands is None or commands.ready == (NO_CHECK,) else commands.ready


class Readiness:
    """Follows programs until they are ready, as `ready=` of their services says."""

    def __init__(self, book: EventBook) -> None:
        self._book = book

    async def wait(self, instance: Instance, incarnation: Incarnation) -> str:
        """Until the program of this life is ready, or will not be, which is noted. Returns why it
        is not; '' also if the timeline has ended the life meanwhile."""
        began_ns, commands = time.monotonic_ns(), instance.commands
        assert commands is not None
        why = await self._until_ready(instance, incarnation, began_ns, commands.ready_timeout_ns)
        if instance.present is not incarnation or instance.dead:
            return ""
        now_ns = time.monotonic_ns()
        record = {"target": instance.node.name, "took_ns": now_ns - began_ns}
        if why:
            self._book.note({**record, "kind": "not_ready", "reason": why}, applied_ns=now_ns)
        else:
            moments = {"applied_ns": now_ns, "ready_ns": now_ns}
            self._book.note({**record, "kind": "ready"}, **moments)
        return why

    async def _until_ready(
        self, instance: Instance, incarnation: Incarnation, began_ns: int, timeout_ns: int
    ) -> str:
        check, pause_s, why = check_of(instance), PAUSE_SECONDS, ""
        while instance.present is incarnation and not instance.dead:
            left_s = (began_ns + timeout_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return f"not within {say.seconds(timeout_ns)} (ready-timeout=): {why}"
            tried = await _try(instance, incarnation, check, min(left_s, ATTEMPT_SECONDS))
            if not tried.why:
                return ""
            if instance.failure:
                return instance.failure
            if tried.ended or left_s >= ATTEMPT_SECONDS or not why:  # one cut short says less
                why = tried.why
            await asyncio.sleep(min(pause_s, max(left_s, 0)))
            pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_SECONDS)
        return ""


class _Tried(NamedTuple):
    """Why an attempt did not succeed, '' if it did; whether it came to an end by itself."""

    why: str
    ended: bool = True


async def _try(
    instance: Instance, incarnation: Incarnation, check: tuple[str, ...], seconds: float
) -> _Tried:
    commands = instance.commands
    assert commands is not None
    try:
        if len(check) == 1 and check[0].startswith(TCP_CHECK):
            return _Tried(
                await commands.connect(incarnation, int(check[0].removeprefix(TCP_CHECK)))
            )
        ran = await commands.run_beside(incarnation, check, logged=False, seconds=seconds)
    except RunError as error:
        return _Tried(error.message)
    if ran.status == 0:
        return _Tried("")
    said = f": {ran.said}" if ran.said else ""
    if ran.status is None:
        return _Tried(
            f"the check {check[0]} did not end in {say.digits(seconds)} s{said}", ended=False
        )
    return _Tried(f"the check {check[0]} ended with {ran.status}{said}")


def cannot_start(instance: Instance, why: str) -> ProgramsError:
    """What to say of its program; with this it ends the run."""
    name, program = instance.node.name, instance.argv[0] if instance.argv else "?"
    return ProgramsError(f"{name}: cannot start {program!r}: {why}", name)


def in_words(error: str) -> str:
    """Why exec has refused a program."""
    return NO_PROGRAM if error == os.strerror(errno.ENOENT) else error


class Starts:
    """Starts programs of instances that join. `broken` holds an error that nobody expected.
    `on_end` is told when a start has come to nothing after its join."""

    def __init__(
        self,
        book: EventBook,
        setups: Setups,
        warn: Notice,
        on_failure: OnFailure,
        on_end: Callable[[], None],
    ) -> None:
        self.setups = setups
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._book = book
        self._readiness = Readiness(book)
        self._warn = warn
        self._on_failure = on_failure
        self._on_end = on_end
        self._beside: set[asyncio.Task[None]] = set()

    def order(self, incarnations: Mapping[Instance, Incarnation], due_ns: int) -> int:
        """Orders the starts of instances that were never there ahead of time.

        So a hundred programs that join together cost one system call at that moment. Returns the
        descriptor to close, -1 if there is nothing to start.
        """
        if not incarnations:
            return -1
        waiting, closing = os.pipe2(os.O_CLOEXEC)
        try:
            for instance, incarnation in incarnations.items():
                self.mark(instance, "join", due_ns)
                instance.hold(incarnation, waiting)
        finally:
            os.close(waiting)
        return closing

    async def join(
        self, instance: Instance, incarnation: Incarnation, error: str, opened_ns: int
    ) -> Joined:
        """The join of an instance. It is without a start, and without an error, if the setup comes
        before it. `error`: why its program cannot be started. `opened_ns`: when the gate of a
        program was opened that was ordered ahead of time, 0 if it was not."""
        at_ns = await instance.arrive(incarnation, opened_ns)
        if error:
            return Joined(at_ns, None, error)
        if not opened_ns:
            self.mark(instance, "join", at_ns - self._book.t0_ns)
            if self.setups.is_wanted(instance.node.name):
                self._do_beside(self._set_up(instance, incarnation))
                return Joined(at_ns)
        return replace(await instance.start(incarnation), at_ns=at_ns)

    async def _set_up(self, instance: Instance, incarnation: Incarnation) -> None:
        """Then its program is started, if the instance is still there."""
        why = await self.setups.run(instance.node.name, incarnation)
        due_ns = time.monotonic_ns()
        if instance.present is not incarnation:
            return
        joined = Joined(due_ns, None, why) if why else await instance.start(incarnation)
        if joined.error:
            self.failed(instance, incarnation, joined)
            self._on_end()
        elif joined.started_ns is not None:
            times = {"applied_ns": joined.at_ns, "started_ns": joined.started_ns, "due_ns": due_ns}
            self._book.note({"kind": "start", "target": instance.node.name}, **times)
            self.follow_readiness(instance, incarnation)

    def follow_readiness(self, instance: Instance, incarnation: Incarnation) -> None:
        """Of a program that has been started."""
        if check_of(instance):
            self._do_beside(self._until_ready(instance, incarnation))

    async def _until_ready(self, instance: Instance, incarnation: Incarnation) -> None:
        why = await self._readiness.wait(instance, incarnation)
        if why:
            self._warn(f"{instance.node.name} is not ready: {why}")

    def failed(self, instance: Instance, incarnation: Incarnation, joined: Joined) -> None:
        """The program could not be started, and that ends the run, unless nobody there could be
        asked. Whoever is let go before it runs is no news."""
        why = in_words(joined.error)
        record = {"kind": "exit", "target": instance.node.name, "error": why}
        asked = instance.present is not incarnation
        self._book.note({**record, "asked": True} if asked else record, applied_ns=joined.at_ns)
        if not asked:
            instance.start_error = why
            error = cannot_start(instance, why)
            if not joined.unheard:
                fail(self.broken, error)
            self._on_failure(instance, record, error.message)

    def mark(self, instance: Instance, what: str, elapsed_ns: int) -> None:
        """In its log; nothing at the start, where a log begins."""
        if instance.commands is not None and instance.argv and elapsed_ns > 0:
            instance.commands.mark(logmarks.words(elapsed_ns, what))

    def _do_beside(self, action: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(action)
        self._beside.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            fail(self.broken, error)

    def stop(self) -> None:
        for task in self._beside:
            task.cancel()
