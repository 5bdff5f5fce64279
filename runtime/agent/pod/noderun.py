"""What a run has on a node: its datapath and its agent, from `begin` to `end`.

An agent that dies is started again with --resume as long as its datapath lives: once, and again
when it has been up for STEADY_NS since. One that was told to stop (status 0) or has lost its
coordinator and closed the network (status 4) is not, and neither is one that says that its datapath
has ended (status 5): it may know that before we see the datapath's end.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from pathlib import Path
from typing import IO

from runtime.agent.pod.node_facts import NOWHERE
from runtime.agent.pod.pod_messages import (
    AGENT,
    DATAPATH,
    USER,
    PartEnded,
    PartStarted,
    Say,
    StartReply,
    StartRequest,
    SupervisorNotice,
)
from runtime.agent.pod.supervisor_settings import Settings
from runtime.agent.process import portlog
from runtime.agent.process.agent import ENDED, LOST, WITHOUT_DATAPATH
from runtime.agent.process.hostprocess import HostProcess, HostProcesses, Programs
from runtime.datapath import capture_pipe, pktd
from runtime.datapath.pktd import Engine, EngineError
from runtime.errors import RunError, unwritten
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import AGENTS
from runtime.system import compiled_programs
from runtime.system.realtime.rt_throttle import prefer

# Removes what a killed datapath has left at interfaces: filters of pktd, the tree of tcald.
#
# A datapath takes over what another one of its kind has left when it attaches, and removes it
# when it detaches (docs/pktd.md, docs/tcal.md). So a new one attaches once more to every
# interface that the agent has entered in its file, and ends.

PROGRAMS = {"user": "pktd", "kernel": "tcald"}
_GONE = os.strerror(errno.ENODEV)


async def remove(file: Path, log: IO[bytes]) -> str:
    """What could not be removed, and why; '' if nothing is left, and then no file either."""
    kind, entered = portlog.read(file)
    found = [(place, one.name) for one in entered if (place := portlog.find(one))]
    if found:
        try:
            left = await _attach_once(PROGRAMS[kind], found, log)
        except RunError as error:
            left = str(error)
        if left:
            return left
    file.unlink(missing_ok=True)
    return ""


async def _attach_once(program: str, ports: list[tuple[str, str]], log: IO[bytes]) -> str:
    process = await pktd.start([str(compiled_programs.find(program))], log, program)
    left = []
    try:
        for number, (netns, name) in enumerate(ports):
            left.append(await _attached(process.engine, number, netns, name))
    finally:
        status = await process.end()
    if status:
        left.append(f"{program} ended with status {status}")
    return "; ".join(filter(None, left))


async def _attached(engine: Engine, number: int, netns: str, name: str) -> str:
    """Why it could not be, '' if it is or if the interface is gone."""
    try:
        await engine.call(f"attach {number} netns={netns} if={name} prefix={NOWHERE}")
    except EngineError as error:
        return "" if error.message.endswith(_GONE) else error.message
    return ""


STEADY_NS = 10_000_000_000


class NodeRun:
    """Both processes run once it is made. RunError."""

    def __init__(
        self, settings: Settings, key: bytes, wanted: StartRequest, say: Say, log: IO[bytes]
    ) -> None:
        self._file, self._log, self._say = settings.ports, log, say
        self._captures = settings.captures
        self._restarted_ns = 0
        self._ending = False
        if not wanted.resume:
            portlog.begin(settings.ports, wanted.datapath)
        pipes = _new_folder(settings.captures) if wanted.datapath == USER else None
        self._processes = HostProcesses(
            settings,
            Programs(
                entry=str(compiled_programs.find("tstorm-ns")),
                datapath=_argv(wanted, pipes),
                plan=settings.plan,
                key=key,
                log_name=f"{AGENTS}/{settings.name}.log of the run directory",
                wait_seconds=0,
                ports=settings.ports,
                captures=None if pipes is None else settings.captures,
                pipes=pipes,
            ),
            log,
            resume=wanted.resume,
        )
        prefer(*self._processes.pids)
        self._processes.datapath.ended.add_done_callback(self._datapath_ended)
        self._watch(self._processes.agent)

    @property
    def begun(self) -> StartReply:
        return StartReply(self._processes.agent.pid, self._processes.datapath.pid)

    # -- ends that nobody asked for -----------------------------------------------------------

    def _datapath_ended(self, ended: asyncio.Future[int]) -> None:
        if not self._ending:
            self._tell_end(DATAPATH, ended.result(), again=False)

    def _watch(self, agent: HostProcess) -> None:
        agent.ended.add_done_callback(lambda ended: self._agent_ended(ended.result()))

    def _agent_ended(self, status: int) -> None:
        if self._ending:
            return
        now = time.monotonic_ns()
        again = (
            status not in (ENDED, LOST, WITHOUT_DATAPATH)
            and not self._processes.datapath.ended.done()
            and (not self._restarted_ns or now - self._restarted_ns >= STEADY_NS)
        )
        self._tell_end(AGENT, status, again=again)
        if again:
            self._restarted_ns = now
            self._restart()

    def _restart(self) -> None:
        try:
            self._processes.restart_agent()
        except RunError as error:
            self._say(SupervisorNotice(f"the agent cannot be started again: {error}"))
            return
        agent = self._processes.agent
        prefer(agent.pid)
        self._watch(agent)
        self._say(PartStarted(AGENT, agent.pid))

    def _tell_end(self, what: str, status: int, *, again: bool) -> None:
        self._say(PartEnded(what, status, again))

    @property
    def agent_ended(self) -> bool:
        return self._processes.agent.ended.done()

    # -- what is asked for --------------------------------------------------------------------

    def kill_agent(self) -> None:
        """What follows is as if it had died."""
        self._processes.agent.kill()

    async def end(self) -> str:
        """Ends both. Returns what of theirs could not be removed, '' if nothing is left."""
        self._ending = True
        agent = self._processes.agent
        stopped = agent.ended.done() and agent.ended.result() in (ENDED, LOST)
        fault = await self._processes.end(told=stopped)
        shutil.rmtree(self._captures, ignore_errors=True)
        if fault is None:
            self._file.unlink(missing_ok=True)
            return ""
        return await remove(self._file, self._log)


def _argv(wanted: StartRequest, pipes: HeldDirectory | None) -> tuple[str, ...]:
    """`pipes`: where the packet engine finds pipes for packets."""
    program = str(compiled_programs.find(PROGRAMS[wanted.datapath]))
    if pipes is None:
        return (program,)
    more = capture_pipe.arguments(pipes, live=True)
    return (program, "--cpu-share", str(wanted.share), *more)


def _new_folder(path: Path) -> HeldDirectory:
    """In the place of what a killed container has left. RunError."""
    shutil.rmtree(path, ignore_errors=True)
    try:
        path.mkdir(mode=0o700)
        return HeldDirectory.hold(path)
    except OSError as error:
        raise unwritten(error) from error
