"""Runs a plan: `run()` makes the run directory, starts the driver in namespaces of its own, passes
its progress on, and writes the summary and the report. Nothing it starts outlives it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compiler.plan.parts.expectations import RUN
from compiler.plan.reader import Plan
from runtime.backend import datapath_choice
from runtime.backend.local import environment, outside
from runtime.backend.local.filesystem import scripts
from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.backend.local.local_backend import LocalSettings
from runtime.driver import driver_messages
from runtime.driver.driver_messages import DriverConfig
from runtime.driver.progress import STARTING, Progress, Reporter, ignore
from runtime.errors import MachineError, RunError, fail, unexpected
from runtime.images.preparing import Prepared, Tell, digests, prepared
from runtime.judge.run_end import RunEnd
from runtime.launch import cleanup, registry, starting, stops
from runtime.launch.run_result import RunResult
from runtime.launch.session import Session
from runtime.options import DEFAULTS, FAILED, INTERRUPTED, REAL, RunOptions, RunPlaces
from runtime.rundir import rundir
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import DRIVER_LOG
from runtime.schedule import Schedule
from runtime.system import (
    compiled_programs,
    control_groups,
    namespaces,
    process_limits,
    procs,
)
from runtime.system.memory import Watch, told
from runtime.virtual import forbidden, guest
from runtime.virtual.clockpage import ClockPage
from runtime.virtual.control_exchange import ControlExchange
from runtime.virtual.kernel import kernel_cache
from runtime.virtual.spinning import SpinWatch
from runtime.virtual.standstill import Repetition, Standstill
from runtime.virtual.time_limits import NoPace, RealPace, TimeLimits

STOP_SECONDS = 30.0  # to wind down after the first request to stop
REFUSED = 125  # exit status of tstorm-ns when it fails itself
LOG_TAIL_BYTES = 4096
HERE = RunPlaces()


def run(
    plan: Plan,
    options: RunOptions = DEFAULTS,
    places: RunPlaces = HERE,
    reporter: Reporter = ignore,
    standstill: Standstill | None = None,
    again: Repetition | None = None,
) -> RunResult:
    """Runs a plan to its end and says how it went. Call it from the main thread for clean Ctrl-C.
    In virtual time alone: with a `standstill` it ends there, and what was done by hand is done
    `again`.

    Raises PlanError for the plan, RunError for what is asked, MachineError if the machine refuses.
    """
    places = _placed(places)
    schedule = Schedule(plan, options)
    if not options.on_this_machine:
        raise RunError(f"a run with the backend {options.backend} is not for this machine alone")
    datapath_choice.check(plan, options)
    keeper = compiled_programs.find("tstorm-ns")
    engine = datapath_choice.choose(options, keeper)
    kernel = None if options.time == REAL else kernel_cache.path_for_run()
    cleanup.sweep()
    tell = _teller(schedule, reporter)
    # With signals noted, from here to the end: a run has an outcome however it ends.
    with prepared(plan, options, places, tell) as images, stops.noted() as signals:
        directory, claim = _register(plan, options, places)
        try:
            if images:
                directory.update_manifest(images=digests(images))
            config = _configure(claim.record, directory, options)
            roots = _roots(images)
            elsewhere = _keep_programs(directory, plan, places, roots)
            local = _settings(places, engine, keeper, roots, elsewhere)
            machine = _machine(plan.seed, options, claim.record, keeper, kernel)
            if machine is not None:
                machine = replace(machine, limit_ns=_first_limit(standstill, again))
            session = Session(config.run_id, plan, schedule, options, directory, reporter)
            attempt = _DriverProcess(session, claim, config, local, machine, standstill, again)
            with closing(attempt.memory):
                try:
                    _carry_out(attempt, signals)
                finally:
                    if session.end is None:  # else whoever made them has removed them
                        control_groups.remove_left(claim.record.run_id)
                return _conclude(attempt)
        finally:
            claim.remove()


def _teller(schedule: Schedule, reporter: Reporter) -> Tell:
    """Says what is done before there is a run."""

    def tell(message: str, warning: bool) -> None:
        at_ns = schedule.clock.plan_time(0)
        record = Progress(STARTING, "", "", at_ns, schedule.end_ns, 0, 0, 0)
        reporter(replace(record, message=message, warning=warning))

    return tell


def _roots(found: list[Prepared]) -> dict[str, ImageRoot]:
    """By service."""
    return {
        one.service: ImageRoot(
            lower=str(one.image.root),
            argv=one.start.argv,
            env=one.start.env,
            user=one.start.user,
            cwd=one.start.directory,
            stop=one.start.stop,
            volumes=one.start.volumes,
            ready=one.start.ready,
        )
        for one in found
    }


def _first_limit(standstill: Standstill | None, again: Repetition | None) -> int | None:
    """Beyond which the guest is not to go before somebody looks."""
    moments = [] if standstill is None else [standstill.at_ns]
    return min([*moments, *(again.moments[:1] if again else ())], default=None)


def _placed(places: RunPlaces) -> RunPlaces:
    """With the directories that nobody named."""
    start = places.start_directory or str(Path.cwd())
    source = places.source_directory or start
    return replace(places, start_directory=start, source_directory=source)


def _carry_out(attempt: _DriverProcess, signals: socket.socket) -> None:
    """A run that does not get as far as a driver has an outcome, too. RunError."""
    try:
        attempt.carry_out(signals)
    except (RunError, OSError) as error:
        refusal = unexpected(error) if isinstance(error, OSError) else error
        attempt.session.fail(refusal.message)
        if refusal is error:
            raise
        raise refusal from error


def _register(
    plan: Plan, options: RunOptions, places: RunPlaces
) -> tuple[RunDirectory, registry.RunClaim]:
    """A run directory and a registry entry that are nobody else's."""
    held: list[registry.RunClaim] = []

    def give_up() -> None:
        while held:
            held.pop().remove()

    def is_free(run_id: str, target: Path) -> bool:
        give_up()
        claim = registry.claim(run_id, os.path.realpath(target))
        if claim is not None:
            held.append(claim)
        return claim is not None

    try:
        directory = rundir.begin_new(plan, options, places, is_free=is_free)
    except BaseException:
        give_up()
        raise
    return directory, held[0]


