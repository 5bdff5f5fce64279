"""Carries an experiment out in virtual time again and again, each time under other circumstances of
the host, and tells where the runs differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from compiler.plan.reader import read_plan
from runtime.results import everything
from runtime.results.filetree import RunDifference
from runtime.rundir import rundir
from runtime.virtual.kernel import kernel_cache
from tests import forked
from tests.virtual.catalogue import CHECKOUT, Experiment

_NOT_OF_THE_EXPERIMENT = {"manifest.json", "report.html"}  # hold the run's name and its date


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is different on the host, and must not be seen in a run."""

    name: str
    others: str = ""  # Python, what each of two programs for each processor does meanwhile
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""  # where tstorm is called, below a folder of the harness; "": the checkout


QUIET = Circumstances("quiet")
BUSY = Circumstances("busy", others="while True: pass")
_FOREIGN = {"HOME": "/nowhere", "EDITOR": "x" * 3000, "PYTHONHASHSEED": "5", "USER": "me"}
_FOLDER = "a folder/with a longer name than that of the checkout"
ELSEWHERE = Circumstances("elsewhere", environment=_FOREIGN, folder=_FOLDER)
# Interrupts as often, and takes a tenth of the processors where others compute all the time.
_AT_TIMES = """
import random, time
while True:
    until = time.monotonic() + random.expovariate(400)
    while time.monotonic() < until:
        pass
    time.sleep(random.expovariate(40))
"""
UNLIKE = Circumstances("unlike", others=_AT_TIMES, environment=_FOREIGN, folder=_FOLDER)
EACH = (QUIET, BUSY, ELSEWHERE)


@dataclass(frozen=True, slots=True)
class Ran:
    circumstances: str
    directory: Path
    status: int
    said: str  # on standard error
    seconds: float  # real ones, of the whole command

    def programs_that_failed(self) -> list[str]:
        summary = json.loads((self.directory / "summary.json").read_bytes())
        return [str(one["target"]) for one in summary["failures"]]


def carry_out(
    experiment: Experiment, place: Path, how: Circumstances = QUIET, *options: str
) -> Ran:
    """A run of it. `place`: for its copies and its run directory."""
    source = experiment.staged(place / "copies")
    called = place / how.folder if how.folder else CHECKOUT
    called.mkdir(parents=True, exist_ok=True)
    out = (called if how.folder else place) / f"{experiment.name}-{how.name}"
    words = ["run", str(source), "--time", "virtual", "--quiet", "--out", str(out)]
    words += [*experiment.options, *options]
    kernel = {"TSTORM_KERNEL": str(kernel_cache.path_for_run())}  # from another home, too
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), **kernel, **how.environment}
    with _others_at_work(how.others):
        began = time.perf_counter()
        if how.environment:  # Python reads some of it when it starts
            done = subprocess.run(
                [sys.executable, "-m", "tstorm", *words],
                cwd=called,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        else:
            done = forked.run(forked.TSTORM, words, environment, cwd=called)
        seconds = time.perf_counter() - began
    return Ran(how.name, out, done.returncode, done.stderr, seconds)


@contextmanager
def _others_at_work(program: str) -> Iterator[None]:
    count = 2 * (os.cpu_count() or 1) if program else 0
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def differences(first: Ran, second: Ran) -> list[RunDifference]:
    """None: they are the same to the last byte."""
    mine, theirs = (rundir.recorded(ran.directory) for ran in (first, second))
    found, _ = everything.differ(mine, theirs, read_plan(first.directory / "plan"))
    return found


def contents(run: Path) -> tuple[str, int]:
    """SHA-256 and size in bytes of all files of a run but those that say when it was made."""
    whole, size = hashlib.sha256(), 0
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.is_file() and not path.is_symlink() and name not in _NOT_OF_THE_EXPERIMENT:
            data = path.read_bytes()
            whole.update(f"{name}\0{len(data)}\0".encode() + data)
            size += len(data)
    return whole.hexdigest(), size


def virtual_seconds(run: Path) -> float:
    """How long the experiment took on its own clock."""
    events = map(json.loads, (run / "events.jsonl").read_text().splitlines())
    return max(float(event.get("applied_ns", 0)) for event in events) / 1e9
