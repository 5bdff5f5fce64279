"""A command of `tstorm exec` in an instance of a run in virtual time, on the guest's side.

from who asked   {"ask": "exec", "instance", "argv", "environment", "terminal": [ROWS, COLUMNS]
                 or null}, then {"in": BASE64}, {"eof": true}, {"size": [ROWS, COLUMNS]},
                 {"signal": NUMBER}
to who asked     {"started": true}, {"out": BASE64}, {"err": BASE64} and at last
                 {"status": N}, or a refusal instead of all that
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from runtime.backend.local import enter_instance
from runtime.errors import RunError
from runtime.system import process_limits
from runtime.virtual.line import PART_BYTES, PARTS, CallMessage

PIPE_BYTES = 1 << 16  # what a command may have left behind when it ended
TerminalSize = tuple[int, int]  # rows and columns
_Tell = Callable[[Mapping[str, object]], None]


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """`terminal`: its rows and columns."""

    instance: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    terminal: TerminalSize | None = None


class Execution:
    """One command. `tell` passes on what it says, `confirm` that it was given some input."""

    def __init__(self, keeper: str, tell: _Tell, confirm: Callable[[], None]) -> None:
        self._keeper = keeper
        self._tell = tell
        self._confirm = confirm
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()  # b"" is its end
        self._room = asyncio.Semaphore(PARTS)  # for output on its way
        self._terminal = -1  # the side of it that is ours; -1: it has none
        self._process: subprocess.Popen[bytes] | None = None
        self._unwanted = False  # who asked has gone

    def hear(self, message: CallMessage) -> None:
        if message.over:
            self.kill()
        elif message.took:
            self._room.release()
        else:
            self._take(message.say or {})

    def _take(self, said: Mapping[str, Any]) -> None:
        if "in" in said:
            self._typed.put_nowait(base64.b64decode(said["in"]))
        elif said.get("eof"):
            self._typed.put_nowait(b"")
        elif "size" in said and self._terminal >= 0:
            _resize(self._terminal, said["size"])
        elif "signal" in said and self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, int(said["signal"]))

    def kill(self) -> None:
        self._unwanted = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    async def run(self, request: ExecRequest, entry: tuple[Mapping[str, Any], int]) -> None:
        """Until it has ended. `entry`: how to enter the instance, and a pidfd, which is closed.
        RunError if it cannot be started."""
        place, pidfd = entry
        terminal = ("--terminal",) if request.terminal else ()
        command = enter_instance.command(self._keeper, place, pidfd, request.argv, *terminal)
        environment = {**place["environment"], **request.environment}
        try:
            ends = self._open(request.terminal)
        except OSError as error:
            os.close(pidfd)
            raise RunError(f"the guest has no terminal or pipe left: {error.strerror}") from error
        try:
            self._process = self._start(command, environment, ends.theirs, pidfd)
            if self._unwanted:
                return
            self._tell({"started": True})
            await self._follow(self._process, ends)
        finally:
            self.kill()
            self._terminal = -1
            ends.close()

    def _start(
        self, command: list[str], environment: dict[str, str], theirs: list[int], pidfd: int
    ) -> subprocess.Popen[bytes]:
        stdin, stdout, stderr = theirs
        try:
            return process_limits.start(
                "tstorm-ns",
                command,
                env=environment,
                pass_fds=[pidfd],
                start_new_session=True,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        finally:
            for descriptor in {*theirs, pidfd}:
                os.close(descriptor)

    def _open(self, size: TerminalSize | None) -> _Ends:
        if size is None:
            pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
            (their_in, ours_in), (ours_out, their_out), (ours_err, their_err) = pipes
            outputs = {"out": ours_out, "err": ours_err}
            return _Ends([their_in, their_out, their_err], ours_in, outputs)
        ours, theirs = pty.openpty()
        self._terminal = ours
        _resize(ours, size)
        return _Ends([theirs] * 3, os.dup(ours), {"out": ours})

    async def _follow(self, process: subprocess.Popen[bytes], ends: _Ends) -> None:
        feeding = asyncio.ensure_future(self._feed(ends))
        passing = [
            asyncio.ensure_future(self._pass_on(name, end)) for name, end in ends.outputs.items()
        ]
        try:
            await enter_instance.ended(process)
        finally:
            for task in (feeding, *passing):
                task.cancel()
            await asyncio.gather(feeding, *passing, return_exceptions=True)
        code = process.wait()
        for name, end in ends.outputs.items():
            await self._pass_rest(name, end)
        self._tell({"status": enter_instance.shell_status(code)})

    async def _feed(self, ends: _Ends) -> None:
        """What is typed, as the command takes it."""
        while data := await self._typed.get():
            with suppress(OSError):  # it takes none any more
                while data:
                    await _ready(ends.input, writing=True)
                    data = data[os.write(ends.input, data) :]
            self._confirm()
        if self._terminal < 0:  # a terminal has no end: ^D is a key
            ends.close_input()

    async def _pass_on(self, name: str, end: int) -> None:
        """Until nobody can write any more."""
        while True:
            await self._room.acquire()
            try:
                await _ready(end)
            except asyncio.CancelledError:
                self._room.release()
                raise
            if not self._pass_part(name, end):
                self._room.release()
                return

    async def _pass_rest(self, name: str, end: int) -> None:
        """What it had said before it ended; what it has left running may go on for ever."""
        passed = 0
        while passed < PIPE_BYTES and not self._unwanted:
            await self._room.acquire()
            part = self._pass_part(name, end)
            if not part:
                self._room.release()
                return
            passed += part

    def _pass_part(self, name: str, end: int) -> int:
        """How many bytes; 0 if there are none."""
        try:
            data = os.read(end, PART_BYTES)
        except OSError:  # none, or a terminal that nobody has open any more
            return 0
        if data:
            self._tell({name: base64.b64encode(data).decode()})
        return len(data)


class _Ends:
    """Of the pipes or the terminal of a command."""

    def __init__(self, theirs: list[int], input_end: int, outputs: dict[str, int]) -> None:
        self.theirs = theirs
        self.input = input_end
        self.outputs = outputs
        for end in (input_end, *outputs.values()):
            os.set_blocking(end, False)

    def close_input(self) -> None:
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    def close(self) -> None:
        self.close_input()
        for end in self.outputs.values():
            os.close(end)
        self.outputs.clear()


async def _ready(descriptor: int, *, writing: bool = False) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    )
    add(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(descriptor)


def _resize(terminal: int, size: Any) -> None:
    rows, columns = (max(0, min(int(number), 65535)) for number in size)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
