"""A small client of pktd, for measurements. The protocol is docs/pktd.md."""

from __future__ import annotations

import subprocess
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.errors import BenchError


class Pktd:
    """One running pktd and its command stream. A context manager: leaving it ends pktd."""

    def __init__(self, program: Path) -> None:
        try:
            self._process = subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20
            )
        except OSError as error:
            raise BenchError(f"starting {program}: {error.strerror}") from error
        self._events: deque[str] = deque()
        self.greeting = self._pairs(self.ask("hello 1").split()[2:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End of file on the commands: pktd takes its devices away and exits."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, lines: Iterable[str]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise BenchError(f"pktd is gone (exit status {self._process.poll()})") from error

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().rstrip("\n")
        if not line:
            raise BenchError(f"pktd is gone (exit status {self._process.poll()})")
        return line

    def _answer(self) -> str:
        while (line := self._line()).startswith("!"):
            self._events.append(line)
        return line

    def ask(self, line: str) -> str:
        """Sends a command, gives its answer. Raises BenchError for `err`."""
        return self.ask_all([line])[0]

    def ask_all(self, lines: Iterable[str]) -> list[str]:
        """Sends commands in one go and gives their answers; the first `err` is raised."""
        commands = list(lines)
        answers: list[str] = []
        # In pieces, so that neither side waits for the other with full pipes.
        for first in range(0, len(commands), 200):
            piece = commands[first : first + 200]
            self._send(piece)
            for command in piece:
                answer = self._answer()
                if not answer.startswith("ok"):
                    raise BenchError(f"pktd refused '{command[:200]}': {answer}")
                answers.append(answer)
        return answers

    def commit(self, at_ns: int = 0) -> tuple[int, int]:
        """Commits what is staged and waits until it is applied: (asked for, applied), in ns."""
        sequence = self.ask(f"commit {at_ns}").split()[1]
        while True:
            line = self._events.popleft() if self._events else self._line()
            words = line.split()
            if words[:3] == ["!", "applied", sequence]:
                return int(words[3]), int(words[4])
            if words[:3] == ["!", "failed", sequence]:
                raise BenchError(f"the commit failed: {line}")

    def rows(self, line: str) -> list[str]:
        """Asks for something that is answered by a number of lines, and gives these."""
        return [self._line() for _ in range(int(self.ask(line).split()[1]))]

    def engine(self) -> dict[str, str]:
        """`stats engine` by name."""
        return self._pairs(self.ask("stats engine").split()[1:])

    def cpu_seconds(self) -> float:
        """CPU time that the process has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100  # clock ticks: 100 a second on Linux

    @staticmethod
    def _pairs(words: Iterable[str]) -> dict[str, str]:
        return dict(word.split("=", 1) for word in words if "=" in word)


def now_ns() -> int:
    """CLOCK_MONOTONIC, the clock of pktd's commit times."""
    return time.monotonic_ns()
