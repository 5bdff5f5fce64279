"""Tables 3.1 and 3.8 and Figs 3.12 and 3.15 of NestedNet: machines with parts.

How long it takes until all parts of all machines run, what a machine of five idle parts holds in
memory, and how much of its machine's processor a part gets beside one with many busy processes.
A start counts from the call of `tstorm run` until the last program has been started. Memory is the
proportional share of the parts' processes (PSS, proc(5)), and what their control groups are charged
beside it: more than the machine holds, since pages of processes are in both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import linear_regression, median

from bench import ROOT
from bench.errors import BenchError
from bench.papers.children import computed_s
from bench.papers.context import EXACT, ROOTLESS, Context
from bench.papers.rows import BELOW, LEAST, TOLD, goal, row
from bench.tables import Record

PAPER_S = {(12, 4): ("98 s, ContainerNet 28 s", 3.0), (2, 25): ("93 s, ContainerNet 9 s", 2.0)}
FIGURE_312 = (6, 12, 16, 24, 31)
FIVE = 5
LARGEST_S = 5.0
MEMORY_MB = 5.0
FOUR = 4
FOUR_MB = 120.0
IDLE_PERCENT = 0.1
_IDLE_S = 20.0
IDLE = "sleep 600"
BUSY = "import os\nfor _ in range(%d):\n    if os.fork() == 0: break\nwhile True: pass\n"
_BUSY_PROCESSES = 16
_TRIES = 5
_READY_S = 60.0
_GROUPS = Path("/sys/fs/cgroup")


def text(machines: int, parts: int, seconds: int) -> str:
    """A router and radios each, linked inside and by the router to the outside."""
    return f"""\
