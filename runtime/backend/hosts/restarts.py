"""Keeps the agents of a run alive: one that ends or falls silent is started again, within limits.

An agent may be started again once within STEADY_NS, and any number of times if it stays up longer.
Its datapath goes on meanwhile with what it was told last. Whatever cannot be mended is told to
`on_fatal`, with the host's name and the reason, and ends the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.backend.hosts.hosts import HostParts, OnFatal, Watched
from runtime.coordinator.coordinator import REJOIN_SECONDS, Coordinator
from runtime.errors import RunError
from runtime.system.procs import status_text

STEADY_NS = 10_000_000_000
TAKE_UP_SECONDS = 2.0  # for a process that is still there to speak again
CUT_SECONDS = 0.3  # a connection that ends just before its process does is no riddle

OnChange = Callable[[int, str], None]  # host, what happened; '' when it is back
Resume = Callable[[int], Mapping[str, object]]


class AgentRestarts:
    """`begin` after the start; `stop` before agents are told to end."""

    def __init__(
        self,
        hosts: Sequence[HostParts],
        coordinator: Coordinator,
        resume: Resume,
        on_change: OnChange,
        on_fatal: OnFatal,
        back_seconds: float = REJOIN_SECONDS,
    ) -> None:
        self._hosts = hosts
        self._coordinator = coordinator
        self._resume = resume
        self._on_change = on_change
        self._on_fatal = on_fatal
        self._back_seconds = back_seconds
        self._restarted_ns: dict[int, int] = {}
        self._mending: dict[int, asyncio.Task[None]] = {}
        self._there = [asyncio.Event() for _ in hosts]
        self.ending = False  # nobody is brought back any more
        self._restarting = asyncio.Event()  # cleared: nobody is started again for now
        self._restarting.set()
        for event in self._there:
            event.set()

    def watch(self) -> None:
        """Notices every end of a datapath or agent from now on."""
        for number, host in enumerate(self._hosts):
            self._watch_datapath(number, host.datapath)
            self._watch_agent(number)

    def _watch_datapath(self, number: int, datapath: Watched) -> None:
        datapath.ended.add_done_callback(lambda ended: self._datapath_ended(number, ended.result()))

    def _watch_agent(self, number: int) -> None:
        self._hosts[number].agent.ended.add_done_callback(
            lambda ended: self.lost(number, f"its process ended with {status_text(ended.result())}")
        )

    def _datapath_ended(self, number: int, status: int) -> None:
        if not self.ending:
            name = self._hosts[number].name
            self._on_fatal(RunError(f"the datapath of {name} ended with {status_text(status)}"))

    def lost(self, number: int, reason: str) -> None:
        """The agent's process has ended, or its connection is gone."""
        if self.ending or number in self._mending:
            return
        self._there[number].clear()
        self._on_change(number, reason)
        task = asyncio.get_running_loop().create_task(self._mend(number, reason))
        self._mending[number] = task
        task.add_done_callback(lambda done: self._mended(number, done))

    def _mended(self, number: int, done: asyncio.Task[None]) -> None:
        del self._mending[number]
        error = None if done.cancelled() else done.exception()
        if isinstance(error, RunError):
            self._on_fatal(error)
        elif error is not None:
            self._on_fatal(RunError(f"{self._hosts[number].name}: {error!r}"))
        elif not done.cancelled():
            self._there[number].set()
            self._on_change(number, "")
            if self._coordinator.lost.get(number):
                self.lost(number, self._coordinator.lost[number])  # again, meanwhile

    def wait_to_restart(self) -> int | None:
        """From now on, until restart(), nobody is brought back. Returns who is not there, if
        anybody is not."""
        self._restarting.clear()
        return min(self._mending, default=None)

    def restart(self) -> None:
        self._restarting.set()

    async def there(self, number: int) -> None:
        """Waits until an agent is there; for ever if it never is, since then the run ends."""
        await self._there[number].wait()

    async def _mend(self, number: int, reason: str) -> None:
        host = self._hosts[number]
        agent = host.agent
        await asyncio.wait({agent.ended}, timeout=CUT_SECONDS)
        await self._restarting.wait()
        if not agent.ended.done() and await self._take_up_again(number, agent):
            return
        agent.kill()
        status = await agent.ended
        now = time.monotonic_ns()
        before = self._restarted_ns.get(number)
        name = host.name
        if before is not None and now - before < STEADY_NS:
            raise RunError(
                f"the agent of {name} was lost again {(now - before) / 1e9:.1f} s after it had been"
                f" started again ({reason}; {status_text(status)})"
            )
        self._restarted_ns[number] = now
        host.restart_agent()
        self._watch_agent(number)
        await self._rejoin(number, host.agent, self._back_seconds)

    async def _take_up_again(self, number: int, agent: Watched) -> bool:
        """Whether a process that is still there speaks to us again."""
        try:
            await self._rejoin(number, agent, TAKE_UP_SECONDS)
        except RunError:
            return False
        return True

    async def _rejoin(self, number: int, agent: Watched, seconds: float) -> None:
        name = self._hosts[number].name
        work = asyncio.create_task(
            self._coordinator.rejoin(number, lambda: self._resume(number), seconds)
        )
        try:
            either: list[asyncio.Future[Any]] = [work, agent.ended]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                how = status_text(agent.ended.result())
                raise RunError(f"the agent of {name} did not come back: it ended with {how}")
            try:
                work.result()
            except RunError as error:
                message = f"the agent of {name} did not come back: {error.message}"
                raise RunError(message, error.remedy) from error
        finally:
            work.cancel()

    def stop(self) -> None:
        """What ends from now on is meant to."""
        self.ending = True
        for task in self._mending.values():
            task.cancel()
