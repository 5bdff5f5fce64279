"""A running experiment: `tstorm run` in a child process, which ends with this one.

The child and its run die when this process does, however it is killed (tstorm/testing/__main__.py).
What is known of the run comes from its directory; only commands, and in virtual time its clock, are
asked for at its control socket. Every wait has a deadline, and tells the last known state when that
has passed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time as clocks
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from compiler.plan.reader import read_plan
from runtime import say
from runtime.errors import RunError
from runtime.json_schema import REMEDY, parse
from runtime.launch.run_status import inspect
from runtime.options import COMPLETED, FAILED, INTERRUPTED, VIRTUAL, RunOptions, decode
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import (
    EVENTS,
    HEADER,
    LINE_CHECKS,
    MANIFEST,
    MAX_BYTES,
    MAX_LINE_BYTES,
    PLAN,
)
from runtime.schedule import Schedule
from tstorm import units
from tstorm.testing.child import Child, Executed, execute
from tstorm.testing.experiment_errors import DeadlineError, ExperimentError, StartError
from tstorm.testing.finished import Run, readable
from tstorm.testing.request import RunRequest, nanoseconds

__tracebackhide__ = True  # pytest shows the test, not how this was found out
START_SECONDS = 180.0  # to compile, prepare and come to time 0
MORE_SECONDS = 60.0  # than the plan takes: to wind down, on a busy machine
VIRTUAL_SECONDS = 600.0  # how long virtual time takes depends on the programs
STOP_SECONDS = 45.0  # after the first request; the run kills itself after 30
PAUSE_SECONDS = 0.02
ASK_SECONDS = 0.1  # between two questions to a run in virtual time
Found = TypeVar("Found")


def run(
    source: str | Path,
    *,
    seed: int | None = None,
    time: str | None = None,
    hosts: int | None = None,
    until: str | None = None,
    params: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    when: Sequence[str] = (),
    folder: str | Path | None = None,
    out: str | Path | None = None,
    timeout: float = START_SECONDS,
) -> Experiment:
    """Starts an experiment and returns when it has come to time 0 and has done what the plan has
    for that moment: who joins then is there.

    source    a path, or a text of more than one line
    time      "real" or "virtual"
    params    --param NAME=VALUE
    options   further words of `tstorm run`
    when      reactions, `when … { … }`, that are put at the end of a text
    folder    where relative names begin; the present directory unless it is stated
    out       the run directory, absent or empty; a temporary one unless it is stated, which is kept

    StartError if it does not begin, ReactionError if it has a reaction that is none.
    """
    place = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="tstorm-run-")) / "run"
    request = RunRequest(
        source=source,
        folder=Path(folder or ".").absolute(),
        out=place.absolute(),
        seed=seed,
        time=time,
        hosts=hosts,
        until=until,
        params=dict(params or {}),
        options=options,
        when=when,
    )
    found = Experiment(request)
    try:
        found._begin(timeout)
    except BaseException:
        found.kill()
        raise
    return found


class Experiment:
    """Made by `run`. As a context manager it ends the run at the end of the block."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._child = Child(request)
        self._held: RunDirectory | None = None
        self._follower: _EventFollower | None = None
        self._finished: Run | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.stop()

    def __repr__(self) -> str:
        return f"<Experiment {self.directory} {self.state()}>"

    # -- what is known ----------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        return self._request.out

    @property
    def is_running(self) -> bool:
        return self._child.code is None

    @property
    def exit_code(self) -> int | None:
        """What `tstorm run` has ended with (docs/run.md); None: it goes on."""
        return self._child.code

    @property
    def events(self) -> list[dict[str, Any]]:
        """What has been done so far (docs/run.md, events.jsonl)."""
        with readable():
            return list(self._look().events)

    @property
    def at_ns(self) -> int:
        """Plan time now. In virtual time the run is asked, which counts as talking to it."""
        if self._options.time == VIRTUAL:
            with readable():
                found = inspect(str(self.directory))
            if "at_ns" not in found:  # it has just ended, or is about to
                raise ExperimentError(f"the run cannot be asked for its time: it {self.state()}")
            return int(found["at_ns"])
        return self._schedule.clock.plan_time(max(clocks.monotonic_ns() - self._start_ns, 0))

    def said(self) -> str:
        """What `tstorm run` has written on its standard error so far."""
        return self._child.said()

    def state(self) -> str:
        """How far it has come, on one line."""
        if not self.is_running:
            said = self.said().splitlines()
            return f"ended with {self.exit_code}" + (f": {said[-1]}" if said else "")
        if self._follower is None:
            return "has not begun"
        with suppress(RunError):
            self._follower.look()
        done = [one for one in self._follower.events if "applied_ns" in one]
        if not done:
            return f"goes on, nothing was done yet of {self._span()}"
        last = done[-1]
        what = f"{last.get('kind', '')} {last.get('target', '')}".strip()
        moment = units.duration(int(last["applied_ns"]))
        return f"goes on, {len(done)} events of {self._span()}; the last: {what} after {moment}"

    # -- waiting ----------------------------------------------------------------------------------

    def wait_until(self, at: str | int, timeout: float | None = None) -> None:
        """Until this plan time (`"20s"`). In virtual time it is later than that when this returns,
        since time there waits for nobody. `timeout`: seconds of this machine; unless it is stated
        as long as it takes, and a minute more.
        """
        wanted = nanoseconds(at)
        pause = ASK_SECONDS if self._options.time == VIRTUAL else PAUSE_SECONDS
        seconds = self._patience(wanted) if timeout is None else timeout
        self._wait(lambda: self._reached(wanted), units.duration(wanted), seconds, pause)

    def wait_for(
        self, kind: str | None = None, target: str | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """The first event of this kind and target (`kind="crash"`, `target="server.0"`), which may
        have been done before. `timeout` as above, to the end of the plan unless it is stated."""
        if kind is None and target is None:
            raise ValueError("say what to wait for: kind=, target= or both")
        wanted = {"kind": kind, "target": target}
        named = {name: value for name, value in wanted.items() if value is not None}

        def found() -> dict[str, Any] | None:
            fits = (
                one
                for one in self._look().events
                if all(one.get(name) == value for name, value in named.items())
            )
            return next(fits, None)

        seconds = self._patience(self._schedule.end_ns) if timeout is None else timeout
        return self._wait(found, f"an event {' '.join(named.values())}", seconds)

    def finish(self, timeout: float | None = None, *, check: bool = True) -> Run:
        """Waits for the end and reads what it came to. ExperimentError if that is not the end of
        its plan, and not by `stop()`: the run has failed, or was ended from outside. What programs
        or expectations did is told by the Run. `check=False`: no error.
        """
        if self._finished is None:
            seconds = self._patience(self._schedule.end_ns) if timeout is None else timeout
            self._wait_for_end(seconds)
        return self._read(check=check)

    def stop(self) -> Run:
        """Ends the run as ^C does, and reads what it came to."""
        if self.is_running:
            self._stopped = True
            self._child.interrupt()
            if not self._child.wait(STOP_SECONDS):
                self.kill()
        return self._read(check=False)

    def kill(self) -> None:
        """Ends it at once. What was recorded stays, without results."""
        self._child.kill()

    def exec(
        self, instance: str, argv: Sequence[str], *, timeout: float = 60.0, text: str = ""
    ) -> Executed:
        """Runs a command in an instance, with `text` as its input (docs/run.md, tstorm exec).

        A status of 128 + N says that signal N ended it; with 126 or 127 it could not be started.
        ExperimentError if the instance cannot be entered. In virtual time it arrives at a moment
        that no two runs share.
        """
        if isinstance(argv, str):
            raise TypeError(f"a command is a list of words: {argv.split()}")
        words = [str(word) for word in argv]
        try:
            done, refusal = execute(self.directory, instance, words, text, timeout)
        except subprocess.TimeoutExpired as error:
            what = f"{' '.join(words)!r} in {instance} has not ended within {_shown(timeout)}"
            raise DeadlineError(f"{what}; the run {self.state()}") from error
        if refusal:
            raise ExperimentError(
                f"{instance} cannot be entered: {refusal}; the run {self.state()}"
            )
        return done

    def do(self, *actions: str) -> Mapping[str, Any]:
        """Changes the run as `tstorm do` does (docs/live.md): statements of the timeline, together
        one action, which is done whole or not at all. Returns when the run has taken it, with its
        number (`action`), the moment of its first event (`planned_ns`) and how many `events` it
        has. ExperimentError says what is wrong with it: nothing was changed then.
        """
        from compiler.plan.format import PlanError
        from tstorm.live import steer

        text = "\n".join(actions)
        try:
            done = steer.do(str(self.directory), text)
        except steer.ActionError as error:
            why = "; ".join(f"{one.code} {one.message}" for one in error.diagnostics)
            raise ExperimentError(
                f"{text!r} cannot be done: {why}; the run {self.state()}"
            ) from error
        except (RunError, PlanError) as error:
            raise ExperimentError(
                f"{text!r} is not done: {error}; the run {self.state()}"
            ) from error
        return done.told

    # -- inside -----------------------------------------------------------------------------------

    def _begin(self, seconds: float) -> None:
        """Until time 0 is fixed, or the run has ended. StartError, DeadlineError."""
        name, end = self._request.name, clocks.monotonic() + seconds
        while True:
            running = self.is_running  # before the look: what it wrote at its end counts
            if self._has_begun():
                return
            if not running:
                code = self._child.code or 0
                raise StartError(f"{name} does not begin ({code}):\n{self.said()}", code)
            if clocks.monotonic() > end:
                said = self.said() or "it has said nothing"
                raise DeadlineError(f"{name} has not begun within {_shown(seconds)}:\n{said}")
            clocks.sleep(PAUSE_SECONDS)

    def _has_begun(self) -> bool:
        if self._held is None:
            if not os.path.lexists(self.directory / MANIFEST):
                return False
            with readable():
                self._held = rundir.recorded(self.directory)
            self._follower = _EventFollower(self._held)
        with readable():
            seen = self._look()
        if seen.header is None:
            return False
        done = {one["seq"] for one in seen.events if "seq" in one}
        done |= {one["target"] for one in seen.events if one["kind"] == "start"}
        return done >= self._first or not self.is_running

    def _look(self) -> _EventFollower:
        assert self._follower is not None  # _begin has made it
        self._follower.look()
        return self._follower

    def _wait(
        self,
        condition: Callable[[], Found | None],
        what: str,
        seconds: float,
        pause: float = PAUSE_SECONDS,
    ) -> Found:
        """The first value of the condition that is true."""
        end = clocks.monotonic() + seconds
        while True:
            running = self.is_running  # before the look: what it wrote at its end counts
            with readable():
                found = condition()
            if found:
                return found
            if not running:
                raise ExperimentError(f"the run ended before {what}: it {self.state()}")
            if clocks.monotonic() > end:
                raise DeadlineError(f"not within {_shown(seconds)}: {what}; the run {self.state()}")
            clocks.sleep(min(pause, max(end - clocks.monotonic(), 0.001)))

    def _wait_for_end(self, seconds: float) -> None:
        if not self._child.wait(seconds):
            what = f"the run has not ended within {_shown(seconds)}"
            raise DeadlineError(f"{what}: it {self.state()}")

    def _reached(self, wanted: int) -> bool:
        if self.is_running:
            with suppress(ExperimentError):  # in virtual time: it is ending
                return self.at_ns >= wanted
            return False
        done = (int(one["applied_ns"]) for one in self._look().events if "applied_ns" in one)
        return self._schedule.clock.plan_time(max(done, default=-1)) >= wanted

    def _patience(self, until_ns: int) -> float:
        """Seconds of this machine for the plan to get there."""
        if self._options.time == VIRTUAL:
            return VIRTUAL_SECONDS
        due_s = (self._start_ns + self._schedule.clock.due(until_ns)) / 1e9
        return max(due_s - clocks.monotonic(), 0) + MORE_SECONDS

    def _read(self, *, check: bool) -> Run:
        found = self._finished = self._finished or Run(self.directory)
        expected = (COMPLETED, INTERRUPTED) if self._stopped else (COMPLETED,)
        if not check or found.outcome in expected:
            return found
        how = "failed" if found.outcome == FAILED else f"was {found.outcome} from outside"
        why = f": {found.message}" if found.message else ""
        lines = (f"the run {how}{why}", self.said(), found.page_line)
        raise ExperimentError("\n".join(filter(None, lines)))

    @cached_property
    def _options(self) -> RunOptions:
        assert self._held is not None
        with readable():
            return decode(self._held.manifest()["options"], MANIFEST)

    @cached_property
    def _schedule(self) -> Schedule:
        with readable():
            return Schedule(read_plan(self.directory / PLAN, lazy=True), self._options)

    @cached_property
    def _start_ns(self) -> int:
        """Of CLOCK_MONOTONIC; a run that failed before time 0 has none, and none passes."""
        header = self._look().header or {}
        return int(header.get("start_monotonic_ns", clocks.monotonic_ns()))

    @cached_property
    def _first(self) -> frozenset[int | str]:
        """What it begins with: events by their numbers, and who is there without one, by name."""
        begins = self._schedule.steps[0]
        return self._schedule.present.union(one.seq for one in begins.events)

    def _span(self) -> str:
        with suppress(ExperimentError):
            return units.duration(self._schedule.end_ns)
        return "a plan that cannot be read"


def _shown(seconds: float) -> str:
    return say.seconds(round(seconds * 10**9))


class _EventFollower:
    """Events of a run while they are written: each look reads what has come since the one before.
    `header` is None before time 0 is fixed; `events` are all so far."""

    def __init__(self, directory: HeldDirectory) -> None:
        self._directory = directory
        self._read = 0  # bytes
        self._lines = 0
        self.header: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []

    def look(self) -> None:
        """RunError for what is no record of an event."""
        if not self._directory.has(EVENTS):
            return
        most, path = MAX_LINE_BYTES[EVENTS], str(self._directory / EVENTS)
        with self._directory.reading(EVENTS, MAX_BYTES[EVENTS]) as file:
            file.seek(self._read)
            while (line := file.readline(most + 1)).endswith(b"\n"):
                self._read += len(line)
                self._lines += 1
                self._take(line, f"{path}:{self._lines}")
            if len(line) > most:
                raise RunError(f"{path}: a line is longer than {most:,} bytes", REMEDY)

    def _take(self, line: bytes, place: str) -> None:
        record = parse(line, place)
        LINE_CHECKS[EVENTS](record, place)
        if record.get("kind") == HEADER:
            self.header = record
        else:
            self.events.append(record)
