"""Commands on hosts: over ssh, by a command of the user's, or here. Nothing outlives us there.

A command runs below a script of a few words, which is always the same: it waits at the same time
for the command's end and for the end of its own input, and in the second case ends the command. Its
input ends when we close it, when we are killed, and when the connection is lost and the host
notices; where it does not, timeout(1) there ends the command. The command's words are arguments of
that script; for ssh, whose far end reads one text with a shell, each word is quoted (shlex).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from runtime.errors import MachineError, RunError
from tstorm.measuring.measured_hosts import MeasuredHost

# 3 is the input; a command of a shell that goes on in the background gets /dev/null for 0.
_SCRIPT = (
    'exec 3<&0; "$@" 3<&- & child=$!;'
    ' { read -r line <&3; kill "$child"; } >/dev/null 2>&1 & watch=$!;'
    ' exec 3<&-; wait "$child"; status=$?; kill "$watch" 2>/dev/null; exit "$status"'
)
GRACE_S = 10  # for what is stopped to end, before we end the connection
LATE_S = 30  # beyond the time that a command may take there
MOST_BYTES = 32 << 20  # of one command's output
_NOT_FOUND = 127  # of a shell, env(1) and timeout(1)
_SSH_FAILED = 255  # of ssh(1) itself


class Said(NamedTuple):
    status: int
    out: bytes
    error: str


def bounded(argv: Sequence[str], seconds: float) -> list[str]:
    """Words that are ended there after so much time at the latest, and speak English."""
    return ["env", "LC_ALL=C", "timeout", "-k", "5", str(round(seconds)), *argv]


def words(host: MeasuredHost, argv: Sequence[str]) -> list[str]:
    """Of the process here that runs `argv` there."""
    there = ["sh", "-c", _SCRIPT, "tstorm-measure", *argv]
    return [*host.command, shlex.join(there)] if host.ssh else [*host.command, *there]


@asynccontextmanager
async def running(
    host: MeasuredHost, argv: Sequence[str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process here, while it goes on; after that nothing of it is left. RunError."""
    pipe = asyncio.subprocess.PIPE
    command = words(host, argv)
    try:
        # A session of its own: ^C in the terminal is for us alone.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        what = f"cannot run {command[0]} for {host.name}: {error.strerror}"
        raise MachineError(what, "install it here") from error
    try:
        yield process
    finally:
        await _end(process)


async def ran(host: MeasuredHost, argv: Sequence[str], seconds: float) -> Said:
    """To its end, which must come within so many seconds and some more. RunError."""
    try:
        async with asyncio.timeout(seconds + LATE_S), running(host, argv) as process:
            out, error = await asyncio.gather(_all(process.stdout), _all(process.stderr))
            return Said(await process.wait(), out, error.decode(errors="replace"))
    except TimeoutError:
        hint = f"try: {host.how} true"
        raise RunError(f"{host.name}: a command there does not end", hint) from None


def failure(host: MeasuredHost, what: str, said: Said) -> RunError:
    """A command that did not do what it was to do, in its own last words."""
    said_there = [one for one in said.error.splitlines() if one.strip()]
    lines = [one for one in said_there if not one.startswith("hint:")] or ["it says nothing"]
    if host.ssh and said.status == _SSH_FAILED:
        hint = f"this must work without a question: ssh {host.ssh} true"
        return RunError(f"{host.name} is not reached: {lines[-1]}", hint)
    if said.status == _NOT_FOUND:
        return MachineError(f"{host.name}: {lines[-1]}", "install it on that host")
    return RunError(f"{host.name}: {what} ended with {said.status}: {lines[-1]}")


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    found = bytearray()
    while piece := await stream.read(1 << 16):
        found += piece
        if len(found) > MOST_BYTES:
            raise RunError(f"a command says more than {MOST_BYTES:,} bytes")
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    """The end of its input is the request to end. What does not hear is killed, here at least."""
    try:
        if process.stdin is not None:
            process.stdin.close()
        drained = [asyncio.create_task(_drop(one)) for one in (process.stdout, process.stderr)]
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
        for task in drained:
            task.cancel()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


async def _drop(stream: asyncio.StreamReader | None) -> None:
    """What nobody wants any more must not stop who writes it."""
    while stream is not None and await stream.read(1 << 16):
        pass
