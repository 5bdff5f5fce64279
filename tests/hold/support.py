"""A container with tstorm-hold as its process 1, as far as that takes: a PID namespace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, TypeVar

from tests.cli.process import ended
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
HOLD = ROOT / "tcal_c/build/tstorm-hold"
DEADLINE_SECONDS = 30.0

Found = TypeVar("Found")


def order(pid: int, name: str) -> subprocess.CompletedProcess[str]:
    return ended([HOLD, "signal", str(pid), name])


def state_of(pid: int) -> str:
    """'R', 'S', … or '' when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(") ")[2].split()[0]


class Container:
    """`tstorm-hold ARGUMENTS` as process 1 of a namespace; `out` and `err` are what it writes."""

    def __init__(self, folder: Path, arguments: list[str], prefix: tuple[str, ...] = ()) -> None:
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        self.out = folder / "out"
        self.err = folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            spaces = ["--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
            self.process = subprocess.Popen(
                ["unshare", *user, *spaces, *prefix, str(HOLD), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.pid = 0

    def init(self) -> int:
        """Process 1's number out here, once it takes orders (or has ended: 0)."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        wait_until(lambda: self.process.poll() is not None or children.read_text(), "process 1")
        if self.process.poll() is None:
            self.pid = int(children.read_text().split()[0])
            self.wait_for("held")
        return self.pid

    def give(self, *orders: str) -> None:
        for name in orders:
            done = order(self.pid, name)
            assert done.returncode == 0, done.stderr

    def events(self) -> list[dict[str, Any]]:
        """The reports so far; what programs say on stderr is not among them."""
        lines = self.err.read_text().splitlines(keepends=True)
        whole = [line for line in lines if line.startswith('{"tstorm_hold"') and line[-1] == "\n"]
        return [json.loads(line) for line in whole]

    def names(self) -> list[str]:
        return [event["tstorm_hold"] for event in self.events()]

    def wait_for(self, *names: str) -> None:
        """Until the reports are exactly these; any other one fails at once."""

        def reached() -> bool:
            seen = self.names()
            assert seen == list(names[: len(seen)]), (seen, names, self.err.read_text())
            return len(seen) == len(names)

        wait_until(reached, f"{names}, seen so far: {self.names()}")

    def said(self) -> str:
        return self.out.read_text()

    def wait_for_word(self, word: str) -> None:
        wait_until(lambda: word in self.said().split(), f"{word!r} in {self.said()!r}")

    def processes(self) -> set[int]:
        """All processes of the namespace but process 1, by their numbers out here."""
        space = Path(f"/proc/{self.pid}/ns/pid").readlink()
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and state_of(int(entry.name)) not in ("", "Z"):
                try:
                    if (entry / "ns/pid").readlink() == space:
                        found.add(int(entry.name))
                except OSError:
                    continue  # ended meanwhile, or another user's
        return found - {self.pid}

    def exit_code(self) -> int:
        return self.process.wait(timeout=DEADLINE_SECONDS)

    def close(self) -> None:
        """Process 1 itself: --kill-child forgets it once it has changed its user."""
        if self.process.poll() is None:
            os.kill(self.pid or self.process.pid, signal.SIGKILL)
        self.process.wait()
