"""Runs a plan: `run()` makes the run directory, starts the driver in namespaces of its own, passes
its progress on, and writes the summary and the report. Nothing it starts outlives it.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from compiler.plan.reader import Plan
from runtime.backend import choice
from runtime.backend.local import environment
from runtime.backend.local.backend import LocalSettings
from runtime.driver import messages
from runtime.driver.config import DriverConfig
from runtime.driver.progress import Reporter, from_record, ignore
from runtime.errors import MachineError, RunError, unexpected, unwritten
from runtime.launch import cleanup, conclude, registry, stops
from runtime.options import DEFAULTS, FAILED, LOCAL, RunOptions, RunPlaces, RunResult
from runtime.results.summary import failed_exits
from runtime.rundir import rundir
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import DRIVER_LOG, HOSTS
from runtime.schedule import Schedule
from runtime.system import namespaces, procs, programs, shortage
from runtime.system.memory import Watch, told

STOP_SECONDS = 30.0  # to wind down after the first request to stop
REFUSED = 125  # exit status of tstorm-ns when it fails itself
LOG_TAIL_BYTES = 4096
HERE = RunPlaces()


def run(
    plan: Plan,
    options: RunOptions = DEFAULTS,
    places: RunPlaces = HERE,
    reporter: Reporter = ignore,
) -> RunResult:
    """Runs a plan to its end and says how it went. Call it from the main thread for clean Ctrl-C.

    Raises PlanError for the plan, RunError for what is asked, MachineError if the machine refuses.
    """
    places = _placed(places)
    timeline = Schedule(plan, options)
    if options.backend != LOCAL:
        raise RunError(f"a run with the backend {options.backend} is not for this machine alone")
    choice.check(plan, options)
    keeper = programs.find("tstorm-ns")
    engine = choice.choose(options, keeper)
    cleanup.sweep()
    with stops.noted() as signals:  # from here to the end: a run has an outcome however it ends
        directory, claim = _register(plan, options, places)
        try:
            config = _configure(claim.record, directory, options)
            local = _settings(places, engine, keeper)
            attempt = _Attempt(claim, directory, config, local, reporter)
            with closing(attempt.memory):
                _carry_out(attempt, signals)
                return _conclude(attempt, plan, timeline)
        finally:
            claim.remove()


def _placed(places: RunPlaces) -> RunPlaces:
    """With the directories that nobody named."""
    start = places.start_directory or str(Path.cwd())
    source = places.source_directory or start
    return replace(places, start_directory=start, source_directory=source)


def _carry_out(attempt: _Attempt, signals: socket.socket) -> None:
    """A run that does not get as far as a driver has an outcome, too. RunError."""
    try:
        attempt.carry_out(signals)
    except (RunError, OSError) as error:
        refusal = unexpected(error) if isinstance(error, OSError) else error
        with suppress(OSError):
            attempt.directory.close_manifest(FAILED, refusal.message)
        if refusal is error:
            raise
        raise refusal from error


def _register(
    plan: Plan, options: RunOptions, places: RunPlaces
) -> tuple[RunDirectory, registry.Claim]:
    """A run directory and a registry entry that are nobody else's."""
    name = rundir.experiment_name(places.name)
    stamp = rundir.utc_stamp()
    for attempt in range(1, 1000):
        default = rundir.default_path(name, stamp, attempt)
        target = places.out or default
        claim = registry.claim(default.name, os.path.realpath(target))
        if claim is None:
            continue
        try:
            directory = rundir.begin(
                target, plan, rundir.manifest(claim.record.run_id, plan, options, places, name)
            )
        except FileExistsError as error:
            claim.remove()
            if places.out is not None:
                raise rundir.in_use(target) from error
            continue
        except BaseException:
            claim.remove()
            raise
        return directory, claim
    raise RunError("there are too many runs of this name")


def _configure(
    record: registry.Record, directory: RunDirectory, options: RunOptions
) -> DriverConfig:
    return DriverConfig(
        run_id=record.run_id,
        directory=str(directory.path),
        socket=record.socket,
        options=options,
    )


def _settings(places: RunPlaces, engine: tuple[str, ...], keeper: Path) -> LocalSettings:
    return LocalSettings(
        engine=engine,
        nursery=str(keeper),
        start_directory=places.start_directory,
        source_directory=places.source_directory,
        environment=environment.inherited(os.environ),
    )


