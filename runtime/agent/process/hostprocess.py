"""The processes of one host: its datapath and its agent.

Both are children of whoever keeps them, in the host's network namespace: of the driver for a local
host, of the supervisor in a pod (runtime.agent.pod). The keeper has a duplicate of the agent's end
of the datapath's socket, so that the datapath outlives an agent and the next agent takes it up
again. Both die with their keeper.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from runtime.agent.process import commandline
from runtime.agent.process.commandline import AgentOptions
from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory
from runtime.system import process_limits
from runtime.system.procs import status_text

END_SECONDS = 5.0


class Site(Protocol):
    """Where they run."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str:
        """Where the agent listens."""

    @property
    def net(self) -> int:
        """A descriptor of the network namespace."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What a host runs, and how it is started there."""

    entry: str  # path of tstorm-ns
    datapath: tuple[str, ...]  # argv
    plan: Path
    key: bytes
    log_name: str  # where the user finds what they say on stderr
    faults: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by the host's name
    wait_seconds: int = commandline.WAIT_SECONDS  # see AgentOptions
    ports: Path | None = None  # see AgentOptions
    captures: Path | None = None  # see AgentOptions; the same folder as `pipes`
    turns_fd: int = -1  # see AgentOptions
    pipes: HeldDirectory | None = None  # where the datapath finds pipes for packets


class HostProcess:
    """A child in a host's namespace. `ended` is done, with the status, when it has ended."""

    def __init__(
        self,
        argv: Sequence[str],
        host: Site,
        entry: str,
        descriptors: Sequence[int],
        stdio: int | IO[bytes],
        log: IO[bytes],
    ) -> None:
        inside = [entry, "in", "--net", str(host.net), "--parent", str(os.getpid()), "--", *argv]
        self._process = process_limits.start(
            f"a process of {host.name}",
            inside,
            stdin=stdio,
            stdout=stdio,
            stderr=log,
            pass_fds=[host.net, *descriptors],
        )
        self.pid = self._process.pid
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._reap)

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.ended.set_result(self._process.wait())

    def kill(self) -> None:
        if not self.ended.done():
            with suppress(ProcessLookupError):  # dead, and the loop has not told us yet
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def end(self, seconds: float = END_SECONDS) -> int:
        """Waits for its end, which it knows of; kills it if it does not come."""
        done, _ = await asyncio.wait({self.ended}, timeout=seconds)
        if not done:
            self.kill()
        return await self.ended


class HostProcesses:
    """A host's `datapath`, and its `agent`: the one that was started last. RunError."""

    def __init__(
        self, host: Site, programs: Programs, log: IO[bytes], *, resume: bool = False
    ) -> None:
        self.host = host
        self._programs = programs
        self._log = log
        self._agents_end, theirs = socket.socketpair()
        with theirs:
            pipes = () if programs.pipes is None else (programs.pipes.descriptor,)
            self.datapath = HostProcess(
                programs.datapath, host, programs.entry, pipes, theirs.fileno(), log
            )
        self.agent = self._make_agent(resume=resume)

    def restart_agent(self) -> None:
        """Another one takes the place of one that has ended."""
        self.agent = self._make_agent(resume=True)

    def _make_agent(self, *, resume: bool) -> HostProcess:
        key, writable = os.pipe2(os.O_CLOEXEC)
        try:
            os.write(writable, self._programs.key)
        finally:
            os.close(writable)
        address, end = self.host.address, self._agents_end.fileno()
        wanted = AgentOptions(
            plan=self._programs.plan,
            listen=(address, commandline.CONTROL_PORT),
            metadata=(address, commandline.METADATA_PORT),
            key=f"fd:{key}",
            datapath_fd=end,
            resume=resume,
            wait_seconds=self._programs.wait_seconds,
            ports=self._programs.ports,
            captures=self._programs.captures,
            turns_fd=self._programs.turns_fd,
            **self._programs.faults.get(self.host.name, {}),
        )
        try:
            return HostProcess(
                commandline.argv(wanted),
                self.host,
                self._programs.entry,
                (key, end, *([wanted.turns_fd] if wanted.turns_fd >= 0 else [])),
                subprocess.DEVNULL,
                self._log,
            )
        finally:
            os.close(key)

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def pids(self) -> list[int]:
        """Of those that were started last; they may have ended."""
        return [self.datapath.pid, self.agent.pid]

    def ended(self, *, agent: bool = True) -> RunError | None:
        """Which of them has ended, the datapath first; None if none has."""
        for what, process in (("datapath", self.datapath), ("agent", self.agent)):
            if process.ended.done() and (agent or process is self.datapath):
                how = status_text(process.ended.result())
                return RunError(
                    f"the {what} of {self.host.name} ended with {how}",
                    f"its last words are in {self._programs.log_name}",
                )
        return None

    async def end(self, *, told: bool) -> RunError | None:
        """An agent that was not told to stop is killed. The datapath reads its end of file when
        nobody has the other end any more. Returns what is wrong with how the datapath ended."""
        if not told:
            self.agent.kill()
        await self.agent.end()
        self._agents_end.close()
        return self.ended(agent=False) if await self.datapath.end() else None
