"""Client of pktd over its line protocol (docs/pktd.md): pipelined commands, events, end of file.

One instance speaks to one pktd process. Answers come in the order of
the commands. Lines that begin with `!` are events: whoever commits hears of it, others of the rest.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from runtime.errors import RunError, fail
from runtime.system import process_limits

PROTOCOL = 1
END_SECONDS = 5.0
ANSWER_SECONDS = 60.0  # a pktd that takes longer for one batch is stuck

BATCH_LINES = 2000  # sent before their answers are waited for
NOW = 0

OnApplied = Callable[[int], None]  # CLOCK_MONOTONIC ns when the commit took effect
Told = Callable[[str], None]  # what follows `!` in any other event


class EngineError(RunError):
    """pktd refused a command, or is gone."""


@dataclass(slots=True)
class EngineAnswer:
    """What followed `ok`, and the lines after it (see counts_lines)."""

    words: list[str]
    body: list[bytes] = field(default_factory=list)

    def values(self) -> dict[str, str]:
        """The KEY=VALUE words."""
        return dict(word.split("=", 1) for word in self.words if "=" in word)


@dataclass(slots=True)
class _Batch:
    """Commands sent together: one future for all of them, done with the last answer."""

    left: int
    future: asyncio.Future[list[EngineAnswer]]
    answers: list[EngineAnswer] = field(default_factory=list)
    error: EngineError | None = None  # the first refusal

    def take(self, answer: EngineAnswer | EngineError) -> None:
        if isinstance(answer, EngineAnswer):
            self.answers.append(answer)
        elif self.error is None:
            self.error = answer
        self.left -= 1
        if self.left or self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.answers)
        else:
            fail(self.future, self.error)


def counts_lines(command: str) -> bool:
    """Whether the answer to this command is `ok N` and N more lines."""
    return command in (
        *("stats links", "stats pairs", "stats ports", "digests"),
        *("usage", "usage all", "ports"),
    ) or command.startswith("report ")


def keeps_digests(facts: Mapping[str, str]) -> bool:
    """Whether a datapath that told this about itself answers `digests`."""
    return facts.get("digests", "off") != "off"


class Engine(asyncio.Protocol):
    """The connection. `closed` is done, with the reason, once pktd is gone. `name`: of what speaks
    this protocol there."""

    def __init__(self, on_told: Told | None = None, name: str = "pktd") -> None:
        self._name = name
        self._on_told = on_told
        self._waiting: dict[int, OnApplied | None] = {}  # commits that have not taken effect
        self._early: dict[int, int] = {}  # those that have, before the answer to `commit` was seen
        self._unanswered = 0  # commits
        self._awaited = b""  # the answer to `sync`: what comes before it was for somebody else
        self._pending: deque[tuple[str, _Batch]] = deque()
        self._rest = b""
        self._body_left = 0
        self._answer = EngineAnswer([])  # whose body comes
        self._transport: asyncio.Transport | None = None
        self.moved = asyncio.Event()  # set by `! moved`; who asks `await` clears it before
        self.moved.set()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._awaited and line != self._awaited:
                continue
            if self._body_left:
                self._take_body(line)
            elif line.startswith(b"!"):
                self._take_event(line.decode())
            else:
                self._take_answer(line.decode())

    def connection_lost(self, _reason: Exception | None) -> None:
        for command, batch in self._pending:
            batch.take(EngineError(f"{self._name} ended before it answered `{command[:80]}`"))
        self._pending.clear()
        if not self.closed.done():
            self.closed.set_result(None)

    def _take_body(self, line: bytes) -> None:
        self._answer.body.append(line)
        self._body_left -= 1
        if self._body_left == 0:
            self._deliver(self._answer)

    def _take_event(self, line: str) -> None:
        words = line.split()
        if words[:2] == ["!", "applied"] and len(words) == 5:
            self._applied(int(words[2]), int(words[4]))
        elif line == "! moved":
            self.moved.set()
        elif self._on_told is not None:
            self._on_told(line.removeprefix("! "))

    def _applied(self, number: int, at_ns: int) -> None:
        if number in self._waiting:
            on_applied = self._waiting.pop(number)
            if on_applied is not None:
                on_applied(at_ns)
        elif self._unanswered:  # else one of a client before us
            self._early[number] = at_ns

    def _take_answer(self, line: str) -> None:
        if not self._pending:
            return  # an answer to nothing: the next command's would be wrong, and says so
        self._awaited = b""
        words = line.split(" ")
        command, batch = self._pending[0]
        if words[0] != "ok":
            self._pending.popleft()
            text = line.removeprefix("err ")
            batch.take(EngineError(f"{self._name} refused `{command[:120]}`: {text}"))
            return
        answer = EngineAnswer(words[1:])
        count = int(words[1]) if counts_lines(command) else 0
        if count:
            self._answer, self._body_left = answer, count
        else:
            self._deliver(answer)

    def _deliver(self, answer: EngineAnswer) -> None:
        _, batch = self._pending.popleft()
        batch.take(answer)

    async def call(self, command: str) -> EngineAnswer:
        return (await self.batch([command]))[0]

    async def batch(self, commands: Iterable[str]) -> list[EngineAnswer]:
        """Sends all at once, then waits for all. Raises EngineError for the first refusal."""
        lines = list(commands)
        if not lines:
            return []
        if self._transport is None or self.closed.done():
            raise EngineError(f"{self._name} is gone")
        future: asyncio.Future[list[EngineAnswer]] = asyncio.get_running_loop().create_future()
        batch = _Batch(len(lines), future)
        self._pending.extend((line, batch) for line in lines)
        self._transport.write("".join(line + "\n" for line in lines).encode())
        done, _ = await asyncio.wait({future}, timeout=ANSWER_SECONDS)
        if not done:
            raise EngineError(f"{self._name} did not answer within {ANSWER_SECONDS:.0f} s")
        return future.result()

    async def stage(self, lines: Sequence[str]) -> None:
        """Any number of lines without a commit. Raises EngineError."""
        for begin in range(0, len(lines), BATCH_LINES):
            await self.batch(lines[begin : begin + BATCH_LINES])

    async def commit(
        self, lines: Sequence[str], at_ns: int = NOW, on_applied: OnApplied | None = None
    ) -> None:
        """Returns when the commit is taken, for that CLOCK_MONOTONIC time or NOW. EngineError.

        All is sent at once, so what somebody else commits cannot come in between.
        """
        self._unanswered += 1
        try:
            answers = await self.batch([*lines, f"commit {at_ns}"])
        finally:
            self._unanswered -= 1
        number = int(answers[-1].words[0])
        when = self._early.pop(number, None)
        if when is None:
            self._waiting[number] = on_applied
        elif on_applied is not None:
            on_applied(when)
        if not self._unanswered:
            self._early.clear()

    async def sync(self, token: str) -> None:
        """Takes over a connection that somebody else has used, whatever is on the way on it.

        Nothing else may be waiting. Raises EngineError if no answer comes.
        """
        assert not self._pending and self._transport is not None
        self._rest, self._body_left = b"", 0
        self._awaited = f"ok sync {token}".encode()
        self._transport.write(b"\x18\n")  # CAN: half a line that was left is not a whole one
        await self.call(f"sync {token}")

    def close(self) -> None:
        """No more commands: pktd reads end of file."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()


