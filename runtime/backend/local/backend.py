"""The backend of this machine: a nursery makes the instances, each with namespaces of its own.

Their network is one engine, or local hosts with an agent and a datapath each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan.types import Node
from runtime.backend.base import Entrance, Network, RunContext
from runtime.backend.lives import Ended
from runtime.backend.local import charge, environment, nursery
from runtime.backend.local.instances import Instance, Maker, OnReady
from runtime.backend.local.nursery import Holder
from runtime.backend.onehost import network as onehost
from runtime.errors import RunError, unwritten
from runtime.rundir.directory import HeldDirectory
from runtime.rundir.runfiles import INSTANCES
from runtime.schedule import first_incarnations
from runtime.system import openfiles
from runtime.system.place import namespace


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """What only a run on this machine needs. Paths are absolute. It travels as its asdict()."""

    engine: tuple[str, ...]  # argv of what carries packets: pktd or tcald
    nursery: str  # path of tstorm-ns
    start_directory: str  # where `tstorm run` was called
    source_directory: str  # where programs named with a relative path are
    environment: dict[str, str]  # what programs inherit from the caller


def settings(record: Mapping[str, Any]) -> LocalSettings:
    return LocalSettings(**{**record, "engine": tuple(record["engine"])})


class LocalBackend:
    """See runtime.backend.base (Backend)."""

    def __init__(self, given: LocalSettings, context: RunContext) -> None:
        self._given = given
        self._context = context
        self._homes = HeldDirectory.hold(context.directory).enter(INSTANCES)
        self._nursery: nursery.Nursery | None = None
        self._maker: Maker | None = None
        self.network: Network | None = None
        self.instances: dict[str, Instance] = {}

    async def start(self) -> Network:
        given, context = self._given, self._context
        self._nursery = nursery.start(Path(given.nursery), given.environment, context.log)
        wanted = first_incarnations(context.timeline)
        # After the nursery, so that programs keep the usual limit.
        openfiles.raise_limit(len(wanted))
        self.network = network = await self._make_network()
        await network.start()
        self._maker = Maker(self._nursery, network.ports, self._on_ready)
        self._add_instances(self._maker, frozenset(wanted))
        await self._make_incarnations()
        return network

    @property
    def _on_ready(self) -> OnReady | None:
        """With --cpu, what its programs compute takes time."""
        if not self._context.options.cpu_ppb:
            return None
        services = self._context.plan.topology.services

        def charged(holder: Holder, node: Node) -> None:
            charge.charge(holder.pid, services[node.service].cpu_millis, node.name)

        return charged

    async def _make_network(self) -> Network:
        given, context = self._given, self._context
        if context.options.hosts == 0:
            return await onehost.start(context, given.engine)
        return self._make_hosts()

    def _make_hosts(self) -> Network:
        # Not above: most runs have no hosts, and in virtual time to import is what takes time.
        from runtime.agent.process.hostprocess import Programs
        from runtime.backend.hosts.network import AgentNetwork
        from runtime.backend.local import localhosts
        from runtime.backend.local.hosts import LocalHosts
        from runtime.rpc.secure import make_key

        given, context = self._given, self._context
        programs = Programs(
            entry=given.nursery,
            datapath=given.engine,
            plan=context.directory / "plan",
            key=make_key(),
            log_name=context.log_name,
            faults=context.options.faults,
        )
        hosts = LocalHosts(context, localhosts.make(context.options.hosts), programs)
        return AgentNetwork(context, hosts)

    def _add_instances(self, maker: Maker, wanted: frozenset[str]) -> None:
        """Those that are ever there, in the order of the topology."""
        given, directory, plan = self._given, self._context.directory, self._context.plan
        for index, node in enumerate(plan.topology.nodes):
            if node.service < 0 or node.name not in wanted:
                continue
            service = plan.topology.services[node.service]
            env = environment.variables(
                given.environment, service, node, directory, plan.seed, given.start_directory
            )
            self._make_home(node.name)
            program = environment.program(directory, service, node, env, given.source_directory)
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

    # -- while it runs --------------------------------------------------------------------------

    @property
    def closed(self) -> asyncio.Future[None]:
        assert self._nursery is not None
        return self._nursery.closed

    async def why(self) -> RunError:
        return RunError("the process that holds the instances (tstorm-ns nursery) ended")

    def _program_ended(self, instance: Instance, ended: Ended, asked: bool) -> None:
        help_text = ""
        if not asked and not ended.well and instance.program is not None:
            help_text = environment.misplaced(instance.program, self._given.source_directory)
        self._context.on_ended(instance, ended, asked, help_text)

    def _killed(self, instance: Instance) -> None:
        """Its first process is dead, and with it all others: nobody in the run wanted that."""
        if not self.closed.done():  # else it died with the nursery, which is told once
            self._context.on_killed(instance, "its first process (PID 1) is dead")

    async def enter(self, instance: str) -> Entrance:
        found = self.instances.get(instance)
        if found is None:
            known = ", ".join(sorted(self.instances)[:20])
            raise RunError(f"the run has no instance {instance!r}", f"there are: {known}")
        if found.current is None:
            raise RunError(f"instance {instance} is down now")
        if found.killed:
            raise RunError(f"instance {instance} was killed from outside the run")
        directory = environment.instance_directory(self._context.directory, instance)
        answer = {
            "environment": dict(found.environment),
            "directory": str(directory),
            "user_namespace": namespace("user"),
        }
        return answer, found.current.holder.pidfd

    # -- the end --------------------------------------------------------------------------------

    async def finish(self) -> None:
        if self.instances:
            await asyncio.gather(*(instance.finish() for instance in self.instances.values()))

    def close(self) -> None:
        for owned in (self._maker, self._nursery):
            if owned is not None:
                owned.close()
