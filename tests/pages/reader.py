"""A reader of a page: does what it says, in a folder of its own, and compares what is shown."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.pages.page import Command, File, Step, agrees

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

    def _shell(self, script: str, text: str = "") -> tuple[int, str]:
        """In a shell of its own; `cd` holds for those that follow."""
        process = subprocess.Popen(
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
        try:
            said, _ = process.communicate(text, timeout=DEADLINE_SECONDS)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return process.returncode, said