def _configure(
    record: registry.RunRecord, directory: RunDirectory, options: RunOptions
) -> DriverConfig:
    return DriverConfig(
        run_id=record.run_id,
        directory=str(directory.path),
        socket=record.socket,
        options=options,
    )


def _keep_programs(
    directory: RunDirectory, plan: Plan, places: RunPlaces, images: dict[str, ImageRoot]
) -> dict[str, str]:
    """A replay is to run the same. RunError; see scripts.keep."""
    topology = plan.topology
    own = [one for one in topology.services if one.name not in images]
    words = [argv[0] for one in own for argv in (one.exec, one.setup, one.ready) if argv]
    for one in plan.expectations:
        services = {topology.services[topology.nodes[node].service].name for node in one.nodes}
        words += one.argv[:1] if one.kind == RUN and services.isdisjoint(images) else ()
    try:
        return scripts.keep(directory, words, places.source_directory, places.kept_directory)
    except RunError as error:
        with suppress(OSError):
            directory.close_manifest(FAILED, error.message)
        raise


def _settings(
    places: RunPlaces,
    engine: tuple[str, ...],
    keeper: Path,
    images: dict[str, ImageRoot],
    elsewhere: dict[str, str],
) -> LocalSettings:
    return LocalSettings(
        engine=engine,
        nursery=str(keeper),
        start_directory=places.start_directory,
        source_directory=places.source_directory,
        environment=environment.inherited(os.environ),
        elsewhere=elsewhere,
        images=images,
    )


def _machine(
    seed: int, options: RunOptions, record: registry.RunRecord, keeper: Path, kernel: Path | None
) -> guest.Machine | None:
    if kernel is None:
        return None
    return starting.machine(record.socket, kernel, keeper, options, seed)