@dataclass(slots=True)
class _Attempt:
    """The driver's process seen from here. After carry_out: what it said and how it ended."""

    claim: registry.Claim
    directory: RunDirectory
    config: DriverConfig
    local: LocalSettings
    reporter: Reporter
    started: dict[str, Any] | None = None
    final: dict[str, Any] | None = None
    status: int = 0
    interrupted: bool = False
    killed: str = ""  # why we did not wait for its end
    trouble: str = ""  # why we could not go on listening
    started_ns: int = field(default_factory=time.monotonic_ns)
    setup_ns: int = 0
    memory: Watch = field(default_factory=Watch)

    def carry_out(self, signals: socket.socket) -> None:
        """Starts the driver and listens until it has ended."""
        ours, theirs = messages.pair()
        with ours:
            process = self._start(theirs)
            theirs.close()
            try:
                keeper = procs.identify(process.pid)
                if keeper is not None:
                    self.claim.set_keeper(keeper)
                first = {"driver": asdict(self.config), "local": asdict(self.local)}
                ours.send(messages.encode(first))
                self._listen(ours, signals, process)
            except OSError as error:
                # Mostly it ended before it listened: then its status and its log say why.
                self.trouble = unexpected(error).message
            finally:
                if process.poll() is None and self.final is None:
                    process.kill()
                self.status = process.wait()

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        hosts = ("--hosts", str(self.directory / HOSTS))
        argv = namespaces.sandbox(self.local.nursery, *hosts)
        argv += [sys.executable, "-P", "-m", "runtime.driver", str(theirs.fileno())]
        try:
            log = os.fdopen(self.directory.append_to(DRIVER_LOG), "ab")
        except OSError as error:
            raise unwritten(error) from error
        with log:
            return shortage.start(
                "the run's first process (tstorm-ns)",
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment.of_driver(os.environ),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # ^C is for us: we tell the driver
            )

    def _listen(
        self, ours: socket.socket, signals: socket.socket, process: subprocess.Popen[bytes]
    ) -> None:
        """Until the other end closes. The first signal asks to stop, the second kills."""
        deadline: float | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(ours, selectors.EVENT_READ)
            selector.register(signals, selectors.EVENT_READ)
            while True:
                wait = None if deadline is None else max(deadline - time.monotonic(), 0.0)
                ready = selector.select(wait)
                if any(key.fileobj is signals for key, _ in ready):
                    signals.recv(64)
                    if self.interrupted:
                        self._kill(process, "interrupted twice: killed before it had wound down")
                    else:
                        ours.send(messages.encode({"stop": True}))
                    self.interrupted = True
                    deadline = time.monotonic() + STOP_SECONDS
                elif not ready:
                    waited = f"{STOP_SECONDS:.0f} s"
                    self._kill(process, f"killed: it had not wound down after {waited}")
                if any(key.fileobj is ours for key, _ in ready) and not self._take(ours):
                    return

    def _kill(self, process: subprocess.Popen[bytes], reason: str) -> None:
        process.kill()
        self.killed = self.killed or reason

    def _take(self, ours: socket.socket) -> bool:
        message = messages.receive(ours)
        if message is None:
            return False
        if "progress" in message:
            self.reporter(from_record(message["progress"]))
        elif "started" in message:
            self.started = message["started"]
            self.setup_ns = time.monotonic_ns() - self.started_ns
            self.directory.update_manifest(**message["started"], setup_ns=self.setup_ns)
        elif "final" in message:
            self.final = message["final"]
        return True

    def log_tail(self) -> str:
        """The last line the driver's processes have written to stderr."""
        try:
            data = self.directory.tail(DRIVER_LOG, LOG_TAIL_BYTES)
        except RunError:
            return ""
        lines = data.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _conclude(attempt: _Attempt, plan: Plan, timeline: Schedule) -> RunResult:
    """Writes summary, report and outcome. Raises MachineError if the machine refused something."""
    final = attempt.final or {
        "outcome": "interrupted" if attempt.interrupted else FAILED,
        "message": _why(attempt),
        "facts": {},
        "refused": False,
    }
    options = attempt.config.options
    summary = conclude.results(attempt.directory, plan, timeline, options, final)
    if attempt.final is None and attempt.status == REFUSED and not attempt.interrupted:
        refusal = attempt.log_tail().removeprefix("tstorm-ns: ")
        remedy = shortage.remedy_for(refusal) or namespaces.refusal_remedy()
        raise MachineError(f"this machine refuses what a run needs: {refusal}", remedy)
    if final["refused"]:
        raise MachineError(str(final["message"]))
    return RunResult(
        outcome=str(final["outcome"]),
        run_id=attempt.config.run_id,
        directory=attempt.directory.path,
        message=str(final["message"]),
        summary=summary,
        programs_failed=options.fail_on_exit and bool(failed_exits(summary["exits"])),
    )


def _why(attempt: _Attempt) -> str:
    if attempt.killed:
        return attempt.killed
    if attempt.status < 0 and attempt.trouble:
        return f"tstorm could not go on: {attempt.trouble}"
    if attempt.status < 0:
        killed = f"the run's first process was killed by signal {-attempt.status}"
        return told(killed, attempt.memory)
    tail = attempt.log_tail()
    if attempt.status > 128 and not tail:
        return told(f"the driver was killed by signal {attempt.status - 128}", attempt.memory)
    return f"the driver ended with status {attempt.status}" + (f": {tail}" if tail else "")
