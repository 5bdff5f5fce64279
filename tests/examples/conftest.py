"""Runs of examples through the command line, as a user would, and reading what they left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.intime import environment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEADLINE_SECONDS = 240.0  # only a run that hangs takes so long, and says where


@dataclass(frozen=True)
class Finished:
    """A finished run directory, and what the command said of it on stderr."""

    directory: Path
    said: str = ""

    def log(self, instance: str) -> str:
        return (self.directory / "logs" / f"{instance}.log").read_text(errors="replace")

    def records(self, instance: str) -> list[dict[str, Any]]:
        """The JSON lines of tprobe in a log; what else stands there is left out."""
        found: list[dict[str, Any]] = []
        for line in self.log(instance).splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                found.append(record)
        return found

    def events(self) -> list[dict[str, Any]]:
        """The timeline's events as they were carried out."""
        lines = (self.directory / "events.jsonl").read_text().splitlines()
        return [record for record in map(json.loads, lines) if "seq" in record]

    def planned(self) -> list[tuple[int, str, str]]:
        """In the plan's order; the log has them in the order in which they were done."""
        events = sorted(self.events(), key=lambda event: int(event["seq"]))
        return [(event["planned_ns"], event["kind"], event["target"]) for event in events]

    def start_ns(self) -> int:
        manifest = json.loads((self.directory / "manifest.json").read_text())
        return int(next(_values(manifest, "start_monotonic_ns")))


def _values(value: dict[str, Any], key: str) -> Iterator[Any]:
    for name, inside in value.items():
        if name == key:
            yield inside
        elif isinstance(inside, dict):
            yield from _values(inside, key)


Runner = Callable[..., Finished]


@pytest.fixture
def run_example(tmp_path: Path) -> Runner:
    """`run_example("churn", "--pace", "4")` runs it to its end; a failed run fails the test."""

    def run(name: str, *options: str, out: str = "run", quiet: bool = True) -> Finished:
        directory = tmp_path / out
        source = EXAMPLES / f"{name}.tdl"
        argv = [sys.executable, "-m", "tstorm", "run", str(source), "--out", str(directory)]
        said = tmp_path / f"{out}.said"
        with said.open("w") as output:
            process = subprocess.Popen(
                [*argv, *(["--quiet"] if quiet else []), *options],
                cwd=ROOT,
                env={**os.environ, **environment()},
                stdout=subprocess.DEVNULL,
                stderr=output,
            )
            try:
                status = process.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                waiting = processes()
                os.kill(process.pid, signal.SIGINT)
                process.wait(DEADLINE_SECONDS)
                seen = f"{ends_of(directory)}\n{waiting}"
                pytest.fail(f"{process.pid} is not over after {DEADLINE_SECONDS} s: {seen}")
        assert status == 0, said.read_text()[-3000:]
        return Finished(directory, said.read_text())

    return run


def processes() -> str:
    """All of the machine, and in which call of the kernel each waits."""
    asked = ["ps", "-eo", "pid,ppid,stat,wchan:24,etimes,args", "--forest"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout[-8000:]


def ends_of(directory: Path) -> str:
    """The last lines of what a run has written: how far it came, and who was waited for."""
    paths = [path for name in ("*.log", "events.jsonl", "logs/*") for path in directory.glob(name)]
    return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-800:]}" for path in paths)


@pytest.fixture
def tprobe() -> str:
    """The built program; tests of it fail, not skip, when it was not built."""
    path = ROOT / "tcal_c" / "build" / "tprobe"
    assert os.access(path, os.X_OK), "run `make -C tcal_c` first"
    return str(path)
