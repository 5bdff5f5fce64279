"""Ports of local hosts: veths from a host's bridge into its instances, and who gets the packets.

Netlink waits for the kernel's lock, so all of it happens in a thread of its own, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from compiler.plan.types import Topology
from runtime import shortage
from runtime.interface import INTERFACE
from runtime.localhosts import LocalHost, LocalHosts


class HostPorts:
    """Nodes are the plan's indices, ports numbers over all hosts."""

    def __init__(self, hosts: LocalHosts, topology: Topology, placement: tuple[int, ...]) -> None:
        self._hosts = hosts
        self._topology = topology
        self._placement = placement
        self._pool = ThreadPoolExecutor(1, "hosts")

    def _host(self, node: int) -> LocalHost:
        return self._hosts.hosts[self._placement[node]]

    async def _do(self, action: Callable[[], None]) -> None:
        await shortage.in_thread(self._pool, action)

    async def add(self, port: int, node: int, pid: int) -> None:
        """Makes eth0 in the namespace of process `pid`. RunError with the kernel's words."""
        host, instance = self._host(node), self._topology.nodes[node]
        name, address, interface = instance.name, instance.ipv4, INTERFACE
        await self._do(lambda: host.add_port(port, name, pid, address, interface))

    async def wire(self, bound: Mapping[int, int]) -> None:
        """From now on these nodes' packets go to these ports."""
        wanted: dict[int, list[tuple[int, str]]] = {}
        for node, port in sorted(bound.items()):
            address = self._topology.nodes[node].ipv4
            wanted.setdefault(self._placement[node], []).append((port, address))
        for number, ports in wanted.items():
            await self._do(_wiring(self._hosts.hosts[number], ports))

    async def remove(self, port: int, node: int) -> None:
        host = self._host(node)
        await self._do(lambda: host.remove_port(port))

    def close(self) -> None:
        """The namespaces end with the last process in them."""
        self._pool.shutdown(wait=True)
        self._hosts.close()


def _wiring(host: LocalHost, ports: list[tuple[int, str]]) -> Callable[[], None]:
    return lambda: host.wire(ports)
