"""What is done inside an instance beside its program: commands of expectations, setup, readiness
checks, and lines of the run's own in its log.

Commands of expectations are started by the instance's first process as its program is, and meet
what that meets. Setup and readiness checks enter as `tstorm exec` does: they have the program's
user, directory, variables and network, but not its limits, and no faults of its disk. Whatever ends
the instance ends all of these.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from runtime.backend.instance import (
    KILLED_UNHEARD,
    NOT_HEARD,
    FolderEntry,
    Incarnation,
    Ran,
)
from runtime.backend.local import enter_instance
from runtime.backend.local.instances import LocalInstance
from runtime.backend.local.nursery import KILLED_STATUS, LocalIncarnation, Program, own
from runtime.errors import RunError
from runtime.rundir import held_directory
from runtime.rundir.logmarks import line
from runtime.system import namespaces, process_limits

OUT_OF_MEMORY = "the instance wanted more memory than its mem="
CONNECT_SECONDS = 1.0  # within an instance an answer takes no time, or does not come
_SAID_BYTES = 4096
_SAID_LINES = 10


class InstanceCommands:
    """See runtime.backend.instance (ServiceCommands). `place`: how to enter the instance
    (enter_instance.command), with its `environment`; `resolved`: see ServiceCommands; `keeper`:
    path of tstorm-ns; `wanted_memory`: whether the kernel has just killed something of it for that.
    """

    def __init__(
        self,
        instance: LocalInstance,
        setup: tuple[str, ...],
        ready: tuple[str, ...],
        ready_timeout_ns: int,
        resolved: Callable[[Sequence[str]], tuple[str, ...]],
        keeper: str,
        place: Callable[[], Mapping[str, Any]],
        log: Path,
        wanted_memory: Callable[[], bool],
    ) -> None:
        self.setup = resolved(setup)
        self.ready = resolved(ready)
        self._resolved = resolved
        self.ready_timeout_ns = ready_timeout_ns
        self._instance = instance
        self._keeper = keeper
        self._place = place
        self._log = log
        self._wanted_memory = wanted_memory

    def resolved(self, argv: Sequence[str]) -> tuple[str, ...]:
        return self._resolved(argv)

    async def run(
        self, incarnation: Incarnation, argv: Sequence[str], *, seconds: float | None = None
    ) -> Ran:
        output, status = os.memfd_create("output", os.MFD_CLOEXEC), None
        try:
            with suppress(TimeoutError):
                status = await asyncio.wait_for(self._command(incarnation, argv, output), seconds)
            return Ran(status, _last_lines(output), self._reason(status))
        finally:
            os.close(output)

    def _reason(self, status: int | None) -> str:
        if status == KILLED_STATUS and self._wanted_memory():
            return OUT_OF_MEMORY
        unheard = status == 128 + signal.SIGSYS and self._instance.heard != NOT_HEARD
        return KILLED_UNHEARD if unheard else ""

    async def _command(self, incarnation: Incarnation, argv: Sequence[str], output: int) -> int:
        found = own(incarnation)
        await self._instance.ready_for_command(found)
        if not found.alive():
            raise RunError("the instance is dead")
        place = self._place()
        directory = Path(place["directory"])
        program = Program(tuple(argv), place["environment"], directory, self._log)
        try:
            return await found.run(program, output)
        except RunError as error:
            raise RunError(f"{argv[0]}: {error.message}") from error

    async def run_beside(
        self,
        incarnation: Incarnation,
        argv: Sequence[str],
        *,
        logged: bool,
        seconds: float | None = None,
    ) -> Ran:
        output = self._open_log() if logged else os.memfd_create("output", os.MFD_CLOEXEC)
        try:
            process = self._start(own(incarnation), argv, output)
            try:
                status = await asyncio.wait_for(_status(process), seconds)
            except TimeoutError:
                status = None
            return Ran(status, () if logged else _last_lines(output))
        finally:
            os.close(output)

    def listed(self, incarnation: Incarnation, folder: str, /) -> tuple[FolderEntry, ...]:
        found = own(incarnation)
        if not found.alive():
            raise RunError("the instance is dead")
        try:
            return namespaces.in_thread(partial(_entries, found.pidfd, folder))
        except OSError as error:
            raise RunError(f"{folder} cannot be read: {error.strerror}") from error

    def _start(
        self, incarnation: LocalIncarnation, argv: Sequence[str], output: int
    ) -> subprocess.Popen[bytes]:
        if not incarnation.alive():
            raise RunError("the instance is dead")
        place = self._place()
        return process_limits.start(
            "tstorm-ns",
            enter_instance.command(self._keeper, place, incarnation.pidfd, argv),
            env=place["environment"],
            pass_fds=[incarnation.pidfd],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    async def connect(self, incarnation: Incarnation, port: int) -> str:
        """By IPv4, else by IPv6: a server may listen on one of them only."""
        found, loop = own(incarnation), asyncio.get_running_loop()
        reasons = []
        for family, address in self._addresses():
            if not found.alive():
                return "the instance is dead"
            try:
                with namespaces.in_thread(partial(_socket, found.pidfd, family)) as connection:
                    connection.setblocking(False)
                    attempt = loop.sock_connect(connection, (address, port))
                    await asyncio.wait_for(attempt, CONNECT_SECONDS)
                return ""
            except TimeoutError:
                reasons.append(f"{address} port {port} does not answer")
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                reasons.append(f"{address} port {port}: {reason}")
        return reasons[0] if reasons else "the instance has no address"

    def _addresses(self) -> list[tuple[socket.AddressFamily, str]]:
        node = self._instance.node
        found = [(socket.AF_INET, node.ipv4), (socket.AF_INET6, node.ipv6)]
        return [(family, address) for family, address in found if address]

    def mark(self, text: str) -> None:
        """Nothing if the log cannot be written: then the program says so, which is told."""
        with suppress(OSError, RunError):
            held = held_directory.HeldDirectory.hold(self._log.parent)
            begun = held.has(self._log.name) and held.tail(self._log.name, 1) not in (b"", b"\n")
            log = held.append_to(self._log.name)
            try:
                held_directory.write_all(log, line(text, cut=begun))
            finally:
                os.close(log)

    def _open_log(self) -> int:
        try:
            return held_directory.append(self._log)
        except OSError as error:
            raise RunError(f"cannot write {self._log}: {error.strerror}") from error


def _socket(pidfd: int, family: socket.AddressFamily) -> socket.socket:
    """In the network namespace of that process; this thread is in it afterwards."""
    namespaces.enter_network(pidfd)
    return socket.socket(family, socket.SOCK_STREAM)


def _entries(pidfd: int, folder: str) -> tuple[FolderEntry, ...]:
    """Links are followed; one that leads nowhere cannot be executed."""
    namespaces.enter_files(pidfd)
    found = []
    with os.scandir(folder) as entries:
        for one in sorted(entries, key=lambda entry: entry.name):
            try:
                mode = one.stat().st_mode
            except OSError:
                mode = 0
            runs = stat.S_ISREG(mode) and bool(mode & 0o111)
            found.append(FolderEntry(one.name, stat.S_ISDIR(mode), runs))
    return tuple(found)


async def _status(process: subprocess.Popen[bytes]) -> int:
    """With which it has ended. Whoever gives up waiting has it killed, with what it has begun."""
    over = False
    try:
        await enter_instance.ended(process)
        over = True
    finally:
        if not over:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads a session
        code = process.wait()
    return enter_instance.shell_status(code)


def _last_lines(file: int) -> tuple[str, ...]:
    """Of a command's output: the last ones that are not empty."""
    end = os.lseek(file, 0, os.SEEK_END)
    data = os.pread(file, _SAID_BYTES, max(end - _SAID_BYTES, 0))
    lines = [one for one in data.decode(errors="replace").splitlines() if one.strip()]
    return tuple(one.strip()[:200] for one in lines[-_SAID_LINES:])
