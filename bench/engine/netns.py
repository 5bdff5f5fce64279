"""Network namespaces of the benchmark's own, each kept by a sleeping process.

The whole benchmark runs inside one `unshare` (user namespace when not root, network, mounts,
processes) that kills everything in it when it ends, so nothing here can outlive it and no traffic
leaves it. A namespace is named by its path under /proc.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bench.errors import BenchError

_INSIDE = "BENCH_INSIDE"


def isolate(module: str = "bench") -> None:
    """Starts this command (`python -m MODULE`) again inside namespaces of its own; returns when
    already there."""
    if os.environ.get(_INSIDE):
        run(["ip", "link", "set", "lo", "up"])  # agents and coordinator talk over it
        return
    flags = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        flags = ["--user", "--map-root-user", *flags]
    os.environ[_INSIDE] = "user" if os.geteuid() != 0 else "root"
    # sysctl(8) and tc(8) are there, and on some systems an ordinary user's PATH is without it.
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    _exec(["unshare", *flags, "--", sys.executable, "-m", module, *sys.argv[1:]])


def privilege() -> str:
    """'root', or 'user' for an ordinary user inside a user namespace."""
    return os.environ.get(_INSIDE, "root" if os.geteuid() == 0 else "user")


def _exec(argv: list[str]) -> NoReturn:
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        raise BenchError(f"starting {argv[0]}: {error.strerror}") from error


class Namespace:
    """One network namespace. Use `close` or let the benchmark end."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(["unshare", "--net", "--", "sleep", "infinity"])
        self.path = Path(f"/proc/{self._keeper.pid}/ns/net")
        self._wait_until_made()
        self.run(["ip", "link", "set", "lo", "up"])

    def _wait_until_made(self) -> None:
        own = Path("/proc/self/ns/net").readlink()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if self._keeper.poll() is not None:
                break
            if self.path.readlink() != own:
                return
            time.sleep(0.001)
        raise BenchError("making a network namespace failed (is unshare(1) permitted here?)")

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` inside."""
        return ["nsenter", f"--net={self.path}", "--", *argv]

    def run(self, argv: Sequence[str]) -> None:
        """Runs `argv` inside to its end. Raises BenchError with what it said."""
        run(self.argv(argv))

    def ip_batch(self, lines: Sequence[str]) -> None:
        """Several ip(8) commands in one process."""
        run(self.argv(["ip", "-batch", "-"]), "".join(f"{line}\n" for line in lines))

    def sysctl(self, name: str, value: str) -> None:
        self.run(["sysctl", "-q", "-w", f"{name}={value}"])

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.wait()


def run(argv: Sequence[str], given: str = "") -> None:
    """Runs a program to its end; its output is the error's text when it fails."""
    try:
        done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BenchError(f"starting {argv[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise BenchError(f"{' '.join(argv)} failed with {done.returncode}: {said}")
