"""A run in directories of its own, the processes it is made of, and the proof that it left nothing.

What trials and the tests of kills share.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from tests.runtime.support import User, processes_with, records, somebody
from tests.waiting import wait_until

END_SECONDS = 20  # for what is killed to be gone; only a trial that fails takes so long
RUN_SECONDS = 120
NETWORK = Path("/sys/class/net")

# -- the processes of a run ------------------------------------------------------------------------


def children(parent: int) -> list[tuple[str, int]]:
    """(name of the program, process) of all children, by age."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue  # it has ended meanwhile
            if int(tail.split()[1]) == parent:
                found.append((head.partition("(")[2], int(entry.name)))
    return sorted(found, key=lambda child: child[1])


def child(parent: int, name: str = "") -> int:
    """The first child, of this name if one is given; 0: there is none."""
    found = (pid for known, pid in children(parent) if parent and name in ("", known))
    return next(found, 0)


def driver_of(process: subprocess.Popen[str]) -> int:
    """tstorm, keeper, init, driver: each the child of the one before. 0: not yet."""
    found = child(child(child(process.pid, "tstorm-ns"), "tstorm-ns"))
    return found if found and b"runtime.driver" in _command(found) else 0  # else not yet


def helper(process: subprocess.Popen[str], name: str) -> int:
    """A child of the driver; 0: not yet."""
    return child(driver_of(process), name)


def parts(process: subprocess.Popen[str]) -> dict[str, int]:
    """Those that there are: tstorm, keeper, init, driver, nursery, pktd, agent, each the first."""
    keeper = child(process.pid, "tstorm-ns")
    init = child(keeper, "tstorm-ns")
    driver = child(init)
    found = {"tstorm": process.pid, "keeper": keeper, "init": init, "driver": driver}
    for name, pid in children(driver) if driver else ():
        if name in ("pktd", "tcald"):
            found.setdefault("datapath", pid)
        elif b"nursery" in _command(pid).split(b"\0"):
            found.setdefault("nursery", pid)
        elif b"runtime.agent" in _command(pid):
            found.setdefault("agent", pid)
    return {name: pid for name, pid in found.items() if pid}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# -- the run ---------------------------------------------------------------------------------------


@dataclass
class Scene:
    """One user, a plan, a run of it in `out`."""

    user: User
    plan: Path
    devices: frozenset[str]

    @property
    def out(self) -> Path:
        return self.user.home / "out"

    def run(self, *options: str) -> subprocess.Popen[str]:
        arguments = ["run", str(self.plan), "--out", str(self.out), "--quiet", *options]
        return self.user.tstorm(*arguments)

    def read(self, name: str) -> dict[str, Any]:
        """A file of the run directory; empty if it is not there."""
        path = self.out / name
        return json.loads(path.read_text()) if path.exists() else {}

    def going(self) -> bool:
        """Events have been applied."""
        events = self.out / "events.jsonl"
        return events.exists() and len(records(events)) > 1  # the first line is the header


@contextmanager
def scene(text: str, kind: str) -> Iterator[Scene]:
    """`kind` of user as in tests.runtime.support.somebody. All it started is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="tstorm-trial-") as name:
        workspace = Path(name)
        workspace.chmod(0o755)
        user = somebody(kind, workspace)
        temporary = user.home / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        user.environment["TMPDIR"] = str(temporary)
        plan = workspace / "exp.plan"
        write(compile_source(text, filename="exp.tdl", seed=None), plan)
        try:
            yield Scene(user, plan, devices())
        finally:
            end(user)


def devices() -> frozenset[str]:
    return frozenset([path.name for path in NETWORK.iterdir()])


def end(user: User) -> None:
    for process in user.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def kinds() -> list[str]:
    """Users that trials can be made as: root is also an ordinary one."""
    return ["self", "ordinary"] if os.geteuid() == 0 else ["self"]


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what it said on stderr, which is no traceback."""
    out, err = process.communicate(timeout=RUN_SECONDS)
    assert "Traceback" not in out + err, err
    return process.returncode, err


# -- what it leaves --------------------------------------------------------------------------------


def nothing_left(user: User) -> None:
    """No process knows the run directory any more, and no record, socket or mount is left."""
    all_ended(user)
    user.call("destroy")
    assert list((user.home / "state/tstorm/active").iterdir()) == []
    assert list((user.home / "xdg").rglob("*.sock")) == []


def all_ended(user: User) -> None:
    """Namespaces and devices have no names of their own: they end with the processes."""
    run = str(user.home / "out")
    wait_until(lambda: not processes_with(run), "the end of every process", END_SECONDS)
    assert run not in Path("/proc/self/mountinfo").read_text()


def clean(scene: Scene) -> None:
    """Nothing at all is left of the run but its directory, with an outcome."""
    all_ended(scene.user)
    status, err = finished(scene.user.tstorm("destroy", "--all"))
    assert status == 0, err
    home = scene.user.home
    left = [
        str(path)
        for place in ("state", "xdg", "tmp")
        for path in (home / place).rglob("*")
        if not path.is_dir()
    ]
    left += [str(path) for path in home.rglob(".*")]
    left += sorted(devices() - scene.devices)
    assert left == []
