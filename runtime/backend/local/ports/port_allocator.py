"""Where incarnations are attached in a run over hosts: a port of their host, at which its agent has
the datapath shape what they send."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.plan.types import Topology
from runtime.agent.process.orders import AttachOrder, DetachOrder
from runtime.backend.hosts.agent_state import Port
from runtime.backend.hosts.hosts import NetworkHandle
from runtime.backend.instance import Incarnation
from runtime.backend.local import hosts_backend
from runtime.backend.local.ports.veths import HostPorts
from runtime.backend.ports import Numbers, UnusedPorts
from runtime.backend.refusals import Refusals
from runtime.errors import RunError
from runtime.system.network.netlink import NetlinkRequest


class LocalPortAllocator:
    """See runtime.backend.base (PortAllocator). Ports are numbers over all hosts."""

    def __init__(
        self, ports: HostPorts, topology: Topology, network: NetworkHandle, refusals: Refusals
    ) -> None:
        self.more: Sequence[NetlinkRequest] = hosts_backend.neighbours(topology)
        self.groups = False
        self._ports = ports
        self._agent_state = network.agent_state
        self._ask = network.ask
        self._refusals = refusals
        self._on_fatal = network.on_fatal
        self._numbers = Numbers()
        self._unused = UnusedPorts()
        self._incarnations: dict[int, Incarnation] = {}  # of ports that are in use

    async def attach(self, incarnation: Incarnation, node: int) -> int:
        port = self._numbers.take()
        try:
            await self._ports.add(port, node, incarnation.pid)
        except BaseException:
            self._numbers.free(port)
            raise
        self._incarnations[port] = incarnation
        netns = self._ports.host(node).netns
        self._agent_state.ports[port] = Port(node, netns, hosts_backend.shaper_name(port))
        return port

    async def furnished(self, _incarnation: Incarnation, node: int, port: int) -> None:
        known = self._agent_state.ports[port]
        order = AttachOrder(node, port, known.netns, known.interface)
        await self._ask(self._ports.host(node).index, order)
        known.attached = True

    def give_back(self, port: int) -> None:
        self._incarnations.pop(port, None)
        self._unused.put(port)

    def living(self, port: int) -> str:
        """The instance at this port, '' if it is dead or there is none."""
        incarnation = self._incarnations.get(port)
        return incarnation.name if incarnation is not None and incarnation.alive() else ""

    async def tidy(self, next_due: Callable[[], int]) -> None:
        try:
            while True:
                await self._remove(await self._unused.next(next_due))
        except RunError as error:
            self._on_fatal(error)

    async def _remove(self, port: int) -> None:
        known = self._agent_state.ports[port]
        if known.attached:  # else that was refused, which its instance's join tells
            host = self._ports.host(known.node).index
            await self._ask(host, DetachOrder(port))
        del self._agent_state.ports[port]
        for instance, more in await self._ports.remove(port, known.node):
            self._refusals.add(instance, more)
        self._numbers.free(port)
