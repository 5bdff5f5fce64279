"""Local hosts and all that runs on them: the agents and datapaths, the ports of instances."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from runtime.agent.process.hostprocess import HostProcesses, Programs
from runtime.backend.base import RunContext
from runtime.backend.hosts.hosts import (
    NetworkHandle,
    OnFatal,
)
from runtime.backend.local.hosts_backend import HostNamespaces
from runtime.backend.local.ports.port_allocator import LocalPortAllocator
from runtime.backend.local.ports.portwatch import PortWatch
from runtime.backend.local.ports.veths import HostPorts
from runtime.backend.missing import Missing
from runtime.backend.refusals import Refusals
from runtime.coordinator import placement
from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import REJOIN_SECONDS
from runtime.coordinator.says import HoldReport, InstanceReport
from runtime.errors import RunError
from runtime.system.network.interface import INTERFACE

CONNECT_SECONDS = 60.0  # agents are Python: on a busy machine they take their time
HOST_SECONDS = 2.0  # more for each host: all agents start at once and share the processors


class LocalHosts:
    """See runtime.backend.hosts.hosts (Hosts)."""

    def __init__(self, context: RunContext, namespaces: HostNamespaces, programs: Programs) -> None:
        """Starts a datapath and an agent on each. RunError."""
        topology, options = context.plan.topology, context.options
        hosts = namespaces.hosts
        self.key = programs.key
        self.agents = [Host(host.name, host.address) for host in hosts]
        self.placement = placement.planned(topology, len(hosts))
        self.connect_seconds = CONNECT_SECONDS + HOST_SECONDS * len(hosts)
        self.back_seconds = REJOIN_SECONDS
        self.pipes = programs.pipes
        self.shares_files = True
        self._context = context
        self._refusals = Refusals(context.notice)
        self._missing = Missing(context.record, context.notice)
        self._ports = HostPorts(
            namespaces,
            topology,
            self.placement.hosts,
            any_source=options.allow_spoofing,
            whole_segments=options.datapath == "kernel",
        )
        self._watch = PortWatch(hosts, self._ports, self._refusals, self._gone)
        self.parts = [HostProcesses(host, programs, context.log) for host in hosts]

    def attaching(self, network: NetworkHandle) -> LocalPortAllocator:
        self._network = network
        self._attachments = LocalPortAllocator(
            self._ports, self._context.plan.topology, network, self._refusals
        )
        self._watching = self._watch.begin()
        self._watching.add_done_callback(lambda task: _check(task, network.on_fatal))
        return self._attachments

    def _gone(self, port: int, device: str) -> None:
        """A device of a port has gone. With its instance that is as it should be."""
        instance = self._attachments.living(port)
        if instance:
            what = INTERFACE if device.startswith("p") else device
            self._missing.tell(instance, what, self._network.elapsed())

    async def wire(self, bound: Mapping[int, int]) -> None:
        await self._ports.wire(bound)

    def lived(self, host: int, life: InstanceReport) -> None:
        """No agent of a local run was told of a process."""
        name = self.agents[host].name
        self._network.on_fatal(
            RunError(f"the agent of {name} says that it has carried out a {life.what}")
        )

    def reported(self, host: int, report: HoldReport) -> None:
        """No agent of a local run reads reports."""
        name = self.agents[host].name
        self._network.on_fatal(RunError(f"the agent of {name} has read a report: {report.event}"))

    async def end(self, told: Collection[int]) -> RunError | None:
        ends = (host.end(told=number in told) for number, host in enumerate(self.parts))
        faults = [error for error in await asyncio.gather(*ends) if error is not None]
        self._watch.stop()
        await asyncio.wait({self._watching})
        self._ports.close()
        return faults[0] if faults else None

    def refused(self) -> list[dict[str, Any]]:
        return self._refusals.record()

    def overflowed(self) -> int:
        return self._ports.overflowed


def _check(task: asyncio.Task[None], on_fatal: OnFatal) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        on_fatal(error if isinstance(error, RunError) else RunError(repr(error)))
