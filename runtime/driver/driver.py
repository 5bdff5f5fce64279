"""The driver: carries the plan out, wherever its backend has the instances.

It is the first process inside a run's namespaces (runtime.driver.__main__). What it says goes to a
channel: progress records, `{"started": …}`; what `carry_out` returns is the run's end.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from compiler.plan.format import PlanError
from compiler.plan.reader import read_plan
from runtime.backend.base import (
    Counters,
    Effect,
    MakeBackend,
    RunContext,
    RunNetwork,
)
from runtime.driver import status
from runtime.driver.driver_messages import DriverConfig, RunStarted, Said
from runtime.driver.expectedruns import ExpectedRuns
from runtime.driver.link_requests import LinkRequests
from runtime.driver.machinewatch import MachineWatch
from runtime.driver.programends import ProgramEnds
from runtime.driver.progress import RUNNING, STARTING, STOPPING
from runtime.driver.reactions import Reactions
from runtime.driver.steering import Steering
from runtime.driver.timelinerunner import TimelineRunner
from runtime.errors import MachineError, ProgramsError, RunError, fail, unexpected, unwritten
from runtime.expectations import kept_files, measured_figures
from runtime.judge.lateness import DRIVER
from runtime.judge.pulse import Pulse
from runtime.judge.run_end import RunEnd
from runtime.options import COMPLETED, FAILED, INTERRUPTED, REAL
from runtime.probing.probe_record import why_not
from runtime.results.loglines import last_line
from runtime.rpc.control import ControlServer, Given, Reply, answered_by
from runtime.rundir import discard
from runtime.rundir.eventlog import EventLog
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import DRIVER_LOG, EVENTS, PROBES, SAMPLES
from runtime.schedule import Schedule
from runtime.system.memory import Watch, told
from runtime.system.realtime import timers
from runtime.system.realtime.rt_throttle import prefer


class FollowerChannel(Protocol):
    """Who follows the run. `stop` is set when the run is to end."""

    stop: asyncio.Event

    def report_seconds(self, planned_seconds: float) -> float:
        """How long to wait from one regular progress record to the next, in a run that is to take
        so long."""

    def send(self, said: Said) -> None:
        """Waits for nobody and raises nothing."""


class Driver:
    """One run, from set-up to the end."""

    def __init__(
        self,
        config: DriverConfig,
        make_backend: MakeBackend,
        channel: FollowerChannel,
        log: IO[bytes],
    ) -> None:
        self.config = config
        self.channel = channel
        self._held = held = HeldDirectory.hold(Path(config.directory))
        self.plan = read_plan(config.plan, lazy=True)
        self.schedule = Schedule(self.plan, config.options)
        self._log = log
        self._memory = Watch()
        self.trouble = ""  # why the run's own files are not complete
        try:
            self.events = EventLog(LineFile(held, EVENTS, self._cannot_write))
            self.samples = LineFile(held, SAMPLES, self._cannot_write)
        except OSError as error:
            raise unwritten(error) from error
        self.ends = ProgramEnds(
            self.plan.topology.services,
            config.options,
            held,
            self._memory,
            self.report,
            lambda: self.timeline_runner,
        )
        self.backend = make_backend(self._context(log))
        self.link_requests = LinkRequests(
            self.plan,
            self.schedule,
            lambda: self.backend.network if self.timeline_runner.t0_ns else None,
            self._elapsed,
            self._done,
        )
        self.timeline_runner: TimelineRunner = TimelineRunner(
            self.plan,
            self.schedule,
            self.backend.instances,
            self._done,
            self.warn,
            self.ends.failed,
            self.report,
            self.link_requests.listen,
        )
        self.prober = self.backend.prober(self._probes(), self.report, self._unprobed)
        self.expected_runs = ExpectedRuns(
            self.plan, self.schedule, self.backend.instances, self.timeline_runner.book
        )
        self.steering = Steering(
            Path(config.directory),
            config.options,
            self.timeline_runner,
            lambda: self.backend.network,
            self._done,
            self._follow,
        )
        self.reactions = Reactions(
            config, self.plan, self.steering, self.timeline_runner, self._done, self.warn
        )
        self.pulse = Pulse(DRIVER, self._stalled)
        step_ns = config.options.faults.get("driver", {}).get("clock_step_ns", 0)
        self.machine = MachineWatch(self.backend.instances, self._elapsed, step_ns)
        self.watching: set[asyncio.Task[None]] = set()
        self.control: ControlServer | None = None
        self.sampler: Counters | None = None
        self.sampling: asyncio.Task[None] | None = None
        self.facts: dict[str, Any] = {}
        self.phase = STARTING
        self.refused = False  # by this machine: a failure that is not the experiment's
        self.programs_failed = False  # which has ended the run

    # -- set-up ---------------------------------------------------------------------------------

    def _context(self, log: IO[bytes]) -> RunContext:
        return RunContext(
            run_id=self.config.run_id,
            directory=Path(self.config.directory),
            plan=self.plan,
            schedule=self.schedule,
            options=self.config.options,
            log=log,
            log_name=str(Path(self.config.directory) / DRIVER_LOG),
            record=self.events.append,
            notice=self.report,
            warn=self.warn,
            on_effect=self._on_effect,
            on_ended=self.ends.ended,
            on_killed=self.ends.killed,
            on_overdue=self.ends.overdue,
            on_oom_kill=self.ends.oom_kill,
            cannot_write=self._cannot_write,
            on_file=self._file_changed,
        )

    def _file_changed(self, target: str, path: str, how: str, elapsed_ns: int) -> None:
        self.reactions.hear_of_file(target, path, how, elapsed_ns)

    async def set_up(self) -> RunNetwork:
        """Everything up to T0. Raises RunError."""
        self.control = ControlServer(Path(self.config.socket), answered_by(self._answer))
        await self.reactions.start(self._log)
        network = await self.backend.start()
        await self.prober.start(self._log)
        await self.timeline_runner.stage_start(network)
        t0_ns = self.timeline_runner.t0_ns  # what programs' own times count from
        start_unix_ns = timers.unix_ns(t0_ns)
        self.events.begin(start_unix_ns, t0_ns)
        self.reactions.begin(t0_ns)
        self.backend.begin(t0_ns)
        self.prober.begin(t0_ns)
        self.sampler = network.sampler(self.samples, self.pulse)
        gc.collect()  # in one piece that takes 15 ms, so before this process goes before others
        gc.freeze()  # what is here stays: later collections look at new objects only
        self.facts.update(
            network.facts,
            scheduling=prefer(0, *network.pids, *self.reactions.pids),
            start_monotonic_ns=t0_ns,
            start_unix_ns=start_unix_ns,
        )
        return network

    def _probes(self) -> LineFile | None:
        """The file of probes; None if the run is to be without them. RunError."""
        if why_not(self.config.options):
            return None
        try:
            return LineFile(self._held, PROBES, self._cannot_write)
        except OSError as error:
            raise unwritten(error) from error

    def _done(self, record: Mapping[str, object]) -> None:
        self.events.append(record)
        self.prober.see(record)
        self.reactions.see(record)

    def _follow(self, schedule: Schedule) -> None:
        """The timeline has become another one."""
        self.schedule = schedule
        self.prober.follow(schedule)
        self.link_requests.follow(schedule)
        self.reactions.follow()

    def _elapsed(self) -> int:
        return self.timeline_runner.elapsed()

    def _cannot_write(self, message: str) -> None:
        """A run whose log has holes is no result: it ends at once."""
        self.trouble = self.trouble or message
        fail(self.timeline_runner.broken, RunError(message))

    # -- while it runs --------------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """For something that is to be seen even by who wants no progress."""
        self.report(message, warning=True)

    def report(self, message: str = "", *, warning: bool = False) -> None:
        record = status.progress(
            self.config, self.timeline_runner, self.phase, message, warning=warning
        )
        self.channel.send(record)

    def _unprobed(self, why: str) -> None:
        """Nobody probes any more, or from the start on."""
        at_ns = max(self._elapsed(), 0) if self.timeline_runner.t0_ns else 0
        self.events.append({"kind": "unprobed", "target": "", "applied_ns": at_ns, "reason": why})
        self.warn(f"paths are not measured from now on: {why}")

    def _stalled(self, who: str, stalled_ns: int) -> None:
        self.events.append(
            {
                "kind": "stall",
                "target": who,
                "applied_ns": self.timeline_runner.elapsed(),
                "stalled_ns": stalled_ns,
            }
        )
        what = "stood still" if who == DRIVER else "did not answer"
        self.report(f"{who} {what} for {stalled_ns / 1e9:.1f} s")

    async def report_regularly(self) -> None:
        seconds = self.channel.report_seconds(self.schedule.end_due_ns / 1e9)
        while True:
            self.report()
            await asyncio.sleep(seconds)

    def _on_effect(self, number: int, effect: Effect | None) -> None:
        self.timeline_runner.on_effect(number, effect)
        self.link_requests.step(number)

    async def _answer(self, request: Mapping[str, Any]) -> Reply:
        if request["ask"] == "state":
            shown = status.state(self.config, self.timeline_runner, self.sampler)
            shown["start_unix_ns"] = self.facts.get("start_unix_ns", 0)
            shown["datapath"] = self.facts.get("datapath", "")  # which one a cluster's nodes have
            return shown, None
        if request["ask"] == "enter":
            return await self.backend.enter(str(request["instance"]))
        if request["ask"] == "moment":
            return await self.steering.moment(request), None
        if request["ask"] == "link moment":
            return self.steering.link_moment(), None
        if request["ask"] == "grow":
            return await asyncio.shield(self.steering.grow(request)), None
        if request["ask"] == "do":  # to its end, whatever becomes of who has asked
            return await asyncio.shield(self.steering.do(request)), None
        if request["ask"] == "capture":
            return await self._capture(request)
        raise RunError(f"cannot answer {request['ask']!r}")

    async def _capture(self, request: Mapping[str, Any]) -> Reply:
        network = self.backend.network
        if network is None or not self.timeline_runner.t0_ns:
            raise RunError("the run has not begun yet", "try again when it is at 0s")
        target, is_link = str(request["target"]), bool(request["is_link"])
        probes = bool(request["probes"])
        part = int(request.get("part", 0))
        found = await network.capture(target, is_link=is_link, probes=probes, part=part)
        told = {"parts": found.parts, "since_ns": found.since_ns, "left_out": [*found.left_out]}
        return {"interfaces": [*found.interfaces], **told}, Given(found.pipe)

    # -- from start to end ----------------------------------------------------------------------

    async def run(self) -> tuple[str, str]:
        """Returns the outcome and, for a failure, its reason."""
        main = asyncio.create_task(self._whole())
        stop = asyncio.create_task(self.channel.stop.wait())
        await asyncio.wait({main, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not main.done():
            self.timeline_runner.end_early("interrupted")
            main.cancel()
            await asyncio.wait({main})
            return INTERRUPTED, ""
        if main.cancelled():
            return INTERRUPTED, ""
        error = main.exception()
        if error is None:
            return COMPLETED, ""
        if isinstance(error, OSError):
            error = unexpected(error)
        if isinstance(error, (RunError, PlanError)):
            self.refused = isinstance(error, MachineError)
            self.timeline_runner.end_early(str(error))
            return FAILED, self._words(error)
        raise error

    def _words(self, error: RunError | PlanError) -> str:
        """Of a program that has ended the run with the last line of its log."""
        if not isinstance(error, ProgramsError):
            return str(error)
        self.programs_failed = True
        last = last_line(self._held, f"{error.instance}.log")
        return f"{error.message}; last log line: {last}" if last else error.message

    async def _whole(self) -> None:
        self.report()
        network = await self.set_up()
        assert self.sampler
        self.phase = RUNNING
        self.channel.send(RunStarted(self.facts))
        work = asyncio.create_task(self.timeline_runner.carry_out(network))
        self.sampling = asyncio.create_task(self.sampler.run())
        self.prober.go()
        self.expected_runs.begin()
        if self.config.options.time == REAL:  # in virtual time nobody ever stands still
            self.watching = {
                asyncio.create_task(self.pulse.run()),
                asyncio.create_task(self.machine.run()),
            }
        beside = {
            asyncio.create_task(self.report_regularly()),
            asyncio.create_task(network.ports.tidy(self.timeline_runner.next_due_ns)),
            asyncio.create_task(self.backend.observe(self.samples)),
        }
        gone = {network.closed, self.backend.closed, self.timeline_runner.broken}
        try:
            await asyncio.wait({work, *gone}, return_when=asyncio.FIRST_COMPLETED)
            await self._check_helpers(network)
            (self.timeline_runner.broken if self.timeline_runner.broken.done() else work).result()
        finally:
            for task in (*beside, work):
                task.cancel()

    async def _check_helpers(self, network: RunNetwork) -> None:
        if network.closed.done():
            error = await network.why()
            raise RunError(told(error.message, self._memory), error.remedy)
        if self.backend.closed.done():
            error = await self.backend.why()
            raise RunError(told(error.message, self._memory), error.remedy)

    async def wind_down(self) -> str:
        """Ends all programs gracefully, takes the last sample, stops the helpers.

        Returns what of them had ended before it should, '' if nothing: then the end of the
        programs was not as planned, and counters are missing.
        """
        self.ends.stopping = True
        self.phase = STOPPING
        self.report()
        if reactions := await self.reactions.end():
            self.facts["reactions"] = reactions
        self.link_requests.close()
        await self.prober.end()  # what programs do from now on is no experiment
        await self.expected_runs.end()
        if self.watching:
            await self.machine.look()  # before devices go with their instances
            self.facts.update(self.machine.facts())
        self._look_away()
        network = self.backend.network
        if network is not None:
            self.facts["lost"] = await network.lost()
        self.facts.update(await self.backend.finish())
        fault = ""
        if network is not None:
            fault = await self._fault(network)
            if self.sampler is not None and self.sampling is not None:
                self.sampler.stop()
                await self.sampling
            self.facts.update(await network.end())
            fault = fault or str(network.fault or "")
        await self.steering.finish()
        if self.timeline_runner.quit_early:
            self.facts["quit_early"] = self.timeline_runner.quit_early
        files = (self.timeline_runner.book, self.events, self.samples, self.prober)
        for owned in (self.control, self.backend, *files):
            if owned is not None:
                owned.close()
        # Here, since programs may have files of other users.
        here = self.backend.has_files_here
        self.facts["figures"] = measured_figures.of_files(self._held, self.plan, here=here)
        self.facts["unkept"] = kept_files.keep(self._held, self.plan, here=here)
        topology = self.plan.topology
        discard.discard(self._held, discard.services(topology.services, self.config.options))
        return fault

    def _look_away(self) -> None:
        """What is slow from now on is in nobody's way."""
        if self.watching:
            self.pulse.end()
        for task in self.watching:
            task.cancel()

    async def _fault(self, network: RunNetwork) -> str:
        try:
            await self._check_helpers(network)
        except RunError as error:
            return str(error)
        return ""


async def carry_out(
    config: DriverConfig, make_backend: MakeBackend, channel: FollowerChannel, log: IO[bytes]
) -> RunEnd:
    """A whole run, and how it ended. One whose network or programs could not be ended as planned
    has failed."""
    try:
        driver = Driver(config, make_backend, channel, log)
    except (RunError, PlanError, OSError) as error:
        said = unexpected(error) if isinstance(error, OSError) else error
        return RunEnd(FAILED, str(said), refused=isinstance(error, MachineError))
    outcome, message = await driver.run()
    trouble = await driver.wind_down()
    trouble = trouble or driver.trouble
    if trouble and outcome == COMPLETED:
        outcome = FAILED
    return RunEnd(
        outcome,
        message or trouble,
        driver.facts,
        driver.refused,
        driver.programs_failed,
        driver.timeline_runner.planned,
    )
