"""A stand-in for a datapath: speaks the path protocol (docs/tcal.md) on one end of a socket pair,
in the loop of the test, and carries no packet.

Commits take effect at their time; `history` keeps what each one did and when. Usage is what the
test puts into `moved`.
"""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.doubles.told import Pair, Told

STAGED = {"node", "bind", "unbind", "path"}


@dataclass
class Commit:
    number: int
    at_ns: int  # as asked for, 0 = at once
    lines: list[str]
    staged_ns: int  # when it was committed
    applied_ns: int = 0
    open: dict[Pair, dict[str, int | str]] = field(default_factory=dict)  # paths after it


class FakeDatapath(asyncio.Protocol):
    """`agent_end` is for the agent; it stays open here, so the connection outlives an agent."""

    def __init__(self) -> None:
        self.agent_end, self._own_end = socket.socketpair()
        self._own_end.setblocking(False)
        self.told = Told()
        self.staged: list[str] = []
        self.waiting: list[Commit] = []
        self.history: list[Commit] = []
        self.commands: list[str] = []
        self.moved: dict[Pair, tuple[int, int, int, int, int]] = {}  # as in `usage`
        self.pairs: list[str] = []  # lines of `stats pairs` not told yet
        self.digests: list[str] = []  # lines of `digests` not told yet
        self.ports: dict[int, str] = {}
        self.lease_ns = 0
        self.pipes: Path | None = None  # where it finds pipes for packets
        self.captured = b""  # what it writes to one
        self.refuse = ""  # this command
        self._asked: dict[Pair, tuple[int, int, int, int, int]] = {}
        self._rest = b""
        self._commits = 0
        self._transport: asyncio.Transport | None = None

    async def open(self) -> FakeDatapath:
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=self._own_end)
        return self

    def close(self) -> None:
        """Ends, as a datapath that has crashed."""
        self.agent_end.close()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(self._answer(line.decode()))

    def say(self, line: str) -> None:
        """An event."""
        self._say([f"! {line}"])

    def _say(self, lines: list[str]) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write("".join(f"{line}\n" for line in lines).encode())

    def _answer(self, line: str) -> list[str]:
        if "\x18" in line:
            return ["err syntax a line was cut off"]
        word, *rest = line.split(" ")
        self.commands.append(line)
        if word == self.refuse:
            return [f"err conflict {word} is refused on request"]
        if word in STAGED:
            self.staged.append(line)
            return ["ok"]
        answer: list[str] = getattr(self, f"_do_{word}", self._unknown)(rest)
        return answer

    def _unknown(self, _words: list[str]) -> list[str]:
        return ["err syntax no such command"]

    def _do_sync(self, words: list[str]) -> list[str]:
        self.staged = []
        return [f"ok sync {words[0]}"]

    def _do_hello(self, words: list[str]) -> list[str]:
        assert words == ["1"]
        return ["ok pktd 1 version=fake paths=1"]

    def _do_attach(self, words: list[str]) -> list[str]:
        self.ports[int(words[0])] = " ".join(words[1:])
        return ["ok kind=packet mac=02:00:00:00:00:01 stamp=read"]

    def _do_detach(self, words: list[str]) -> list[str]:
        del self.ports[int(words[0])]
        return ["ok"]

    def _do_ports(self, _words: list[str]) -> list[str]:
        return [
            f"ok {len(self.ports)}",
            *(f"{port} - eth0 7 packet" for port in sorted(self.ports)),
        ]

    def _do_lease(self, words: list[str]) -> list[str]:
        self.lease_ns = int(words[0])
        return ["ok"]

    def _do_capture(self, words: list[str]) -> list[str]:
        assert self.pipes is not None
        with (self.pipes / words[0]).open("wb") as pipe:
            pipe.write(self.captured)
        return ["ok"]

    def _do_usage(self, words: list[str]) -> list[str]:
        rows = []
        for pair, counters in sorted(self.moved.items()):
            if words == ["all"] or self._asked.get(pair) != counters:
                rows.append(" ".join(map(str, (*pair, *counters))))
        self._asked = dict(self.moved)
        return [f"ok {len(rows)}", *rows]

    def _do_stats(self, words: list[str]) -> list[str]:
        if words == ["engine"]:
            return [f"ok commits={self._commits}"]
        rows, self.pairs = self.pairs, []
        return [f"ok {len(rows)}", *rows]

    def _do_epoch(self, _words: list[str]) -> list[str]:
        return ["ok"]

    def _do_digests(self, _words: list[str]) -> list[str]:
        rows, self.digests = self.digests, []
        return [f"ok {len(rows)}", *rows]

    def _do_commit(self, words: list[str]) -> list[str]:
        commit = Commit(self._commits, int(words[0]), self.staged, time.monotonic_ns())
        self._commits += 1
        self.staged = []
        self.waiting.append(commit)
        if commit.at_ns <= time.monotonic_ns():
            return [f"ok {commit.number}", *self._due()]
        # asyncio's clock is CLOCK_MONOTONIC in seconds
        asyncio.get_running_loop().call_at(commit.at_ns / 1e9, self._apply)
        return [f"ok {commit.number}"]

    def _apply(self) -> None:
        self._say(self._due())

    def _due(self) -> list[str]:
        """Applies what is due, in order of time and then of commits."""
        now = time.monotonic_ns()
        ready = sorted(
            (commit for commit in self.waiting if commit.at_ns <= now),
            key=lambda commit: (commit.at_ns, commit.number),
        )
        self.waiting = [commit for commit in self.waiting if commit.at_ns > now]
        for commit in ready:
            self.told.take(commit.lines)
            commit.applied_ns = now
            opened = self.told.open_paths()
            commit.open = {pair: dict(path) for pair, path in opened.items()}
            self.history.append(commit)
        if self.waiting:
            first = min(commit.at_ns for commit in self.waiting)
            asyncio.get_running_loop().call_at(first / 1e9, self._apply)
        return [f"! applied {c.number} {c.at_ns} {c.applied_ns}" for c in ready]
