"""Phases of a test run: commands that pass or fail, counted, timed and kept for `scripts/slowest`.

A lane carries phases out one after the other. The first lane writes to the terminal as it goes on;
what a lane beside it writes is held back and printed whole at the end of both, so that neither is
torn. A test that fails where others run beside it is carried out once more when nothing does
(`look_again`): it has passed if it passes then, and the last line names it. What a run leaves is in
`folder()`: a JUnit file of each phase of pytest, and phases.json with an Entry for each phase in
the order of their ends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from runtime.system import caching

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = ("--durations=10", "--durations-min=10")  # seconds: where a suite that grows takes them
NO_TESTS = 5  # pytest's exit code when a selection is empty
PHASES = "phases.json"
LAST = 19  # nice(2): behind everybody else
DOUBTFUL = (
    12  # so many failures at most are a machine that was busy, and not a change that is wrong
)


def folder() -> Path:
    """What the last whole run has left."""
    return caching.folder("tests", "reports of tests")


def emptied() -> Path:
    """The same, for a run that begins."""
    place = folder()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


@dataclass(frozen=True, slots=True)
class Entry:
    """One phase. `seconds` by the clock and of processors: its own and its children's, and
    `machine_seconds` everybody's while it ran, as daemons' of a cluster and phases' beside it."""

    name: str
    began_s: float  # since the run began
    seconds: float
    processor_seconds: float
    machine_seconds: float
    report: str = ""  # its JUnit file in the folder, if it is a phase of pytest


@dataclass(frozen=True, slots=True)
class Outcome:
    """Names of tests, as pytest takes them: FILE::TEST."""

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()


def outcome(report: Path) -> Outcome:
    """Of a JUnit file as pytest writes it, where a test that fails twice (itself and in its
    tear-down) has two entries."""
    found: dict[str, set[str]] = {"failed": set(), "skipped": set(), "passed": set()}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        words = {inside.tag for inside in case}
        failed = bool(words & {"failure", "error"})
        state = "failed" if failed else "skipped" if "skipped" in words else "passed"
        found[state].add(f"{file_of(case)}::{case.get('name')}")
    for better, worse in (("passed", "skipped"), ("passed", "failed"), ("skipped", "failed")):
        found[better] -= found[worse]
    return Outcome(**{state: frozenset(names) for state, names in found.items()})


def file_of(case: ElementTree.Element) -> str:
    """The file of an entry of a JUnit file."""
    return str(case.get("classname")).replace(".", "/") + ".py"


Again = Callable[["Lane", tuple[str, ...]], Outcome]  # carries these tests of a phase out once more


@dataclass
class Record:
    """What a run comes to. Lanes write to it side by side; a step counts as one test. `place` is
    where reports are kept, if they are."""

    place: Path | None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: list[str] = field(default_factory=list)  # names of phases
    doubtful: list[tuple[frozenset[str], Again]] = field(default_factory=list)  # of each phase
    only_alone: list[str] = field(default_factory=list)  # tests
    entries: list[Entry] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)
    stopped: bool = False  # no lane begins another phase
    lock: threading.Lock = field(default_factory=threading.Lock)

    def minutes(self) -> float:
        return (time.monotonic() - self.began_s) / 60

    def add(self, passed: int = 0, failed: int = 0, skipped: int = 0) -> None:
        with self.lock:
            self.passed += passed
            self.failed += failed
            self.skipped += skipped

    def look_again(self, lane: Lane) -> None:
        """Carries out what has failed once more, one test after the other. `lane` counts
        elsewhere. A change that makes many fail gets no second look."""
        if sum(len(tests) for tests, _ in self.doubtful) <= DOUBTFUL:
            for tests, again in self.doubtful:
                passed = sorted(tests & again(lane, tuple(sorted(tests))).passed)
                self.add(passed=len(passed), failed=-len(passed))
                self.only_alone += passed

    def keep(self, entry: Entry, report: Path | None) -> None:
        """phases.json appears whole, after each phase: a run that is killed has what it did."""
        if self.place is None:
            return
        with self.lock:
            if report is not None and report.exists():
                name = "".join(c if c.isalnum() else "-" for c in entry.name)
                entry = replace(entry, report=f"{name}.xml")
                shutil.copy(report, self.place / entry.report)
            self.entries.append(entry)
            draft = self.place / f"{PHASES}.new"
            draft.write_text(json.dumps([asdict(one) for one in self.entries], indent=1) + "\n")
            draft.replace(self.place / PHASES)

    def closing(self) -> str:
        minutes, seconds = divmod(round(time.monotonic() - self.began_s), 60)
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        unsteady = f"; PASSED ONLY ALONE: {', '.join(self.only_alone)}" if self.only_alone else ""
        missing = f"; LEFT OUT: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{counts} in {minutes}m{seconds:02d}s{unsteady}{missing}"


