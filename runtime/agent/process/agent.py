"""The agent as a process: its connections, how long it lives, and how it ends.

It lives as long as its datapath and its coordinator do. What it does for a run is in
runtime.agent.process.hostrun, what it answers in runtime.agent.process.responder; docs/agent.md has
the whole.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from runtime.agent.clock import SystemClock
from runtime.agent.metadata.udp import Mailbox
from runtime.agent.path.datapath import Datapath
from runtime.agent.process.commandline import PPB, AgentOptions
from runtime.agent.process.local_captures import LocalCaptures
from runtime.agent.process.responder import Responder
from runtime.coordinator import says
from runtime.coordinator.says import AgentFailed, AgentNotice, TrafficSample
from runtime.errors import RunError
from runtime.judge.machine_load import OwnMachine
from runtime.options import REAL
from runtime.rpc.calls import AgentEnd
from runtime.rpc.secure import Server
from runtime.system.loop_signals import on_signals

ENDED, FAILED, LOST, WITHOUT_DATAPATH = 0, 1, 4, 5  # exit status; 2 is for wrong options
LOST_SECONDS = 10.0  # one that was there and has said nothing for so long is lost
CHECK_SECONDS = 0.5
LAST_SECONDS = 1.0  # for an answer that is on its way at the end
NICE = -10  # where permitted: a late loop is a wrong network
DATAPATH_ENDED = "the datapath of this host has ended"
SAYINGS = 10_000  # kept for a coordinator that is away


class Agent:
    """Made within a running event loop. `run` does everything and returns the exit status."""

    def __init__(self, options: AgentOptions, key: bytes) -> None:
        self.options = options
        self.clock = SystemClock(options.clock_offset_ns)
        self.datapath = Datapath(self.clock, self._datapath_says)
        self.mailbox = Mailbox(self.clock, options.metadata, options.drop_metadata_ppb)
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._coordinator = AgentEnd(self._answer, SAYINGS, self._over.done)
        self.server = Server(key, self._coordinator.welcome)
        self.service = Responder(
            options.plan,
            key,
            self.clock,
            self.datapath,
            self.mailbox,
            self.say,
            self._fail,
            lambda: self._end(ENDED),
            resumes=options.resume,
            ports=options.ports,
        )
        self._captures: LocalCaptures | None = None
        self._machine = OwnMachine(options.clock_step_ns)
        self._answering = False
        self._answered_ns = 0
        self._wake = asyncio.Event()  # something has happened that ends the process

    # -- the coordinator ------------------------------------------------------------------------

    async def _answer(self, request: dict[str, Any], at_ns: int) -> Mapping[str, object]:
        self._answering = True
        try:
            answer = await self.service.answer(request, at_ns)
        finally:
            self._answering = False
            self._answered_ns = time.monotonic_ns()
        if request.get("do") in ("status", "stop"):
            more = {"channel": self.server.counters(), "machine": self._machine.record()}
            return {**answer, **more}
        return answer

    def say(self, said: says.Message) -> None:
        """To the coordinator, or kept until one is there."""
        if self.options.count_ppb != PPB and isinstance(said, TrafficSample):
            said = _miscounted(said, self.options.count_ppb)
        self._coordinator.say(says.write(said))

    async def _watch(self) -> None:
        """Returns when the coordinator does not come, or stays away."""
        began = time.monotonic_ns()
        first = first_patience(self.options)
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self._look_at_machine()
            now, channel = time.monotonic_ns(), self._coordinator.channel
            if channel is None:
                heard, patience = began, first
            elif self._answering or not (channel.over or self.service.running):
                continue  # it waits for us; before the start it may have to wait for others
            else:
                heard, patience = max(channel.heard_ns, self._answered_ns), LOST_SECONDS
            if now - heard > patience * 1e9:
                return

    def _look_at_machine(self) -> None:
        """While the experiment goes on, in real time."""
        host_run = self.service.host_run
        if host_run is not None and host_run.started and host_run.order.options.time == REAL:
            self._machine.look(host_run.elapsed_ns())

    # -- from beginning to end ------------------------------------------------------------------

    async def run(self) -> int:
        """Until stopped, lost, failed or told to end by a signal. RunError if it cannot begin."""
        loop = asyncio.get_running_loop()
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
        on_signals((signal.SIGTERM, signal.SIGINT), partial(self._end, ENDED))
        await self.datapath.connect(self.options.datapath_fd)
        await self.server.listen(*self.options.listen)
        if self.options.captures is not None:
            self._captures = LocalCaptures(
                self.options.captures, self.datapath, lambda: self.service.host_run
            )
        watch = loop.create_task(self._watch())
        gone = loop.create_task(self._datapath_gone())
        for ended in (watch, gone):
            ended.add_done_callback(lambda _: self._wake.set())
        self._over.add_done_callback(lambda _: self._wake.set())
        await self._wake.wait()
        if not self._over.done() and gone.done():
            self._fail(DATAPATH_ENDED)
        if not self._over.done():
            try:
                await self._drop_all()
            finally:
                self._end(LOST)
        if self._over.result() != ENDED:
            await self._end_programs()
        watch.cancel()
        gone.cancel()
        await self._close()
        return self._over.result()

    async def _datapath_gone(self) -> None:
        await asyncio.wait({self.datapath.engine.closed})

    def _datapath_says(self, event: str) -> None:
        if event.startswith("failed"):
            self._fail(f"the datapath could not apply a change: {event}")
        else:
            self.say(AgentNotice(f"the datapath says: {event}"))

    def _fail(self, text: str) -> None:
        """Ends the process. Who needed the datapath first says only that it is gone."""
        gone = self.datapath.engine.closed.done()
        text = DATAPATH_ENDED if gone else text
        if not self._over.done():
            self.say(AgentFailed(text))
            _tell(text)  # the coordinator may not hear it
        self._end(WITHOUT_DATAPATH if gone else FAILED)

    def _end(self, status: int) -> None:
        if not self._over.done():
            self._over.set_result(status)

    async def _drop_all(self) -> None:
        """The datapath hears of nobody any more, and lets nothing pass from now on."""
        _tell("the coordinator is lost: all traffic is cut")
        if self.service.host_run is not None:
            await self.service.host_run.finish()
        await self.datapath.lease(1)

    async def _end_programs(self) -> None:
        """Nobody else would: the run is over, and its instances are not ours to remove."""
        if self.service.host_run is not None:
            for node in await self.service.host_run.programs.finish():
                _tell(f"node {node} still runs something")

    async def _close(self) -> None:
        """The network stays as it is."""
        if self.service.host_run is not None:
            try:
                await self.service.host_run.finish()
            except RunError as error:
                _tell(f"at the end: {error}")
            self.service.host_run.close()
        if self._coordinator.serving and self.service.stopping:
            await asyncio.wait(self._coordinator.serving, timeout=LAST_SECONDS)
        if self._captures is not None:
            self._captures.close()
        await self.server.close()
        self.mailbox.close()


def first_patience(options: AgentOptions) -> float:
    """Seconds to wait for the first coordinator. Who resumes a run knows that there is one."""
    return LOST_SECONDS if options.resume else options.wait_seconds or math.inf


def _tell(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201  # the process has no other place to say it


def _miscounted(sample: TrafficSample, count_ppb: int) -> TrafficSample:
    """With another part of everything that was counted."""
    rows = [[*row[:2], *(count * count_ppb // PPB for count in row[2:])] for row in sample.pairs]
    return replace(sample, pairs=rows)