@dataclass(slots=True)
class EngineProcess:
    """pktd and the connection to it."""

    process: subprocess.Popen[bytes]
    engine: Engine
    facts: dict[str, str]  # what `hello` told

    async def end(self) -> int:
        """End of file: pktd removes its devices and exits; killed if it does not in time."""
        self.engine.close()
        try:
            return await asyncio.to_thread(self.process.wait, END_SECONDS)
        except (subprocess.TimeoutExpired, RuntimeError):  # the latter: no thread can be started
            self.process.kill()
            return self.process.wait()


async def start(
    argv: Sequence[str], log: IO[bytes], name: str = "pktd", inherited: Sequence[int] = ()
) -> EngineProcess:
    """Starts pktd, or another program of that name that speaks its protocol, with descriptors that
    it inherits, and greets it. Raises EngineError if it does not speak this protocol."""
    what = "the packet engine" if name == "pktd" else name
    ours, theirs = socket.socketpair()
    with theirs:
        process = process_limits.start(
            what,
            list(argv),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=log,
            pass_fds=inherited,
        )
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    _, engine = await loop.create_unix_connection(lambda: Engine(name=name), sock=ours)
    found = EngineProcess(process, engine, {})
    try:
        answer = await engine.call(f"hello {PROTOCOL}")
        if answer.words[:2] != [name, str(PROTOCOL)]:
            raise EngineError(f"it is not {name} {PROTOCOL}: it says {' '.join(answer.words)!r}")
    except EngineError as error:
        await found.end()
        raise EngineError(f"{what} did not start: {error.message}") from error
    found.facts.update(answer.values())
    return found
