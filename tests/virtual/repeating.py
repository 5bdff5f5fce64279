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
from tests.cli import process
from tests.virtual.catalogue import CHECKOUT, Experiment

_NOT_OF_THE_EXPERIMENT = {"manifest.json", "report.html"}  # hold the run's name and its date


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is different on the host, and must not be seen in a run."""

    name: str
    busy: bool = False  # every processor has something else to do
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""  # where tstorm is called, below a folder of the harness; "": the checkout


QUIET = Circumstances("quiet")
BUSY = Circumstances("busy", busy=True)
_FOREIGN = {"EDITOR": "x" * 3000, "PYTHONHASHSEED": "5", "USER": "me"}
_FOLDER = "a folder/with a longer name than that of the checkout"
ELSEWHERE = Circumstances("elsewhere", environment=_FOREIGN, folder=_FOLDER)
UNLIKE = Circumstances("unlike", busy=True, environment=_FOREIGN, folder=_FOLDER)
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
    if how.folder:
        environment["HOME"] = str(place / "another home")
    with _others_at_work(how.busy):
        began = time.perf_counter()
        done = process.called(*words, cwd=called, env=environment, timeout=process.LONGEST_SECONDS)
        seconds = time.perf_counter() - began
    return Ran(how.name, out, done.returncode, done.stderr, seconds)


@contextmanager
def _others_at_work(wanted: bool) -> Iterator[None]:
    """Two programs for each processor that compute and nothing else."""
    count = 2 * (os.cpu_count() or 1) if wanted else 0
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(count)]
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