@dataclass(slots=True)
class _DriverProcess:
    """The driver's process seen from here. After carry_out: what it said and how it ended."""

    session: Session
    claim: registry.RunClaim
    config: DriverConfig
    local: LocalSettings
    machine: guest.Machine | None  # in which it runs in virtual time; None: on this machine's own
    standstill: Standstill | None = None
    again: Repetition | None = None
    status: int = 0
    interrupted: bool = False
    killed: str = ""  # why it did not come to its end
    unfit: bool = False  # this machine for virtual time: the guest's kernel did not get far
    trouble: str = ""  # why we could not go on listening
    memory: Watch = field(default_factory=Watch)
    page: ClockPage | None = None  # in virtual time
    limits: TimeLimits | None = None  # of its time
    exchange: ControlExchange | None = None
    crept: Mapping[str, object] | None = None  # how far time went on beside programs that spin
    talked_to: Counter[str] = field(default_factory=Counter)

    def carry_out(self, signals: socket.socket) -> None:
        """Starts the driver and listens until it has ended. RunError, OSError."""
        try:
            asyncio.run(self._carry_out(signals))
        finally:
            if self.page is not None:
                self.page.close()

    async def _carry_out(self, signals: socket.socket) -> None:
        started = self._start()
        process, self.page = started.process, started.page
        with closing(started.link):
            try:
                keeper = procs.identify(process.pid)
                if keeper is not None:
                    self.claim.set_keeper(keeper)
                await self._listen(started, signals)
            except OSError as error:
                # Mostly it ended before it listened: then its status and its log say why.
                self.trouble = unexpected(error).message
            finally:
                if process.poll() is None and self.session.end is None:
                    process.kill()
                self.status = process.wait()
                if started.outside is not None:
                    started.outside.join(outside.END_SECONDS)
        if self.machine is not None and self.session.end is None:
            self._ask_guest(self.machine)

    def _ask_guest(self, machine: guest.Machine) -> None:
        """How the driver in it ended, or why the guest did before that."""
        status = guest.status_of_driver(machine)
        if status is not None:
            self.status = status
        elif not self.killed and not self.trouble:
            why = guest.why_it_ended(machine, self.status)
            self.unfit = self.status > 0 and self.session.latest is None and not self.interrupted
            self.killed = told(why, self.memory)

    def _start(self) -> starting.Started:
        if self.machine is None:
            services = self.session.plan.topology.services
            outside = any(one.gateway or one.external is not None for one in services)
            return starting.in_sandbox(
                self.config, self.local, self.session.directory, leads_outside=outside
            )
        return starting.in_guest(self.config, self.local, self.session.directory, self.machine)

    async def _listen(self, started: starting.Started, signals: socket.socket) -> None:
        """Until the other end closes."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if started.page is not None:
            self.limits = self._hold_time(started.page)
            self.exchange = ControlExchange(
                Path(self.config.socket),
                started.link.send,
                self._note_request,
                self.limits,
                (RealPace if self.standstill is None else NoPace)(self.limits),
                lambda: self.session.t0_ns,
                self._tell,
            )
        _watch(signals, lambda: self._stop(started, signals), over)
        _watch(started.link, lambda: self._take(started.link, over), over)
        spinning = asyncio.ensure_future(self._look_after(started, over))
        still = asyncio.ensure_future(self._stand_still(started, over))
        try:
            await over
        finally:
            spinning.cancel()
            still.cancel()
            if self.exchange is not None:
                await self.exchange.close()

    async def _look_after(self, started: starting.Started, over: asyncio.Future[None]) -> None:
        """As long as it runs: whether a program in there holds virtual time."""
        try:
            await self._look_for_spinners(started)
        except Exception as error:
            fail(over, error)

    def _hold_time(self, page: ClockPage) -> TimeLimits:
        limits = TimeLimits(page)
        for one in (self.standstill, self.again):
            if one is not None:
                one.hold(limits)
        return limits

    async def _stand_still(self, started: starting.Started, over: asyncio.Future[None]) -> None:
        still, again, limits = self.standstill, self.again, self.limits
        if limits is None:
            return
        begun = lambda: self.session.latest is not None  # noqa: E731
        control = Path(self.config.socket)
        try:
            if again is not None:
                await again.take_place(limits, self.session.directory.path, control, begun)
            if still is None:
                return
            await still.take_place(limits, control, begun)
        except Exception as error:
            fail(over, error)
            return
        if not self.interrupted:
            self.interrupted = True
            limits.end()
            started.link.send({"stop": True})

    async def _look_for_spinners(self, started: starting.Started) -> None:
        if started.page is None:
            return
        options, process = self.config.options, started.process
        limit_s = options.spin_limit_ns / 1e9
        watch = SpinWatch(started.page, process.pid, options.on_spin, limit_s)
        while True:
            await asyncio.sleep(watch.pause_s)
            try:
                told_now = watch.look()
            except RunError as error:
                self._kill(process, f"{error.message}; {error.remedy}")
                return
            self.crept = watch.crept()
            if told_now:
                self._tell(told_now)

    def _tell(self, words: str) -> None:
        """What is to be seen even by who wants no progress."""
        if self.session.latest is not None:
            self.session.reporter(replace(self.session.latest, message=words, warning=True))

    def _note_request(self, what: str) -> None:
        """A run that somebody talked to goes another way than one that was left alone."""
        self.talked_to[what] += 1
        with suppress(OSError):  # a disk is full: that is found out where it matters
            self.session.directory.update_manifest(talked_to=dict(sorted(self.talked_to.items())))

    def _stop(self, started: starting.Started, signals: socket.socket) -> None:
        """The first signal asks to stop, the second kills."""
        signals.recv(64)
        if self.interrupted:
            self._kill(started.process, "interrupted twice: killed before it had wound down")
            return
        self.interrupted = True
        if self.limits is not None:
            self.limits.end()
        started.link.send({"stop": True})
        why = f"killed: it had not wound down after {STOP_SECONDS:.0f} s"
        asyncio.get_running_loop().call_later(STOP_SECONDS, self._kill, started.process, why)

    def _kill(self, process: subprocess.Popen[bytes], reason: str) -> None:
        process.kill()
        self.killed = self.killed or reason

    def _take(self, link: starting.DriverLink, over: asyncio.Future[None]) -> None:
        found = link.receive()
        for message in found or []:
            self._hear(message)
        if found is None and not over.done():
            over.set_result(None)

    def _hear(self, message: Mapping[str, Any]) -> None:
        said = driver_messages.read(message)
        if said is not None:
            self.session.hear(said)
        elif "call" in message and self.exchange is not None:
            self.exchange.hear(message)

    def log_tail(self) -> str:
        """The last line the driver's processes have written to stderr."""
        try:
            data = self.session.directory.tail(DRIVER_LOG, LOG_TAIL_BYTES)
        except RunError:
            return ""
        lines = data.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _watch(
    source: socket.socket | starting.DriverLink,
    action: Callable[[], None],
    over: asyncio.Future[None],
) -> None:
    """Acts whenever something has arrived. What goes wrong there ends it all."""

    def act() -> None:
        try:
            action()
        except Exception as error:
            fail(over, error)

    asyncio.get_running_loop().add_reader(source, act)


def _conclude(attempt: _DriverProcess) -> RunResult:
    """Writes summary, report and outcome. Raises MachineError if the machine refused something."""
    session = attempt.session
    outcome = INTERRUPTED if attempt.interrupted else FAILED
    end = session.end or RunEnd(outcome, _why(attempt))
    if attempt.crept:
        end = end.with_facts(crept=attempt.crept)
    summary = session.results(end)
    if session.end is None and attempt.status == REFUSED and not attempt.interrupted:
        refusal = attempt.log_tail().removeprefix("tstorm-ns: ")
        remedy = process_limits.remedy_for(refusal) or namespaces.refusal_remedy()
        raise MachineError(f"this machine refuses what a run needs: {refusal}", remedy)
    if attempt.unfit:
        known = (attempt.killed, "`tstorm doctor` tries it")
        why, remedy = next(iter(forbidden.refusals()), known)
        raise MachineError(f"this machine refuses what virtual time needs: {why}", remedy)
    return session.result(end, summary)


def _why(attempt: _DriverProcess) -> str:
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
