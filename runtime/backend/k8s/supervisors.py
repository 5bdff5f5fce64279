"""The supervisors of a run's agent pods, one on each node with instances (docs/supervisor.md), and
through them each node's datapath and agent.

A supervisor starts an agent that has ended again by itself. A pod whose container was started again
is begun again, in the middle of the run: its agent resumes, with a new datapath, and attaches the
instances that are there.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Any

from runtime.agent.pod import pod_messages
from runtime.agent.pod.pod_messages import (
    AGENT,
    DATAPATH,
    SUPERVISOR_PORT,
    NodeFacts,
)
from runtime.errors import RunError
from runtime.rpc import secure
from runtime.rpc.calls import Asker, RefusedError
from runtime.rpc.secure import Channel, ChannelError
from runtime.rundir.runfiles import AGENTS
from runtime.system.procs import status_text

RETRY_SECONDS = 0.2
ANSWER_SECONDS = 30.0
BEGIN_SECONDS = 60.0
END_SECONDS = 20.0
BACK_SECONDS = 60.0  # for a container to be started again, and to unpack the plan
KILLED = -int(signal.SIGKILL)

Notice = Callable[[str], None]
OnFatal = Callable[[RunError], None]


class Remote:
    """An agent or a datapath on a node. `ended` is done, with its status, when it is over."""

    def __init__(self, kill: Callable[[], None]) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._kill = kill

    def kill(self) -> None:
        if not self.ended.done():
            self._kill()

    def over(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)


class NodeParts:
    """What runs on one node (runtime.backend.hosts.hosts: HostParts)."""

    def __init__(self, name: str, address: str, key: bytes, notice: Notice) -> None:
        self.name = name
        self.address = address
        self.port = SUPERVISOR_PORT
        self.pids: list[int] = []  # none of them is this machine's
        self.agent = Remote(self._kill_agent)
        self.datapath = Remote(lambda: None)
        self.on_fatal: OnFatal = lambda _error: None
        self._key = key
        self._notice = notice
        self._asker: Asker | None = None
        self._away = ""  # why there is no connection, once there was one
        self._identity = ""
        self._begun = ""  # which datapath it was told to start
        self._share = 1  # of the machine's processors: one of so many
        self._ending = False
        self._early: int | None = None  # an agent ended before its Remote was made
        self._kill_wanted = False
        self._coming_back = False
        self._beside: set[asyncio.Task[None]] = set()

    # -- the connection -------------------------------------------------------------------------

    async def connect(self, seconds: float) -> bool:
        """Whether it is another process than before. RunError that names the node."""
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            found = await secure.connect_by(
                deadline, self.address, self.port, self._key, RETRY_SECONDS
            )
        except ChannelError as error:
            message = f"the agent pod of {self.name} does not answer: {error.message}"
            raise RunError(message, error.remedy) from error
        other = found.identity != self._identity
        self._identity, self._away = found.identity, ""
        asker = self._asker = Asker(found.channel, self._said)
        found.channel.closed.add_done_callback(lambda done: self._lost(asker, done.result()))
        return other

    async def _ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        asker = self._asker
        if asker is None:
            raise RunError(f"the agent pod of {self.name} is lost")
        what = request.get("do")
        try:
            return (await asker.ask(request, seconds)).value
        except RefusedError as error:
            message = f"the agent pod of {self.name} cannot {what}: {error.message}"
            raise RefusedError(message, error.remedy) from error
        except ChannelError as error:
            raise RunError(f"the agent pod of {self.name} is lost: {error.message}") from error

    def _said(self, message: dict[str, Any]) -> None:
        try:
            said = pod_messages.read(message)
        except RunError as error:
            self._channel().give_up(error.message, "bad_messages")
            return
        match said:
            case pod_messages.SupervisorNotice():
                self._notice(f"{self.name}: {said.text}")
            case pod_messages.PartEnded(what=pod_messages.DATAPATH):
                self.datapath.over(said.status)
            case pod_messages.PartEnded():
                self._agent_ended(said.status, again=said.again)

    def _channel(self) -> Channel:
        assert self._asker is not None  # who speaks is connected
        return self._asker.channel

    def _agent_ended(self, status: int, *, again: bool) -> None:
        if self.agent.ended.done() or not again:
            self._early = status
        self.agent.over(status)

    def _lost(self, asker: Asker, reason: str) -> None:
        if asker is not self._asker:
            return
        self._asker, self._away = None, reason
        if not self._ending and self._begun:
            self._coming_back = True
            self._do(self._come_back(reason))

    async def _come_back(self, reason: str) -> None:
        """A container that was started again has lost its agent and its datapath. What is to be
        killed meanwhile is the agent before: a `kill` behind `begin` would meet the new one."""
        try:
            other = await self.connect(BACK_SECONDS)
            if other:
                await self._begin(resume=True)
            self._coming_back = False
            if other:
                self._kill_wanted = False
                self._agent_ended(KILLED, again=True)
            elif self._kill_wanted:
                self._kill_agent()
        except RunError as error:
            self.on_fatal(
                RunError(
                    f"the agent pod of {self.name} was lost ({reason}) and is not back:"
                    f" {error.message}",
                    error.remedy,
                )
            )

    # -- what is asked of it --------------------------------------------------------------------

    async def facts(self) -> NodeFacts:
        """RunError, also for facts that are none."""
        return pod_messages.facts(await self._ask({"do": "facts"}, ANSWER_SECONDS), self.name)

    async def begin(self, datapath: str, share: int) -> None:
        """Starts datapath and agent. `share`: so many nodes of the run are on one machine.
        RunError."""
        self._begun, self._share = datapath, share
        await self._begin(resume=False)

    async def _begin(self, *, resume: bool) -> None:
        request = pod_messages.StartRequest(self._begun, resume, self._share).to_record()
        pod_messages.begun(await self._ask(request, BEGIN_SECONDS), self.name)

    def restart_agent(self) -> None:
        """The supervisor does it by itself."""
        self.agent = Remote(self._kill_agent)
        early, self._early = self._early, None
        if early is not None:
            self.agent.over(early)

    def _kill_agent(self) -> None:
        self._kill_wanted = True
        if self._asker is not None and not self._coming_back:
            self._do(self._kill())

    async def _kill(self) -> None:
        try:
            await self._ask({"do": "kill"}, ANSWER_SECONDS)
            self._kill_wanted = False
        except RunError as error:  # lost meanwhile: whoever comes back is asked again
            self._notice(error.message)

    def ended(self, *, agent: bool = True) -> RunError | None:
        for what, part in ((DATAPATH, self.datapath), (AGENT, self.agent)):
            if part.ended.done() and (agent or part is self.datapath):
                how = status_text(part.ended.result())
                return RunError(
                    f"the {what} of {self.name} ended with {how}",
                    f"its last words are in {AGENTS}/{self.name}.log of the run directory",
                )
        return None

    async def end(self) -> RunError | None:
        """Everything of the run on this node. Returns why it is not known to have gone well there:
        the datapath had ended by itself, or the node was away."""
        self._ending = True
        fault = self.ended(agent=False)
        for task in self._beside:
            task.cancel()
        if self._asker is None:
            return fault or (self._is_away(self._away) if self._begun else None)
        try:
            left = pod_messages.left(await self._ask({"do": "end"}, END_SECONDS), self.name)
            if left:
                self._notice(f"{self.name}: not everything was removed: {left}")
        except RefusedError as error:  # it was there, and said why
            self._notice(error.message)
        except RunError as error:
            fault = fault or self._is_away(error.message)
        if self._asker is not None:
            await self._asker.close()
        return fault

    def _is_away(self, reason: str) -> RunError:
        return RunError(
            f"{self.name} was away at the end of the run: {reason}",
            "nobody knows what its programs and its network did: look at the node, and run again",
        )

    def _do(self, action: Any) -> None:
        task = asyncio.get_running_loop().create_task(action)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
