"""What the runtime's tests share: runs in processes of their own, as one of two users."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runtime.rundir import logmarks
from tests.cli import warm
from tests.intime import environment as kernel
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
DEADLINE_SECONDS = 180.0  # only a test that fails takes so long

Compile = Callable[[str], Path]


class NoUserError(Exception):
    """There is nobody of this kind to run tests as, and why."""


@dataclass
class User:
    """Somebody who runs tests/runtime/start.py: the present user, or an ordinary one."""

    name: str
    python: str
    prefix: list[str]
    home: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """One JSON line on stdout for every progress record, the result as the last one."""
        return self._python([str(ROOT / "tests/runtime/start.py"), *arguments], options)

    def tstorm(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The command."""
        return self._python(["-m", "tstorm", *arguments], options)

    def _python(self, words: list[str], options: dict[str, Any]) -> subprocess.Popen[str]:
        argv = [*self.prefix, self.python, *words]
        process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.home,
            start_new_session=True,
            **options,
        )
        self.started.append(process)
        return process

    def call(self, *arguments: str) -> Any:
        """The last JSON line of what start.py says; fails unless it exits with 0."""
        ran = None
        if not self.prefix:
            own = (self.home, arguments, self.environment, DEADLINE_SECONDS)
            ran = warm.run(*own, program=warm.RUNTIME)
        if ran is None:
            process = self.start(*arguments)
            out, err = process.communicate(timeout=DEADLINE_SECONDS)
            ran = (process.returncode, out, err)
        status, out, err = ran
        assert status == 0, f"{arguments}: {out}{err}"
        return json.loads(out.splitlines()[-1])

    def at_home(self, name: str) -> User:
        """The same one with an empty home: for another attempt at the same."""
        home = self.home / name
        home.mkdir()
        if self.name == "ordinary":
            os.chown(home, NOBODY, NOBODY)
        return replace(self, home=home)

    def run(self, plan: Path, out: str = "out", **options: object) -> dict[str, Any]:
        """Runs a plan to its end."""
        result: dict[str, Any] = self.call("run", str(plan), str(self.home / out), dump(options))
        return result

    def begin(self, plan: Path, out: str = "out", **options: object) -> subprocess.Popen[str]:
        """Starts a run and returns once its first event was applied and it goes on."""
        process = self.start("run", str(plan), str(self.home / out), dump(options))
        events = self.home / out / "events.jsonl"
        wait_until(
            lambda: process.poll() is not None or (events.exists() and records(events)[1:]),
            "the run's first event after the header",
        )
        assert process.poll() is None, process.communicate()
        return process


def dump(options: dict[str, object]) -> str:
    """Without probes, unless the test is about them: others count packets."""
    return json.dumps({"probes": False, **options})


def state(home: Path) -> dict[str, str]:
    """Records and sockets of the tests' own."""
    return {"XDG_STATE_HOME": str(home / "state"), "XDG_RUNTIME_DIR": str(home / "xdg")}


def somebody(kind: str, workspace: Path) -> User:
    """`self`, or `ordinary` made from root, with a home in `workspace`. NoUserError if there is no
    such user here."""
    home = workspace / "home"
    home.mkdir()
    if kind == "self":
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **kernel(), **state(home)}
        return User("self", sys.executable, [], home, environment)
    if os.geteuid() != 0:
        raise NoUserError("the tests run as an ordinary user already")
    os.chown(home, NOBODY, NOBODY)
    found = ordinary(home)
    if found is None:
        raise NoUserError("no interpreter with the needed packages that an ordinary user may run")
    return found


def ordinary(home: Path) -> User | None:
    """An ordinary user made from root, if an interpreter can be used by everybody."""
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    prefix += ["--inh-caps=-all", "--bounding-set=-all"]
    site = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT), *site]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **kernel(),
        **state(home),
    }
    python = _python(tuple(prefix), environment["PYTHONPATH"])
    return User("ordinary", python, prefix, home, environment) if python else None


@functools.cache
def _python(prefix: tuple[str, ...], path: str) -> str:
    """An interpreter with the needed packages that this user may run; '' if there is none."""
    trial = ["-c", "import pyroute2, runtime.launch.launch"]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for python in (sys.executable, "/usr/bin/python3"):
        argv = [*prefix, "env", python, *trial]
        done = subprocess.run(argv, env=environment, capture_output=True, check=False, cwd="/")
        if done.returncode == 0:
            return python
    return ""


def written(log: Path) -> str:
    """What programs wrote there, without the run's own marks."""
    lines = log.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if logmarks.parse(line.rstrip("\n")) is None)


def records(path: Path) -> list[dict[str, Any]]:
    """Of whole lines; the last one may just be being written."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def processes_with(word: str) -> list[int]:
    """Processes with this word in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if word.encode() in text:
                found.append(int(entry.name))
    return found
