"""The backend of this machine: a nursery makes the instances, each with namespaces of its own.

Their network is one engine, or local hosts with an agent and a datapath each.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from compiler.plan.parts.expectations import asserting
from compiler.plan.parts.host_names import hostname
from compiler.plan.parts.led_links import askers
from compiler.plan.parts.unemulated import lans_of_the_kernel
from compiler.plan.types import DEFAULT_READY_TIMEOUT_NS, Node, Service, Topology, interfaces
from runtime.backend import instance_disks
from runtime.backend.base import LINKS_SOCKET, Entrance, Notice, RunContext, RunNetwork
from runtime.backend.instance import NOT_HEARD, ProgramEnd
from runtime.backend.local import cpu_accounting, environment, nursery, ownership
from runtime.backend.local.assertion_files import AssertionFiles
from runtime.backend.local.disk import Disk
from runtime.backend.local.environment import instance_directory
from runtime.backend.local.filesystem import instance_filesystem, privatefs
from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.backend.local.filesystem.instance_filesystem import (
    CommonFacts,
    Furnisher,
    Surroundings,
)
from runtime.backend.local.instance_commands import OUT_OF_MEMORY, InstanceCommands
from runtime.backend.local.instance_limits import Limits
from runtime.backend.local.instances import DiskFaults, LocalInstance, Maker, OnReady
from runtime.backend.local.kernel_bridges import KernelBridges
from runtime.backend.local.log_watch import LogWatch
from runtime.backend.local.nursery import LocalIncarnation, MachineKeeper, Program
from runtime.backend.local.outside import Outside
from runtime.backend.onehost import hop_network as onehost
from runtime.backend.runwords import replaced
from runtime.errors import RunError, no_instance, unwritten
from runtime.options import VIRTUAL
from runtime.probing.prober import Prober
from runtime.rundir.etchosts import OwnHosts, addressed
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import ASSERTIONS, INSTANCES, LOG_TIMES, LOGS, MEMORY, STACKS
from runtime.schedule import first_incarnations
from runtime.stacks.watch import StackWatch
from runtime.system import machine_facts, process_limits, userids
from runtime.system.process_scope import namespace
from runtime.system.realtime.rt_throttle import RESTS

_TAIL_BYTES = 4096
_OTHER_USER = re.compile(
    r"set(re|res|e)?[ug]id|setgroups|initgroups|chown|change.*owner|(switch|change|drop).*user",
    re.IGNORECASE,
)

FS_HERE = "/run/tstorm/state/fs"  # of private files in the guest of virtual time


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """What only a run on this machine needs. Paths are absolute."""

    engine: tuple[str, ...]  # argv of what carries packets: pktd or tcald
    nursery: str  # path of tstorm-ns
    start_directory: str  # where `tstorm run` was called
    source_directory: str  # where programs named with a relative path are
    environment: Mapping[str, str]  # what programs inherit from the caller
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # where some of those are now
    # By service, of those that run one.
    images: Mapping[str, ImageRoot] = field(default_factory=dict)
    outside: int = -1  # of a plan with gateways: the descriptor of the socket to who leads there


class LocalBackend:
    """See runtime.backend.base (Backend)."""

    has_files_here = True

    def __init__(self, given: LocalSettings, context: RunContext) -> None:
        self._given = given
        self._context = context
        held = HeldDirectory.hold(context.directory)
        self._homes = held.enter(INSTANCES)
        self._t0_ns = 0
        clock, virtual = context.schedule.clock, context.options.time == VIRTUAL
        try:
            times = LineFile(held, LOG_TIMES, context.cannot_write)
            stacks = LineFile(held, STACKS, context.cannot_write)
        except OSError as error:
            raise unwritten(error) from error
        self._log_watch = LogWatch(held.enter(LOGS), times, self._elapsed)
        moment = lambda: clock.plan_time(max(self._elapsed(), 0))  # noqa: E731
        self._stacks = StackWatch(stacks, moment, rests=virtual)
        self._nursery: nursery.Nursery | None = None
        self._maker: Maker | None = None
        self.network: RunNetwork | None = None
        self.instances: dict[str, LocalInstance] = {}
        self._limits: Limits | None = None
        self._surroundings: dict[str, Surroundings] = {}
        self._machines: dict[str, MachineKeeper] = {}

    async def start(self) -> RunNetwork:
        given, context = self._given, self._context
        self._nursery = nursery.start(Path(given.nursery), given.environment, context.log)
        wanted = first_incarnations(context.schedule)
        # After the nursery, so that programs keep the usual limit.
        process_limits.raise_limit(len(wanted))
        self.network = network = await self._make_network()
        await network.start()
        # This process's own namespace is as new as those of instances.
        network.facts["instance_network"] = machine_facts.network_settings()
        hosts_files = self._own_hosts(wanted)
        machines = self._make_machines(self._nursery)
        self._maker = Maker(
            self._nursery,
            network.ports,
            on_ready=self._on_ready,
            hosts=hosts_files.paths,
            outside=self._ways_out(),
            services=context.plan.topology.services,
            machines=machines,
            bridges=self._kernel_bridges(),
        )
        self._add_instances(self._maker, frozenset(wanted))
        await self._make_incarnations()
        return network

    @property
    def _on_ready(self) -> OnReady | None:
        """mem= is a limit, and cpu= as well; with --cpu, what its programs compute takes time. In
        virtual time each instance has one on processes."""
        topology, options = self._context.plan.topology, self._context.options
        services, machines = topology.services, topology.machines
        limits = None
        virtual = options.time == VIRTUAL
        if virtual or machines or any(one.cpu_millis or one.mem_bytes for one in services):
            context = self._context
            limits = Limits(context.run_id, context.warn, context.on_oom_kill, virtual=virtual)
            for machine in machines:
                limits.enclose(machine, self._machines[machine.name].pid)
        if limits is None and not options.cpu_ppb:
            return None
        self._limits = limits
        machine_of = _machine_of(topology)

        def ready(incarnation: LocalIncarnation, node: Node) -> None:
            service = services[node.service]
            if limits is not None:
                limits.put(incarnation.pid, node.name, service, machine_of.get(node.name, ""))
            if options.cpu_ppb:
                cpu_accounting.charge(incarnation.pid, service.cpu_millis, node.name)

        return ready

    def _make_machines(self, maker: nursery.Nursery) -> dict[str, MachineKeeper]:
        """By instance, the machine that it is a part of."""
        topology = self._context.plan.topology
        for one in topology.machines:
            self._machines[one.name] = maker.machine(one.name, hostname(one.name))
        return {part: self._machines[name] for part, name in _machine_of(topology).items()}

    def _kernel_bridges(self) -> KernelBridges | None:
        """Says what they are not."""
        topology = self._context.plan.topology
        said = lans_of_the_kernel(topology)
        if not said:
            return None
        self._context.notice(
            f"{said} is not emulated, does not repeat, and is not part of the verdict"
        )
        return KernelBridges(topology.machines)

    def _ways_out(self) -> Outside | None:
        """Says what they are not."""
        services, context = self._context.plan.topology.services, self._context
        gateways = [one.name for one in services if one.gateway]
        externals = [one.name for one in services if one.external is not None]
        if gateways:
            context.notice(
                f"{', '.join(gateways)} leads to the outside: what lies there is not emulated,"
                " does not repeat, and is not part of the verdict"
            )
        if externals:
            context.notice(
                f"{', '.join(externals)}: real machines. The run judges the links up to their"
                " network cards; what lies behind these does not repeat, and is not judged"
            )
        if not gateways and not externals:
            return None
        return Outside(self._given.outside, context.log_name, context.warn)

    async def _make_network(self) -> RunNetwork:
        given, context = self._given, self._context
        if context.options.hosts == 0:
            return await onehost.start(context, given.engine)
        return self._make_hosts()

    def _make_hosts(self) -> RunNetwork:
        # Not above: most runs have no hosts, and in virtual time to import is what takes time.
        from runtime.agent.process.hostprocess import Programs
        from runtime.backend.hosts.agent_network import AgentNetwork
        from runtime.backend.local import hosts_backend
        from runtime.backend.local.local_hosts import LocalHosts
        from runtime.datapath import capture_pipe
        from runtime.rpc.secure import make_key

        given, context = self._given, self._context
        seen = context.options.time != VIRTUAL and context.options.datapath != "kernel"
        pipes = HeldDirectory.hold(context.directory) if seen else None
        more = () if pipes is None else capture_pipe.arguments(pipes, live=True)
        programs = Programs(
            entry=given.nursery,
            datapath=(*given.engine, *more),
            plan=context.directory / "plan",
            key=make_key(),
            log_name=context.log_name,
            faults=context.options.faults,
            turns_fd=RESTS.descriptor,
            pipes=pipes,
        )
        hosts = LocalHosts(context, hosts_backend.make(context.options.hosts), programs)
        return AgentNetwork(context, hosts)

    def _add_instances(self, maker: Maker, wanted: frozenset[str]) -> None:
        """Those that are ever there, in the order of the topology."""
        given, directory, plan = self._given, self._context.directory, self._context.plan
        furnisher = self._furnisher()
        nodes, further = plan.topology.nodes, interfaces(plan.topology.nodes)
        failing, heard = instance_disks.watched(plan), instance_disks.heard(plan)
        asserts = asserting(plan.expectations)
        asking = {member for _, all_ in askers(plan.topology).values() for member in all_}
        for index, planned in enumerate(nodes):
            if not planned.is_instance or planned.name not in wanted:
                continue
            ends = (index, *further.get(index, ()))
            endpoints = {end: addressed(plan.topology, nodes[end]) for end in ends}
            node = endpoints[index]
            service = plan.topology.services[node.service]
            image = given.images.get(service.name)
            if image is None and service.image and not service.exec:
                service = instance_filesystem.idle(service)
            self._make_home(node.name, "tmp", *([ASSERTIONS] if index in asserts else []))
            around = furnisher.around(service, node, image)
            self._surroundings[node.name] = around
            env = environment.variables(
                given.environment,
                service,
                node,
                directory,
                plan.seed,
                given.start_directory,
                instance_filesystem.own(around, image),
            )
            if index in asking:
                env["TSTORM_LINKS"] = f"@{LINKS_SOCKET}"
            program = environment.program(
                directory, service, node, env, given.source_directory, given.elsewhere
            )
            if image is not None:
                log = directory / LOGS / f"{node.name}.log"
                program = Program(replaced(image.argv, env), env, Path(), log)
            if program is not None:
                program = replace(program, directory=Path(around.directory), owner=around.owner)
            home = instance_directory(directory, node.name)
            instance = LocalInstance(
                endpoints,
                env,
                program,
                maker,
                self._program_ended,
                self._killed,
                self._context.on_overdue,
                around.ending,
                around.furniture,
                self._stacks,
                Disk(home) if node.name in failing else None,
                AssertionFiles(around.home if index in asserts else ""),
                DiskFaults(heard.get(node.name, NOT_HEARD), os.path.realpath(home)),
            )
            instance.runner = instance.commands = self._commands(instance, service)
            self.instances[node.name] = instance

    def _commands(self, instance: LocalInstance, service: Service) -> InstanceCommands:
        """What the service does not say of readiness its image may say (ImageRoot)."""
        given = self._given
        image = given.images.get(service.name)
        if image is not None:  # its commands are its own
            ready = image.ready
            resolved = partial(replaced, env=instance.environment)
        else:
            ready = service.ready
            resolved = partial(
                environment.resolved,
                env=instance.environment,
                source=given.source_directory,
                elsewhere=given.elsewhere,
            )
        return InstanceCommands(
            instance,
            service.setup,
            ready,
            service.ready_timeout_ns or DEFAULT_READY_TIMEOUT_NS,
            resolved,
            given.nursery,
            partial(self._place, instance),
            self._context.directory / LOGS / f"{instance.name}.log",
            partial(self._wanted_memory, instance.name),
        )

    def _wanted_memory(self, name: str) -> bool:
        return self._limits is not None and self._limits.wanted_memory(name)

    def _furnisher(self) -> Furnisher:
        context = self._context
        virtual = context.options.time == VIRTUAL
        facts = CommonFacts(
            run=context.directory,
            source=Path(self._given.source_directory),
            contents=context.plan.attached.contents,
            memory=Path(FS_HERE) if virtual else context.directory / MEMORY,
            one_id=virtual or userids.only_one(),
            remedy="" if virtual else f"For more: {userids.remedy()}",
            in_memory=virtual,
        )
        return Furnisher(facts, context.warn)

    def _own_hosts(self, names: Sequence[str]) -> OwnHosts:
        try:
            context = self._context
            hops = context.options.hop_exact
            found = OwnHosts(self._homes, context.plan.topology, names, hops=hops)
        except OSError as error:
            raise unwritten(error) from error
        if names and not found.paths:
            self._context.warn(
                f"with {len(names):,} instances /etc/hosts is one file: what one adds, all have"
            )
        return found

    def _make_home(self, name: str, *folders: str) -> None:
        try:
            home = self._homes.make(name)
            for folder in folders:
                home.make(folder)
        except OSError as error:
            raise unwritten(error) from error

    async def _make_incarnations(self) -> None:
        tasks = [instance.prepare() for instance in self.instances.values()]
        if tasks:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()

    # -- while it runs --------------------------------------------------------------------------

    def prober(self, file: LineFile | None, notice: Notice, on_end: Notice) -> Prober:
        def place(name: str) -> tuple[str, asyncio.Future[None]] | None:
            incarnation = self.instances[name].present
            if incarnation is None:
                return None
            return f"/proc/{incarnation.pid}/ns/net", incarnation.gone

        context = self._context
        return Prober(context.plan, context.schedule, file, place, notice, on_end)

    def begin(self, t0_ns: int) -> None:
        self._t0_ns = t0_ns
        self._log_watch.begin()
        self._stacks.begin()

    async def observe(self, samples: LineFile) -> None:
        await self._stacks.run(samples)

    def _elapsed(self) -> int:
        return time.monotonic_ns() - self._t0_ns

    @property
    def closed(self) -> asyncio.Future[None]:
        assert self._nursery is not None
        return self._nursery.closed

    async def why(self) -> RunError:
        return RunError("the process that holds the instances (tstorm-ns nursery) ended")

    def _program_ended(self, instance: LocalInstance, ended: ProgramEnd, asked: bool) -> None:
        help_text = ""
        if self._wanted_memory(instance.name) and not asked and not ended.well:
            ended = replace(ended, reason=OUT_OF_MEMORY)
        if not asked and not ended.well and instance.program is not None:
            help_text = environment.misplaced(instance.program, self._given.source_directory)
            help_text += _lack_of_numbers(instance.program.log)
        self._context.on_ended(instance, ended, asked, help_text)

    def _killed(self, instance: LocalInstance) -> None:
        """Its first process is dead, and with it all others: nobody in the run wanted that."""
        if not self.closed.done():  # else it died with the nursery, which is told once
            self._context.on_killed(instance, "its first process (PID 1) is dead")

    async def enter(self, instance: str) -> Entrance:
        if instance in self._machines:
            return self._enter_machine(self._machines[instance])
        found = self.instances.get(instance)
        if found is None:
            raise no_instance(instance, sorted(self.instances), self._machines)
        if found.present is None:
            raise RunError(f"instance {instance} is down now")
        if found.killed:
            raise RunError(f"instance {instance} was killed from outside the run")
        return self._place(found), found.present.pidfd

    def _enter_machine(self, machine: MachineKeeper) -> Entrance:
        """Among the processes of all parts; the command has the run's files and user."""
        if not machine.is_up:
            raise RunError(f"machine {machine.name} is down now: none of its parts is there")
        place = {
            "environment": {**self._given.environment, "TSTORM_MACHINE": machine.name},
            "directory": "/",
            "user": "",
            "user_namespace": namespace("user"),
            "machine": machine.name,
        }
        return place, machine.pidfd

    def _place(self, instance: LocalInstance) -> dict[str, object]:
        """How a command gets into an instance (runtime.backend.local.enter_instance)."""
        around = self._surroundings[instance.name]
        return {
            "environment": {**instance.environment, **instance.assertions.of_command()},
            "directory": around.directory,
            "user": around.user,
            "user_namespace": namespace("user"),
        }

    # -- the end --------------------------------------------------------------------------------

    async def finish(self) -> dict[str, Any]:
        if self.instances:
            await asyncio.gather(*(instance.finish() for instance in self.instances.values()))
        if self._limits is not None:
            self._limits.look()
        return {}

    def close(self) -> None:
        self._stacks.finish()
        privatefs.end(self._context.directory / MEMORY)
        if privatefs.in_user_namespace():
            ownership.give_back(self._context.directory / INSTANCES)
        for owned in (self._maker, self._nursery, self._limits, self._log_watch):
            if owned is not None:
                owned.close()


def _machine_of(topology: Topology) -> dict[str, str]:
    """By instance, the name of the machine that it is a part of."""
    machines, nodes = topology.machines, topology.nodes
    return {nodes[node].name: one.name for one in machines for node in one.members}


def _lack_of_numbers(log: Path) -> str:
    """To be said beside the end of a program that seems to have wanted another user; or ''."""
    if not userids.only_one():
        return ""
    said = ""
    with suppress(OSError, RunError):
        data = HeldDirectory.hold(log.parent).tail(log.name, _TAIL_BYTES)
        said = data.decode(errors="replace")
    if not _OTHER_USER.search(said):
        return ""
    return (
        "; this run has one user number only, so no program in it can become another user: "
        + userids.remedy()
    )
