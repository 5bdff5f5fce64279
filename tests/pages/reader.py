"""A reader of a page: does what it says, in a folder of its own, and compares what is shown."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.pages.page import Command, File, Step, agrees
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 180.0  # of one command; only one that hangs takes so long


@dataclass
class Reader:
    """Types commands in `folder` as somebody whom `prefix` makes of the present user."""

    folder: Path
    prefix: list[str]
    environment: dict[str, str]
    printed: dict[str, str] = field(default_factory=dict)  # by command; the last time it was typed

    def follow(self, steps: list[Step]) -> None:
        """Writes the files and types the commands, in order. Fails where the page is wrong."""
        for step in steps:
            if isinstance(step, File):
                self.write(step)
            elif isinstance(step, Command):
                self.type(step)

    def start_again(self, folder: str) -> None:
        """In the home directory, without `folder`."""
        code, said = self._shell(f'cd && rm -r {folder} && pwd >"$HOME/cwd"')
        assert code == 0, said

    def write(self, file: File) -> None:
        sign = ">>" if file.append else ">"
        code, said = self._shell(f'cat {sign}"{file.name}"', file.text)
        assert code == 0, f"{file.name}: {said}"

    def type(self, command: Command) -> None:
        code, printed = self._shell(f'{command.text}\nstatus=$?\npwd >"$HOME/cwd"\nexit $status')
        self.printed[command.text] = printed
        assert code == command.code, f"$ {command.text}\nended with {code}:\n{printed}"
        assert agrees(command, printed), (
            f"$ {command.text}\nprints\n{printed}\nand the page shows\n{command.shown}"
        )

    def type_in_two_terminals(self, first: Command, others: list[Command]) -> None:
        """`others` while `first` goes on, as soon as the first of them succeeds."""
        terminal = self._start(first.text)
        try:
            wait_until(lambda: self._shell(others[0].text)[0] == 0, f"$ {others[0].text}")
            for command in others:
                self.type(command)
            printed, _ = terminal.communicate(timeout=DEADLINE_SECONDS)
        finally:
            _end(terminal)
        assert terminal.returncode == first.code, f"$ {first.text}\n{printed}"

    def _shell(self, script: str, text: str = "") -> tuple[int, str]:
        """In a shell of its own; `cd` holds for those that follow."""
        process = self._start(script)
        try:
            said, _ = process.communicate(text, timeout=DEADLINE_SECONDS)
        finally:
            _end(process)
        return process.returncode, said

    def _start(self, script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.prefix, "sh", "-c", f'cd "$(cat "$HOME/cwd")"\n{script}'],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )


def _end(process: subprocess.Popen[str]) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
