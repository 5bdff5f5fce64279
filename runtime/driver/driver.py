"""The driver: the process inside the run's namespaces that carries the plan out.

Started by `tstorm-ns sandbox` as `python -m runtime.driver.driver FD`; talks to
`runtime.launch.launch` over the socket FD (runtime.driver.messages): first in is the configuration,
then `{"stop": true}`; out go progress records, `{"started": …}` and at last `{"final": …}`. Its
death ends the run's PID 1 and with it everything in the run.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from compiler.plan.format import PlanError
from compiler.plan.reader import read_plan
from runtime.backend import environment, nursery
from runtime.backend.base import Counters, Network, RunContext
from runtime.backend.hosts.network import AgentNetwork
from runtime.backend.instances import Instance, Maker
from runtime.backend.lives import Ended
from runtime.backend.local import localhosts
from runtime.backend.local.hostprocess import Programs
from runtime.backend.local.hosts import LocalHosts
from runtime.backend.onehost import network as onehost
from runtime.driver import status
from runtime.driver.config import DriverConfig, from_record
from runtime.driver.control import ControlServer, Reply
from runtime.driver.messages import DriverEnd
from runtime.driver.progress import RUNNING, STARTING, STOPPING
from runtime.driver.timelinerunner import TimelineRunner
from runtime.errors import MachineError, RunError, fail, unexpected, unwritten
from runtime.judge.lateness import DRIVER
from runtime.judge.pulse import Pulse
from runtime.options import COMPLETED, FAILED, INTERRUPTED
from runtime.rpc.secure import make_key
from runtime.rundir.directory import HeldDirectory
from runtime.rundir.eventlog import EventLog, how_ended
from runtime.rundir.records import LineFile
from runtime.rundir.runfiles import DRIVER_LOG, EVENTS, INSTANCES, SAMPLES
from runtime.schedule import Schedule, first_incarnations
from runtime.system import openfiles, wallclock
from runtime.system.memory import Watch, told
from runtime.system.place import namespace
from runtime.system.scheduling import prefer

REPORT_SECONDS = 0.2


class Driver:
    """One run, from set-up to the end."""

    def __init__(self, config: DriverConfig, channel: DriverEnd, log: IO[bytes]) -> None:
        self.config = config
        self.channel = channel
        self.directory = Path(config.directory)
        held = HeldDirectory.hold(self.directory)
        self._homes = held.enter(INSTANCES)
        self._log = log
        self.plan = read_plan(config.plan, lazy=True)
        self.timeline = Schedule(self.plan, config.options)
        self.instances: dict[str, Instance] = {}
        self._memory = Watch()
        self.trouble = ""  # why the run's own files are not complete
        try:
            self.events = EventLog(LineFile(held, EVENTS, self._cannot_write))
            self.samples = LineFile(held, SAMPLES, self._cannot_write)
        except OSError as error:
            raise unwritten(error) from error
        self.conductor = TimelineRunner(
            self.plan, self.timeline, self.instances, self.events.append, self.warn
        )
        self.pulse = Pulse(DRIVER, self._stalled)
        self.watching: asyncio.Task[None] | None = None
        self.nursery: nursery.Nursery | None = None
        self.network: Network | None = None
        self.maker: Maker | None = None
        self.control: ControlServer | None = None
        self.sampler: Counters | None = None
        self.sampling: asyncio.Task[None] | None = None
        self.facts: dict[str, Any] = {}
        self.phase = STARTING
        self.refused = False  # by this machine: a failure that is not the experiment's
        self._stopping = False

    # -- set-up ---------------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Everything up to T0. Raises RunError."""
        config = self.config
        self.nursery = nursery.start(Path(config.nursery), config.environment, self._log)
        wanted = first_incarnations(self.timeline)
        openfiles.raise_limit(
            len(wanted)
        )  # after the nursery, so that programs keep the usual limit
        self.network = network = await self._make_network()
        await network.start()
        self.maker = Maker(self.nursery, network.ports)
        self.control = ControlServer(Path(config.socket), self._answer)
        self._add_instances(self.maker, frozenset(wanted))
        await self._make_incarnations()
        await self.conductor.stage_start(network)
        t0_ns = self.conductor.t0_ns  # what programs' own times count from
        start_unix_ns = wallclock.unix_ns(t0_ns)
        self.events.begin(start_unix_ns, t0_ns)
        self.sampler = network.sampler(self.samples, self.pulse)
        self.facts.update(
            network.facts,
            scheduling=prefer(0, *network.pids),
            start_monotonic_ns=t0_ns,
            start_unix_ns=start_unix_ns,
        )
        gc.collect()
        gc.freeze()  # what is here stays: later collections look at new objects only

    async def _make_network(self) -> Network:
        config, options = self.config, self.config.options
        log_name = str(self.directory / DRIVER_LOG)
        context = RunContext(
            self.plan,
            self.timeline,
            options,
            self._log,
            log_name,
            self.events.append,
            self.report,
            self.conductor.on_effect,
        )
        if options.hosts == 0:
            return await onehost.start(context, config.engine)
        programs = Programs(
            config.nursery, config.engine, config.plan, make_key(), log_name, options.faults
        )
        hosts = LocalHosts(context, localhosts.make(options.hosts), programs)
        return AgentNetwork(context, config.run_id, hosts)

    def _add_instances(self, maker: Maker, wanted: frozenset[str]) -> None:
        """Those that are ever there, in the order of the topology."""
        topology = self.plan.topology
        for index, node in enumerate(topology.nodes):
            if node.service < 0 or node.name not in wanted:
                continue
            service = topology.services[node.service]
            env = environment.variables(
                self.config.environment,
                service,
                node,
                self.directory,
                self.plan.seed,
                self.config.start_directory,
            )
            self._make_home(node.name)
            program = environment.program(
                self.directory, service, node, env, self.config.source_directory
            )
            self.instances[node.name] = Instance(
                index, node, env, program, maker, self._program_ended, self._killed
            )

    def _make_home(self, name: str) -> None:
        try:
            self._homes.make(name).make("tmp")
        except OSError as error:
            raise unwritten(error) from error

    async def _make_incarnations(self) -> None:
        tasks = [instance.prepare() for instance in self.instances.values()]
        if tasks:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()

    def _cannot_write(self, message: str) -> None:
        """A run whose log has holes is no result: it ends at once."""
        self.trouble = self.trouble or message
        fail(self.conductor.broken, RunError(message))

    # -- while it runs --------------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """For something that is to be seen even by who wants no progress."""
        self.report(message, warning=True)

    def report(self, message: str = "", *, warning: bool = False) -> None:
        record = status.progress(self.config, self.conductor, self.phase, message, warning=warning)
        self.channel.send({"progress": asdict(record)})

    def _stalled(self, who: str, stalled_ns: int) -> None:
        self.events.append(
            {
                "kind": "stall",
                "target": who,
                "applied_ns": self.conductor.elapsed(),
                "stalled_ns": stalled_ns,
            }
        )
        what = "stood still" if who == DRIVER else "did not answer"
        self.report(f"{who} {what} for {stalled_ns / 1e9:.1f} s")

    async def report_regularly(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(REPORT_SECONDS)

    def _program_ended(self, instance: Instance, ended: Ended, asked: bool) -> None:
        """Every end of a program is logged; only one that nobody asked for is news."""
        record: dict[str, object] = {
            "kind": "exit",
            "target": instance.name,
            "applied_ns": self.conductor.elapsed(),
            "status": ended.status,
            "signal": ended.signal,
            "asked": asked or self._stopping,
        }
        unasked = not asked and not self._stopping
        news = self._memory.news() if unasked and ended.signal == signal.SIGKILL else ""
        if news:
            record["reason"] = news
        self.events.append(record)
        if unasked:
            why = f": {news}" if news else ""
            if not ended.well and instance.program is not None:
                why += environment.misplaced(instance.program, self.config.source_directory)
            self.report(
                f"{instance.name}: its program ended by itself with {how_ended(record)}{why}"
            )

    def _killed(self, instance: Instance) -> None:
        """Its first process is dead, and with it all others: nobody in the run wanted that."""
        if self._stopping or (self.nursery and self.nursery.closed.done()):
            return  # or it died with who holds all instances, which is told once
        elapsed = self.conductor.elapsed()
        self.events.append({"kind": "killed", "target": instance.name, "applied_ns": elapsed})
        self.warn(f"{instance.name} was killed from outside: its first process (PID 1) is dead")

    async def _answer(self, request: Mapping[str, Any]) -> Reply:
        if request["ask"] == "state":
            return status.state(self.config, self.conductor, self.sampler), None
        if request["ask"] == "enter":
            return self._enter(str(request["instance"]))
        raise RunError(f"cannot answer {request['ask']!r}")

    def _enter(self, name: str) -> Reply:
        instance = self.instances.get(name)
        if instance is None:
            known = ", ".join(sorted(self.instances)[:20])
            raise RunError(f"the run has no instance {name!r}", f"there are: {known}")
        if instance.current is None:
            raise RunError(f"instance {name} is down now")
        if instance.killed:
            raise RunError(f"instance {name} was killed from outside the run")
        directory = environment.instance_directory(self.directory, name)
        answer = {
            "environment": dict(instance.environment),
            "directory": str(directory),
            "user_namespace": namespace("user"),
        }
        return answer, instance.current.holder.pidfd

    # -- from start to end ----------------------------------------------------------------------

    async def run(self) -> tuple[str, str]:
        """Returns the outcome and, for a failure, its reason."""
        main = asyncio.create_task(self._whole())
        stop = asyncio.create_task(self.channel.stop.wait())
        await asyncio.wait({main, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not main.done():
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
            return FAILED, str(error)
        raise error

    async def _whole(self) -> None:
        self.report()
        await self.set_up()
        assert self.sampler and self.network and self.nursery
        self.phase = RUNNING
        self.channel.send({"started": self.facts})
        work = asyncio.create_task(self.conductor.carry_out(self.network))
        self.sampling = asyncio.create_task(self.sampler.run())
        self.watching = asyncio.create_task(self.pulse.run())
        beside = {
            asyncio.create_task(self.report_regularly()),
            asyncio.create_task(self.network.ports.tidy(self.conductor.next_due_ns)),
        }
        gone = {self.network.closed, self.nursery.closed, self.conductor.broken}
        try:
            await asyncio.wait({work, *gone}, return_when=asyncio.FIRST_COMPLETED)
            await self._check_helpers(self.network)
            (self.conductor.broken if self.conductor.broken.done() else work).result()
        finally:
            for task in (*beside, work):
                task.cancel()

    async def _check_helpers(self, network: Network) -> None:
        if network.closed.done():
            error = await network.why()
            raise RunError(told(error.message, self._memory), error.remedy)
        if self.nursery and self.nursery.closed.done():
            message = "the process that holds the instances (tstorm-ns nursery) ended"
            raise RunError(told(message, self._memory))

    async def wind_down(self) -> str:
        """Ends all programs gracefully, takes the last sample, stops the helpers.

        Returns what of them had ended before it should, '' if nothing: then the end of the
        programs was not as planned, and counters are missing.
        """
        self._stopping = True
        self.phase = STOPPING
        self.report()
        if self.instances:
            await asyncio.gather(*(instance.finish() for instance in self.instances.values()))
        fault = ""
        if self.network is not None:
            fault = await self._fault(self.network)
            if self.sampler is not None and self.sampling is not None:
                self.sampler.stop()
                await self.sampling
            self._look_away()
            self.facts.update(await self.network.end())
            fault = fault or str(self.network.fault or "")
        for owned in (self.control, self.maker, self.nursery, self.events, self.samples):
            if owned is not None:
                owned.close()
        return fault

    def _look_away(self) -> None:
        """What is slow from now on is in nobody's way."""
        if self.watching is not None:
            self.pulse.look()
            self.watching.cancel()

    async def _fault(self, network: Network) -> str:
        try:
            await self._check_helpers(network)
        except RunError as error:
            return str(error)
        return ""


async def main_async(connection: socket.socket) -> int:
    channel = DriverEnd(connection)
    record = channel.configuration()
    if record is None:
        return 1  # given up before it started
    channel.watch()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, channel.stop.set)
    try:
        driver = Driver(from_record(record), channel, sys.stderr.buffer)
    except (RunError, PlanError, OSError) as error:
        said = unexpected(error) if isinstance(error, OSError) else error
        outcome, message, facts = FAILED, str(said), {}
        refused = isinstance(error, MachineError)
    else:
        outcome, message = await driver.run()
        trouble = await driver.wind_down()
        trouble = trouble or driver.trouble
        if trouble and outcome == COMPLETED:
            outcome = FAILED
        message = message or trouble
        facts, refused = driver.facts, driver.refused
    final = {"outcome": outcome, "message": message, "facts": facts, "refused": refused}
    channel.send_final({"final": final})
    return 0


def main() -> int:
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        return asyncio.run(main_async(connection))


if __name__ == "__main__":
    sys.exit(main())
