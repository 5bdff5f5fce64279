"""Starts programs of instances that join while the run goes on: after a setup if there is one, and
followed until they are ready. What takes longer than the join goes on beside the timeline.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from runtime.backend.base import Notice
from runtime.backend.instance import Incarnation, Instance, Joined
from runtime.driver.eventbook import EventBook
from runtime.driver.starting.readiness import Readiness, check_of
from runtime.driver.starting.setups import Setups
from runtime.errors import ProgramsError, fail
from runtime.rundir import logmarks

NO_PROGRAM = "no such program"  # or the interpreter that its first line names

OnFailure = Callable[[Instance, Mapping[str, Any], str], None]  # the record, and what to say of it


def cannot_start(instance: Instance, why: str) -> ProgramsError:
    """What to say of its program; with this it ends the run."""
    name, program = instance.node.name, instance.argv[0] if instance.argv else "?"
    return ProgramsError(f"{name}: cannot start {program!r}: {why}", name)


def in_words(error: str) -> str:
    """Why exec has refused a program."""
    return NO_PROGRAM if error == os.strerror(errno.ENOENT) else error


class Starts:
    """`broken` holds an error that nobody expected. `on_end` is told when a start has come to
    nothing after its join."""

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