node sat replicas={machines} {{
    service gnab exec="{IDLE}"
    service iphy replicas={parts - 1} exec="{IDLE}"
    bridge inner
    link gnab--inner latency=50us
    link iphy--inner latency=50us
}}
bridge air
link sat.gnab--air latency=5ms
at {seconds}s quit
"""


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    for (machines, parts), (paper, most_s) in PAPER_S.items():
        what = f"Table 3.8: {machines} machines of {parts} parts, start"
        _start(context, rows, what, (machines, parts), paper, most_s)
    computed: list[float] = []
    for machines in (6, 31) if context.quick else FIGURE_312:
        limit = LARGEST_S if machines == FIGURE_312[-1] else None
        what = f"Fig. 3.12: {machines} machines of {FIVE} parts, start"
        computed += _start(context, rows, what, (machines, FIVE), "–", limit)
    if len(computed) == len(FIGURE_312):
        what = "Fig. 3.12: R² of a straight line through the processor times"
        rows.append(row(what, EXACT, "", _fit(FIGURE_312, computed), 1.0, goal=goal(LEAST, 0.05),
                        paper="linear"))  # fmt: skip
    if os.geteuid() == 0:
        _memory(context, rows)
        _starved(context, rows)
    else:
        context.cannot["memory, and parts beside busy ones"] = "control groups are mostly root's"
    return rows


def _fit(xs: tuple[int, ...], ys: list[float]) -> float:
    line = linear_regression(xs, ys)
    mean = sum(ys) / len(ys)
    rest = sum((y - line.slope * x - line.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    return 1 - rest / sum((y - mean) ** 2 for y in ys)


# --- starts -------------------------------------------------------------------------------------


def _start(
    context: Context,
    rows: list[Record],
    what: str,
    size: tuple[int, int],
    paper: str,
    most_s: float | None,
) -> list[float]:
    """The rows; returns the processor time as root."""
    source = context.folder / f"machines-{size[0]}-{size[1]}.tdl"
    source.write_text(text(*size, 1))
    found: list[float] = []
    for where in context.places(EXACT, ROOTLESS):
        with context.attempt(rows, what, where):
            tries = [
                _started(context, source, where) for _ in range(1 if context.quick else _TRIES)
            ]
            took, cpu_s = median(one[0] for one in tries), median(one[1] for one in tries)
            found += [cpu_s] if where == EXACT else []
            wanted = goal(TOLD) if most_s is None else goal(BELOW, most_s)
            why = context.why(tries[-1][2])
            rows.append(row(what, where, "s", took, None, goal=wanted, paper=paper, why=why))
            rows.append(row(f"{what} and end, processor time", where, "s", cpu_s, None))
    return found


def _started(context: Context, source: Path, where: str) -> tuple[float, float, Path]:
    """From the call until the last program was started; what the whole run computed."""
    called, before = time.time(), computed_s()
    run = context.run(source, where, "--no-probes")
    computed = computed_s() - before
    header, *events = map(json.loads, (run / "events.jsonl").read_text().splitlines())
    last_ns = max(one["started_ns"] for one in events if one["kind"] == "join")
    return (header["start_unix_ns"] + last_ns) / 1e9 - called, computed, run


# --- memory and processors ----------------------------------------------------------------------


def _memory(context: Context, rows: list[Record]) -> None:
    with context.attempt(rows, "Table 3.1: a machine of five idle parts", EXACT):
        source = context.folder / "machines-memory.tdl"
        source.write_text(text(FOUR, FIVE, 60))
        live = _Live(context.folder, source, FOUR * FIVE)
        try:
            sizes = [live.bytes_of(f"sat.{at}") / 1e6 for at in range(FOUR)]
            run_mb = live.run_bytes() / 1e6
            before = live.computed_s()
            time.sleep(_IDLE_S)
            parts, own = (
                100 * (now - then) / _IDLE_S
                for now, then in zip(live.computed_s(), before, strict=True)
            )
        finally:
            live.end()
        what = "Table 3.1: a machine of five idle parts, PSS and what its groups are charged"
        paper = "128 MB, ContainerNet 48 MiB"
        wanted = goal(BELOW, MEMORY_MB)
        rows.append(row(what, EXACT, "MB", max(sizes), None, goal=wanted, paper=paper))
        what = f"Table 3.1: {FOUR} of them, and all processes of the run"
        wanted = goal(BELOW, FOUR_MB)
        rows.append(row(what, EXACT, "MB", sum(sizes) + run_mb, None, goal=wanted, paper="638 MB"))
        what = f"Table 3.1: {FOUR} of them idle, of one processor"
        wanted, paper = goal(BELOW, IDLE_PERCENT), "0.8 %, ContainerNet 0.15 %"
        rows.append(row(what, EXACT, "%", parts, None, goal=wanted, paper=paper))
        what = "Table 3.1: beside them, the run's own processes, which look at them each second"
        rows.append(row(what, EXACT, "%", own, None))


def _starved(context: Context, rows: list[Record]) -> None:
    what = f"Fig. 3.15: of its machine, a part beside one of {_BUSY_PROCESSES} busy processes"
    with context.attempt(rows, what, EXACT):
        folder = context.folder / "starved"
        folder.mkdir()
        for name, count in (("many", _BUSY_PROCESSES - 1), ("one", 0)):
            (folder / f"{name}.py").write_text(BUSY % count)
        source = folder / "starved.tdl"
        source.write_text(
            "node sat cpu=0.5 {\n"
            f'    service many exec="{sys.executable} $TSTORM_START_DIR/many.py"\n'
            f'    service one exec="{sys.executable} $TSTORM_START_DIR/one.py"\n'
            "    link many--one\n}\nat 60s quit\n"
        )
        live = _Live(folder, source, 2)
        try:
            before = live.cpu_s("sat.0.many.0"), live.cpu_s("sat.0.one.0")
            time.sleep(5.0)
            many, one = (live.cpu_s(f"sat.0.{name}.0") - used
                         for name, used in zip(("many", "one"), before, strict=True))  # fmt: skip
        finally:
            live.end()
        paper = "28 % of what it had alone, ContainerNet 2 %"
        share = 100 * one / (many + one)
        rows.append(row(what, EXACT, "%", share, 50.0, goal=goal(LEAST, 0.5), paper=paper))


class _Live:
    """A run that goes on, whose programs have been started."""

    def __init__(self, folder: Path, source: Path, instances: int) -> None:
        self._out = folder / f"live-{source.stem}"
        argv = [sys.executable, "-m", "tstorm", "run", str(source), "--out", str(self._out)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [*argv, "--quiet", "--no-probes"],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + _READY_S
        while self._joins() < instances:
            if time.monotonic() > end or self._process.poll() is not None:
                self.end()
                raise BenchError(f"{source.name} did not start")
            time.sleep(0.1)
        time.sleep(1.0)  # so that what starts is over

    def _joins(self) -> int:
        try:
            return (self._out / "events.jsonl").read_text().count('"kind":"join"')
        except FileNotFoundError:
            return 0

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _groups(self, name: str, controller: str) -> Iterator[Path]:
        """Those of this name, of the run."""
        run_id = json.loads((self._out / "manifest.json").read_bytes())["run_id"]
        places = [_GROUPS / controller, _GROUPS]
        for place in places:
            found = list(place.rglob(f"tstorm-{run_id}")) if place.is_dir() else []
            if found:
                yield from (one for one in found[0].rglob(name) if one.is_dir())
                return
        raise BenchError("no control groups can be made here")

    def bytes_of(self, machine: str) -> int:
        (group,) = self._groups(machine, "memory")
        charged = next(
            int((group / file).read_text())
            for file in ("memory.current", "memory.usage_in_bytes")
            if (group / file).exists()
        )
        pids = [pid for one in group.rglob("cgroup.procs") for pid in one.read_text().split()]
        return charged + sum(map(_pss_bytes, pids))

    def cpu_s(self, instance: str) -> float:
        """What its processes have computed so far."""
        (group,) = self._groups(instance, "cpu")
        return _computed_s((group / "cgroup.procs").read_text().split())

    def run_bytes(self) -> int:
        """PSS of the run's own processes: command, driver, engine, keepers."""
        return sum(map(_pss_bytes, self._others(self._of_machines())))

    def computed_s(self) -> tuple[float, float]:
        """What the machines have computed so far, and what the run's own processes have."""
        of_machines = self._of_machines()
        return _computed_s(of_machines), _computed_s(self._others(of_machines))

    def _of_machines(self) -> set[str]:
        return {
            pid
            for at in range(FOUR)
            for group in self._groups(f"sat.{at}", "memory")
            for one in group.rglob("cgroup.procs")
            for pid in one.read_text().split()
        }

    def _others(self, of_machines: set[str]) -> list[str]:
        return [pid for pid in _descendants(self._process.pid) if pid not in of_machines]


def _descendants(pid: int) -> list[str]:
    """The process and those that it has begun, directly or not."""
    found = [str(pid)]
    for one in found:
        children = Path(f"/proc/{one}/task").glob("*/children")
        found += [child for file in children for child in file.read_text().split()]
    return found


def _computed_s(pids: Iterable[str]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _pss_bytes(pid: str) -> int:
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0