class Lane:
    """Phases one after the other; the same record for all lanes."""

    def __init__(self, record: Record, output: IO[str] | None = None) -> None:
        self.record = record
        self._output = output  # None: the terminal's

    def say(self, text: str) -> None:
        print(f"\n== {text}", file=self._output, flush=True)

    def skip(self, name: str, why: str, *, fails: bool = False) -> None:
        """A phase that cannot be: a failure if somebody asked for it."""
        self.say(f"{name}: {'FAILED' if fails else 'skipped'}: {why}")
        self.record.add(failed=int(fails), skipped=int(not fails))

    def step(self, name: str, argv: list[str], cannot: int = 0) -> None:
        """Runs one command that passes or fails as a whole; `cannot` is its status where this
        machine is not made for it, which has said why."""
        status = self._run(name, argv)
        if status == 0:
            self.record.add(passed=1)
        elif status == cannot:
            self.record.add(skipped=1)
        else:
            self.record.add(failed=1)
            self._print(f"FAILED: {name}")

    def suite(
        self,
        name: str,
        arguments: list[str],
        prefix: tuple[str, ...] = (),
        again: Again | None = None,
    ) -> Outcome:
        """Runs pytest and counts. A pytest that dies without a report counts as one failure.
        `again`: where `prefix` serves no longer than this call."""
        with tempfile.TemporaryDirectory(prefix="tstorm-tests-") as place:
            Path(place).chmod(0o777)
            report = Path(place) / "report.xml"
            pytest = [sys.executable, "-m", "pytest", f"--junitxml={report}", *SLOWEST]
            code = self._run(name, [*prefix, *pytest, *arguments], report)
            found = outcome(report) if report.exists() else Outcome()
        self.record.add(len(found.passed), len(found.failed), len(found.skipped))
        if code not in (0, NO_TESTS) and not found.failed:
            self.record.add(failed=1)
            self._print(f"FAILED: {name}: pytest ended with status {code}")
        if found.failed:

            def alone(lane: Lane, tests: tuple[str, ...]) -> Outcome:
                return lane.suite(f"{name}, once more", list(tests), prefix)

            self.record.doubtful.append((found.failed, again or alone))
        return found

    def _run(self, name: str, argv: list[str], report: Path | None = None) -> int:
        if self.record.stopped:
            raise KeyboardInterrupt
        self.say(name)
        began_s, busy_s = time.monotonic(), machine_busy_s()
        with subprocess.Popen(argv, cwd=ROOT, stdout=self._output, stderr=self._output) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds, processors = time.monotonic() - began_s, used.ru_utime + used.ru_stime
        busy_s = machine_busy_s() - busy_s
        entry = Entry(name, began_s - self.record.began_s, seconds, processors, busy_s)
        self.record.keep(entry, report)
        self._print(f"-- {name}: {seconds:.0f} s, {processors:.0f} s of processors")
        return process.returncode

    def _print(self, text: str) -> None:
        print(text, file=self._output, flush=True)


def machine_busy_s() -> float:
    """Seconds of all processors since the machine began, by proc_stat(5): what was not idle."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def make_way() -> None:
    """Leaves the first half of the processors to others, and the rest as far as they want it: for
    this thread and what it starts from now on."""
    here = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, here[len(here) // 2 :])
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LAST)


@contextmanager
def beside(record: Record, carry_out: Callable[[Lane], None]) -> Iterator[None]:
    """Carries a lane out beside what the context does, and prints what it said at the end of both.
    The lane is waited for in any case: it may have a cluster to take down."""
    failures: list[BaseException] = []
    with tempfile.TemporaryFile("w+") as output:

        def work() -> None:
            try:
                carry_out(Lane(record, output))
            except BaseException as error:  # told to who waits
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        except BaseException:
            record.stopped = True
            raise
        finally:
            thread.join()
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout)
            sys.stdout.flush()
    if failures:
        raise failures[0]
