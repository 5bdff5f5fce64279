"""Drives a built pktd against throw-away network namespaces, as root or in a user namespace.

A `World` owns every process it starts; leaving it ends them, and with them all they made.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pytest

from tests.cli.process import ended
from tests.datapath.client import DEADLINE_S, Client
from tests.netem.kernel import SEARCH

PKTD = Path(__file__).resolve().parents[2] / "tcal_c" / "build" / "pktd"
ENVIRONMENT = {**os.environ, "PATH": SEARCH}  # tc is where an ordinary user's PATH may not lead


class World:
    """Namespaces and processes of one test. `rootless` puts all of it into a user namespace."""

    def __init__(self, *, rootless: bool = False) -> None:
        self.rootless = rootless
        self.processes: list[subprocess.Popen[bytes]] = []
        self._enter: list[str] = []
        self._drop: list[str] = []

    def __enter__(self) -> World:
        if self.rootless:
            # An ordinary user where there is a choice: root in a user namespace may still do more.
            if os.geteuid() == 0:
                self._drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            holder = self.start(
                [*self._drop, "unshare", "-Urn", "sh", "-c", "echo up; exec sleep 1000"]
            )
            self._wait_up(holder)
            self._enter = [
                *self._drop,
                "nsenter",
                "-t",
                str(holder.pid),
                "-U",
                "-n",
                "--preserve-credentials",
            ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

    def start(
        self, argv: list[str], *, enter: bool = True, inherited: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*(self._enter if enter else []), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            pass_fds=inherited,
        )
        self.processes.append(process)
        return process

    def _wait_up(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"

    def namespace(self) -> int:
        """A new network namespace, named by the pid that holds it."""
        process = self.start(["unshare", "-n", "sh", "-c", "echo up; exec sleep 1000"])
        self._wait_up(process)
        self.run(process.pid, "ip", "link", "set", "lo", "up")
        return process.pid

    def argv(self, pid: int, *command: str) -> list[str]:
        """How to start a program in the namespace. One that is missing skips the test."""
        if not have(command[0]):
            pytest.skip(f"{command[0]} is not installed")
        user = ["-U", "--preserve-credentials"] if self.rootless else []
        return [*self._drop, "nsenter", "-t", str(pid), *user, "-n", *command]

    def run(self, pid: int, *command: str, check: bool = True) -> str:
        done = ended(self.argv(pid, *command), timeout=DEADLINE_S, env=ENVIRONMENT)
        if check:
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def spawn(self, pid: int, *command: str) -> subprocess.Popen[bytes]:
        return self.start(self.argv(pid, *command), enter=False)

    def listen(self, pid: int, script: str, *words: str) -> subprocess.Popen[bytes]:
        """A Python program in the namespace that has said `up`."""
        server = self.spawn(pid, "python3", "-c", script, *words)
        self._wait_up(server)
        return server

    def pktd(self, *options: str, inherited: Sequence[int] = ()) -> Client:
        engine = Client(self.start([str(PKTD), *options], inherited=inherited))
        self.hello = engine("hello 1")
        return engine

    def port(self, engine: Client, number: int, pid: int, *, kind: str, mtu: int = 1500) -> str:
        """Opens eth0 in the namespace as a port, gives it addresses and brings it up."""
        answer = engine(f"open {number} netns=/proc/{pid}/ns/net if=eth0 kind={kind} mtu={mtu}")
        self.run(pid, "ip", "addr", "add", f"10.77.0.{number + 1}/16", "dev", "eth0")
        self.run(pid, "ip", "addr", "add", f"fd77:7473::{number + 1:x}/64", "dev", "eth0", "nodad")
        self.run(pid, "ip", "link", "set", "eth0", "up")
        return answer


LINK = {
    "rate": 0,
    "delay": 0,
    "jitter": 0,
    "loss": 0,
    "queue": 1 << 24,
    "dist": "normal",
    "seed": 1,
    "up": 1,
}


def link(number: int, source: int, dest: int, **properties: int | str) -> str:
    values = {**LINK, "seed": number + 1, **properties}
    return f"link {number} {source} {dest} " + " ".join(f"{k}={v}" for k, v in values.items())


def pair(
    world: World, engine: Client, *, kind: str, mtu: int = 1500, **properties: int | str
) -> tuple[int, int]:
    """Two namespaces (nodes 0 and 1) behind one bridge (node 2).

    Links 0 and 2 go from 0 over the bridge to 1 and have the properties, 1 and 3 come back.
    """
    pids = (world.namespace(), world.namespace())
    for i, pid in enumerate(pids):
        world.port(engine, i, pid, kind=kind, mtu=mtu)
        engine(f"node {i} ip=10.77.0.{i + 1} ip6=fd77:7473::{i + 1}")
        engine(f"bind {i} {i}")
    engine("node 2")
    for number, (source, dest) in enumerate([(0, 2), (2, 0), (2, 1), (1, 2)]):
        engine(link(number, source, dest, **properties))
    engine("route 0 0 1")
    engine("route 2 2 1")
    engine("route 1 3 0")
    engine("route 2 1 0")
    engine.commit()
    return pids


def have(program: str) -> bool:
    return shutil.which(program, path=SEARCH) is not None
