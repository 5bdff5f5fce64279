"""Rates, shares and times of real packets are judged when the machine had time for them.

A machine that does something else meanwhile is late with packets, and then rates and times are
other ones, rightly. So what does not hold is a failure only if everything was in time: packets and
agents by what they count themselves, and programs by a thread that sleeps as they do. Else it is
tried again; a machine that never has time skips the test and says so. Nothing is expected less
exactly for that.

In virtual time there is no machine that could be late: where the kernel for it is there, `exactly`
carries a trial out once.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.errors import MachineError
from runtime.virtual.kernel import kernel_cache
from tests.runs.runlog import IncompleteRunError

TRIES = 3
MS = 1_000_000
SLEEP_S = 0.01
# Ten times what a machine with nothing else to do shows, a tenth of what a busy one does.
PACKET_P99_NS, PACKET_MAX_NS = 1 * MS, 20 * MS  # packets of an engine or datapath
TICK_NS = 20 * MS  # an agent looks every 25 ms
SLEEPER_NS, SLEEPER_SUM_PERCENT = 50 * MS, 20  # the thread: once, and of all its time


class Attempt:
    """One of the tries. `runs` are the directories of its runs, as far as they have come.

    options      how its runs are to be asked for: "time", by its name in RunOptions
    late_steps   what agents were late with by their own account, in words
    """

    def __init__(self, number: int, **options: str) -> None:
        self._number = number
        self.options = options
        self._runs: list[Path] = []
        self._late_ns: list[int] = []
        self.late_steps: list[str] = []

    def name(self, text: str) -> str:
        """One that no other attempt has."""
        return f"{text}{self._number}" if self._number else text

    def saw(self, run: Path) -> Path:
        """A run of this attempt, whose counters are heard if it is judged to be wrong."""
        self._runs.append(run)
        return run

    @property
    def flags(self) -> list[str]:
        """The same for a command line."""
        return [word for name, value in self.options.items() for word in (f"--{name}", value)]

    def why_late(self) -> str:
        """'' if everything was in time."""
        found = [*self.late_steps, *(reason for run in self._runs for reason in _late(run))]
        worst, whole = max(self._late_ns, default=0), sum(self._late_ns)
        slept = len(self._late_ns) * SLEEP_S * 1e9
        if worst > SLEEPER_NS or whole * 100 > slept * SLEEPER_SUM_PERCENT:
            found.append(f"a sleeping thread woke up to {worst / MS:.0f} ms late")
        return "; ".join(found)

    @contextmanager
    def watching(self) -> Iterator[None]:
        done = threading.Event()

        def sleep() -> None:
            while not done.is_set():
                due = time.monotonic_ns() + round(SLEEP_S * 1e9)
                time.sleep(SLEEP_S)
                self._late_ns.append(max(time.monotonic_ns() - due, 0))

        thread = threading.Thread(target=sleep)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def in_time(trial: Callable[[Attempt], object]) -> None:
    """Carries `trial` out, which asserts; again if it was wrong and late."""
    reasons = []
    for number in range(TRIES):
        attempt = Attempt(number)
        try:
            with attempt.watching():
                trial(attempt)
            return
        except (AssertionError, IncompleteRunError) as error:
            late = attempt.why_late()
            if not late:
                raise
            reasons.append(late)
            print(f"attempt {number} does not count ({late}): {error}")  # pytest shows it
    pytest.skip(f"the machine was too busy {TRIES} times: {reasons[-1]}")


def exactly(trial: Callable[[Attempt], object]) -> None:
    """The same in virtual time, where the kernel for it is there: once, and what is wrong is a
    failure. `trial` gives its runs the attempt's options. Else as `in_time`."""
    if kernel() is None:
        in_time(trial)
    else:
        trial(Attempt(0, time="virtual"))


@functools.cache
def kernel() -> Path | None:
    """The kernel for virtual time, where any user may read it; None: it was not built."""
    try:
        found = kernel_cache.path_for_run()
    except MachineError:
        return None
    # By its content: one of another release may lie there from before.
    place = (
        Path(tempfile.gettempdir())
        / f"kernel-for-virtual-time-{kernel_cache.digest_of(found)[:16]}"
    )
    if not place.exists():
        draft = place.with_suffix(f".{os.getpid()}")
        shutil.copyfile(found, draft)
        draft.chmod(0o755)
        draft.rename(place)
    return place


def environment() -> dict[str, str]:
    """By which runs find it, whoever's they are."""
    found = kernel()
    return {} if found is None else {"TSTORM_KERNEL": str(found)}


def _late(run: Path) -> Iterator[str]:
    try:
        summary = json.loads((run / "summary.json").read_text())
    except (OSError, ValueError):
        return  # it did not come to its end: then there are no rates to judge
    engine = summary.get("engine", {})
    p99, worst = int(engine.get("late_p99_ns", 0)), int(engine.get("late_max_ns", 0))
    if p99 > PACKET_P99_NS or worst > PACKET_MAX_NS:
        yield f"packets were late: 1 % by {p99 / MS:.1f} ms, up to {worst / MS:.0f} ms"
    for host in summary.get("hosts", ()):
        loop = host.get("loop", {})
        if loop.get("overruns", 0) or loop.get("late_max_ns", 0) > TICK_NS:
            yield f"the agent of {host['name']} was late by {loop['late_max_ns'] / MS:.0f} ms"
