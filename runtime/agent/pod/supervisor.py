"""The process of an agent's container: it answers the coordinator and keeps what a run needs on its
node, from `begin` to `end`; between runs it waits. Messages and behaviour: docs/supervisor.md.

It decides nothing about an experiment. It starts an agent again that has died
(runtime.agent.pod.noderun), and when no coordinator has been there for ALONE_SECONDS it ends the
run. The agent has noticed by then that it is alone, and has closed the network; the supervisor
leaves it LEAVE_SECONDS more to end the programs.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any

from runtime.agent.pod import node_facts, noderun, pod_messages
from runtime.agent.pod.noderun import NodeRun
from runtime.agent.pod.supervisor_settings import Settings
from runtime.errors import RunError
from runtime.rpc.calls import AgentEnd
from runtime.rpc.secure import Server, read_key

ALONE_SECONDS = 15.0
LEAVE_SECONDS = 10.0  # an agent notices after 10.5 s at the latest, and its programs end within 6
CHECK_SECONDS = 0.5
SAYINGS = 100  # kept for a coordinator that is away


class Supervisor:
    """Made within a running event loop. `run` does everything, until SIGTERM or SIGINT."""

    def __init__(
        self, settings: Settings, log: IO[bytes], alone_seconds: float = ALONE_SECONDS
    ) -> None:
        self._settings = settings
        self._log = log
        self._alone_seconds = alone_seconds
        self._key = read_key(str(settings.key))
        self._coordinator = AgentEnd(self._answer, SAYINGS)
        self._server = Server(self._key, self._coordinator.welcome)
        self._alone_since = time.monotonic()
        self._run: NodeRun | None = None
        self._left = settings.ports.exists()  # of a container that was killed
        self._changing = asyncio.Lock()  # one thing at a time begins or ends
        self._over = asyncio.Event()
        self._handlers = {
            "facts": self._facts,
            "begin": self._begin,
            "kill": self._kill,
            "end": self._end,
        }

    async def run(self) -> None:
        """RunError if it cannot begin."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)
        await self._server.listen(self._settings.address, self._settings.port)
        watch = loop.create_task(self._watch())
        watch.add_done_callback(lambda _: self._over.set())
        await self._over.wait()
        watch.cancel()
        await asyncio.wait({watch})
        left = await self._end_run()
        if left:
            self._tell(f"at the end something is left: {left}")
        await self._server.close()
        if not watch.cancelled():
            watch.result()

    # -- the coordinator ----------------------------------------------------------------------

    async def _answer(self, request: dict[str, Any], _at_ns: int) -> Mapping[str, object]:
        what = request.get("do")
        handler = self._handlers.get(what) if isinstance(what, str) else None
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            raise RunError(f"{what!r:.40} is nothing to do", f"there is: {known}")
        async with self._changing:
            return await handler(request)

    def _say(self, said: pod_messages.Message) -> None:
        """To the coordinator, or kept until one is there; to the log in any case."""
        message = pod_messages.write(said)
        self._tell(f"says {message}")
        self._coordinator.say(message)

    # -- requests -----------------------------------------------------------------------------

    async def _facts(self, _request: Mapping[str, Any]) -> Mapping[str, object]:
        here = self._settings
        running = self._run is not None
        found = await node_facts.find(here.name, here.digest, self._log, running=running)
        return asdict(found)

    async def _begin(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        wanted = pod_messages.beginning(request)
        if self._run is not None:
            raise RunError(f"a run is on at {self._settings.name} already", "end it first")
        if not wanted.resume and (left := await self._finish()):
            raise RunError(f"something of an earlier run is left at {self._settings.name}: {left}")
        self._run = NodeRun(self._settings, self._key, wanted, self._say, self._log)
        self._left = True  # until the run has ended well
        return asdict(self._run.begun)

    async def _kill(self, _request: Mapping[str, Any]) -> Mapping[str, object]:
        if self._run is None:
            raise RunError(f"no run is on at {self._settings.name}")
        self._run.kill_agent()
        return {}

    async def _end(self, _request: Mapping[str, Any]) -> Mapping[str, object]:
        return {"left": await self._finish()}

    async def _finish(self) -> str:
        """Ends what is on, and removes what is left of runs that were killed."""
        run, self._run = self._run, None
        self._coordinator.forget()
        if run is not None:
            left = await run.end()
        else:
            left = await noderun.remove(self._settings.ports, self._log) if self._left else ""
        self._left = bool(left)
        return left

    async def _end_run(self) -> str:
        async with self._changing:
            return await self._finish()

    # -- without a coordinator ----------------------------------------------------------------

    async def _watch(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            now = time.monotonic()
            if self._changing.locked() or self._coordinator.is_connected:
                self._alone_since = now
            elif self._run is not None or self._left:
                if now - self._alone_since > self._patience():
                    await self._abandon()
            else:
                self._take_up_key()

    def _patience(self) -> float:
        """An agent that is killed leaves its programs running."""
        waits = self._run is not None and not self._run.agent_ended
        return self._alone_seconds + (LEAVE_SECONDS if waits else 0.0)

    async def _abandon(self) -> None:
        seconds = f"{self._alone_seconds:g} s"
        self._tell(f"no coordinator has been here for {seconds}: what is of its run is removed")
        left = await self._end_run()
        if left:
            self._tell(f"something is left, and tried again later: {left}")
        self._alone_since = time.monotonic()

    def _take_up_key(self) -> None:
        """A run of its own has a key of its own. One that is just being replaced is read later."""
        try:
            key = read_key(str(self._settings.key))
        except RunError:
            return
        if key != self._key:
            self._key = key
            self._server.use(key)

    def _tell(self, text: str) -> None:
        self._log.write(f"supervisor: {text}\n".encode())
        self._log.flush()


async def supervise(settings: Settings) -> None:
    """Until the process is told to end. RunError."""
    await Supervisor(settings, sys.stderr.buffer).run()
