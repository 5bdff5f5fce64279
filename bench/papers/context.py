"""Runs of experiments for the rows: where, from which text, and what a peer says in the same run.

A place is `hop-exact`, `hosts N`, `rootless` (hop-exact by an ordinary user, made of root) or
`virtual` (hop-exact with `--time virtual`). What cannot be had here is kept in `cannot`, with the
reason, and stands below the table. What should have been had and failed is a missed row, and what
comes after it is measured all the same (`attempt`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bench import ROOT
from bench.errors import BenchError
from bench.machine import stolen_s
from bench.papers.children import finished
from bench.papers.rows import VIRTUAL, failed
from bench.tables import Record
from runtime.virtual.kernel import kernel_cache
from tests.runs.runlog import IncompleteRunError
from tests.runtime.support import User, ordinary

SCENES = Path(__file__).resolve().parent / "scenes"
EXACT, HOSTS, ROOTLESS = "hop-exact", "hosts 2", "rootless"
# What a part that cannot be measured raises.
FAILURES = (
    *(BenchError, IncompleteRunError, OSError, ValueError, ArithmeticError, LookupError),
    subprocess.SubprocessError,
)
_LONGEST_S = 600
_LONGEST_VIRTUAL_S = 7200  # other work only makes it longer, not wrong
Peer = TypeVar("Peer")
BUSY = 0.2  # of a run; less is what programs do to each other anyway
STOLEN = 0.02  # of the processors, by a hypervisor


class UnavailableError(Exception):
    """A place or a peer that cannot be had on this machine; the text says why."""


@dataclass(slots=True)
class Context:
    """`time`: real, virtual or both, as --time says. `folder`: for runs, gone afterwards."""

    folder: Path
    quick: bool
    time: str
    cannot: dict[str, str] = field(default_factory=dict)
    _waited: dict[Path, float] = field(default_factory=dict)
    _stolen: dict[Path, float] = field(default_factory=dict)
    _count: int = 0
    _user: User | None = None

    def places(self, *wanted: str) -> list[str]:
        """Those of them that --time asks for and that this machine has."""
        kinds = {"real": (False,), "virtual": (True,), "both": (False, True)}[self.time]
        found = [place for place in wanted if (place == VIRTUAL) in kinds]
        return [place for place in found if not self._lacks(place)]

    def _lacks(self, place: str) -> bool:
        if place == VIRTUAL and kernel_cache.find() is None:
            self.cannot["in virtual time"] = "its kernel is not built (`tstorm kernel build`)"
            return True
        if place == ROOTLESS and os.geteuid() == 0 and self._ordinary() is None:
            self.cannot["rootless"] = "no Python with the needed packages that everybody may run"
            return True
        return False

    def _ordinary(self) -> User | None:
        if self._user is None:
            home = self.folder / "home"
            home.mkdir(exist_ok=True)
            os.chown(home, 65534, 65534)
            self._user = ordinary(home)
        return self._user

    def run(self, source: Path, place: str, *more: str) -> Path:
        """The run directory. BenchError if the run did not complete."""
        self._count += 1
        out = self.folder / f"run-{self._count}"
        prefix, python, environment = [], sys.executable, {**os.environ, "PYTHONPATH": str(ROOT)}
        if place == ROOTLESS and os.geteuid() == 0:
            user = self._ordinary()
            assert user is not None
            prefix, python, environment = user.prefix, user.python, user.environment
            out = user.home / out.name
        argv = [*prefix, python, "-m", "tstorm", "run", str(source), "--out", str(out), "--quiet"]
        argv += ["--time", "virtual"] if place == VIRTUAL else []
        argv += ["--hosts", place.split()[1]] if place.startswith("hosts ") else []
        began, waited, stolen = time.monotonic(), cpu_waits_s(), stolen_s()
        longest_s = _LONGEST_VIRTUAL_S if place == VIRTUAL else _LONGEST_S
        done = finished([*argv, *more], "/" if prefix else ROOT, longest_s, environment)
        if done.returncode != 0:
            said = done.stderr.strip()[-500:]
            raise BenchError(f"{source.name}, {place}: ended with {done.returncode}: {said}")
        if place != VIRTUAL:  # there nothing waits for one
            elapsed_s = time.monotonic() - began
            self._waited[out] = (cpu_waits_s() - waited) / elapsed_s
            self._stolen[out] = (stolen_s() - stolen) / elapsed_s / (os.cpu_count() or 1)
        return out

    def why(self, run: Path) -> str:
        """What the run itself says against its figures, else what the machine did meanwhile."""
        verdict = json.loads((run / "summary.json").read_bytes())["verdict"]
        texts = [str(one.get("text") or one["what"]) for one in verdict.get("reasons", [])[:2]]
        waited = self._waited.get(run, 0.0)
        if waited > BUSY:
            texts.append(f"for {waited:.0%} of the run something waited for a processor")
        stolen = self._stolen.get(run, 0.0)
        if stolen > STOLEN:
            texts.append(f"a hypervisor took {stolen:.0%} of the processors meanwhile")
        return "; ".join(texts)

    def scene(self, name: str, **values: object) -> Path:
        """scenes/NAME.tdl with other values of its `let` lines, in a folder with what is beside."""
        return placed(self.folder, name, values)

    @contextmanager
    def attempt(self, rows: list[Record], what: str, place: str) -> Iterator[None]:
        """A part of an experiment. If it fails, that is a missed row."""
        try:
            yield
        except FAILURES as error:
            rows.append(failed(what, place, in_words(error)[:400]))

    def peer(
        self,
        name: str,
        task: Record,
        read: Callable[[list[str]], Peer],
        *,
        netem: bool = False,
    ) -> Peer | None:
        """What `read` finds in what the programs of a task said, in the kernel's network
        (kernel.py); None, and noted under `name`, where this machine cannot."""
        argv = [sys.executable, "-m", "bench.papers.kernel", json.dumps(task)]
        if netem:
            argv = [sys.executable, str(ROOT / "tests/netem/with_netem.py"), "--", *argv]
        return self.other(name, argv, read)

    def other(
        self,
        name: str,
        argv: list[str],
        read: Callable[[list[str]], Peer],
        longest_s: float = _LONGEST_S,
    ) -> Peer | None:
        """As `peer`, of any program that ends with a line of JSON, a list of texts."""
        try:
            done = finished(argv, ROOT, longest_s)
            if done.returncode != 0:
                raise BenchError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
            return read([str(one) for one in json.loads(done.stdout.splitlines()[-1])])
        except FAILURES as error:
            self.cannot[name] = in_words(error)[:200]
            return None


def placed(folder: Path, name: str, values: Mapping[str, object]) -> Path:
    """Writes the scene and copies what lies beside it. BenchError for a value it does not have."""
    text = (SCENES / f"{name}.tdl").read_text()
    for key, value in values.items():
        line = f"let {key} = {value}".replace("\\", r"\\")
        text, count = re.subn(rf"^let {key} = .*$", line, text, flags=re.MULTILINE)
        if count != 1:
            raise BenchError(f"{name}.tdl has {count} lines 'let {key} = …'")
    for other in SCENES.iterdir():
        if other.suffix != ".tdl":
            shutil.copy(other, folder)
    source = folder / f"{name}.tdl"
    source.write_text(text)
    return source


def cpu_waits_s() -> float:
    """For how long so far something has waited for a processor (PSI, Linux); 0 where not known."""
    try:
        found = re.search(r"^some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1e6 if found else 0.0


def in_words(error: Exception) -> str:
    """For a table. Command lines have paths of this machine in them."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it takes more than {error.timeout:.0f} s here"
    return str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"


def last_words(text: str) -> str:
    """The end of what a program wrote, for an error."""
    return " / ".join(text.strip().splitlines()[-6:])[-400:]


def log(run: Path, instance: str) -> str:
    """What the program wrote, without the run's own marks."""
    lines = (run / "logs" / f"{instance}.log").read_text(errors="replace").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("[tstorm] "))
