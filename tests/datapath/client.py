"""A client of pktd and tcald that sends lines as they are (docs/pktd.md): tests, measurements.

Nothing is waited for longer than a deadline: TimeoutError then, EOFError if the program has ended.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

DEADLINE_S = 120.0  # only a test that fails takes so long
PIECE = 200  # commands sent before their answers are read, so that no pipe is full on both sides


class RefusedError(Exception):
    """An `err` answer, or an event that is none of a commit applied: its code and its text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text


class Client:
    """The client's end of a running program's protocol."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.events: list[str] = []
        self._lines: deque[bytes] = deque()
        self._rest = b""

    @classmethod
    @contextmanager
    def start(cls, program: Path, *options: str) -> Iterator[Self]:
        """Starts the program, greeted; it has ended when the body has."""
        pipe = subprocess.PIPE
        with subprocess.Popen([program, *options], stdin=pipe, stdout=pipe) as process:
            client = cls(process)
            try:
                client("hello 1")
                yield client
                client.close()
            finally:
                process.kill()

    def line(self) -> str:
        """The next line; fails after a deadline or at the end of the stream."""
        if not self._lines:
            self._read()
        return self._lines.popleft().decode()

    def _read(self) -> None:
        """Takes in what has come, at least one line of it."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + DEADLINE_S
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise TimeoutError("the datapath does not answer")
            data = os.read(fd, 65536)
            if not data:
                raise EOFError("the datapath has ended")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(lines)

    def answer(self) -> str:
        while (line := self.line()).startswith("!"):
            self.events.append(line)
        return line

    def send(self, text: str) -> None:
        """Lines; the last one is ended here."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def __call__(self, command: str) -> str:
        """Sends a command; what stands behind `ok`, or RefusedError."""
        self.send(command)
        return self._ok(command)

    def _ok(self, command: str) -> str:
        answer = self.answer()
        word, _, rest = answer.partition(" ")
        if word == "err":
            code, text = rest.split(" ", 1)
            raise RefusedError(code, text)
        assert word == "ok", f"{command[:200]}: {answer}"
        return rest

    def all(self, commands: Iterable[str]) -> None:
        """Sends commands many at a time; RefusedError for the first that is refused."""
        lines = list(commands)
        for first in range(0, len(lines), PIECE):
            piece = lines[first : first + PIECE]
            self.send("\n".join(piece))
            for command in piece:
                self._ok(command)

    def body(self, command: str) -> list[str]:
        """The lines behind `ok N`."""
        return [self.line() for _ in range(int(self(command)))]

    def rows(self, command: str) -> list[list[int]]:
        return [[int(x) for x in line.split()] for line in self.body(command)]

    def engine(self) -> dict[str, int]:
        """The numbers of `stats engine` by name."""
        found = (word.split("=") for word in self("stats engine").split())
        return {name: int(value) for name, value in found if value.isdecimal()}

    def event(self) -> list[int]:
        """The numbers of the next `! applied` line: commit, asked for and applied in ns."""
        line = self.events.pop(0) if self.events else self.line()
        if not line.startswith("! applied "):
            raise RefusedError("event", line)
        return [int(x) for x in line.split()[2:]]

    def commit(self, at: int = 0) -> list[int]:
        self(f"commit {at}")
        return self.event()

    def cpu_seconds(self) -> float:
        """CPU time that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100  # clock ticks: 100 a second on Linux

    def close(self) -> int:
        """End of file on commands; the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)
