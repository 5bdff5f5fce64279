"""Ports of local hosts: veths from a host's bridge into its instances, who gets the packets, and
what ports and the devices between them have dropped.

Netlink waits for the kernel's lock, so all of it happens in a thread of its own, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from compiler.plan.types import Topology
from runtime.backend.local import hosts_backend
from runtime.backend.local.hosts_backend import HostNamespaces, LocalHost, PortRequest
from runtime.system import process_limits
from runtime.system.network.interface import INTERFACE

LOOK_MS = 3000  # counters that have moved within this time are looked at, every second

Value = TypeVar("Value")
Dropped = tuple[str, Mapping[str, int]]  # an instance, and how many packets more for which reason


@dataclass(slots=True)
class _Known:
    """A port: whose it is, and its counters when they were last looked at."""

    instance: str
    counts: dict[str, int] = field(default_factory=dict)

    def more(self, counts: Mapping[str, int]) -> dict[str, int]:
        """What has been added since."""
        found = {reason: count - self.counts.get(reason, 0) for reason, count in counts.items()}
        self.counts.update(counts)
        return {reason: count for reason, count in found.items() if count > 0}


class HostPorts:
    """Nodes are the plan's indices, ports numbers over all hosts.

    any_source      source addresses of instances' packets are not looked at
    whole_segments  instances are to split what they send by themselves
    """

    def __init__(
        self,
        hosts: HostNamespaces,
        topology: Topology,
        placement: tuple[int, ...],
        *,
        any_source: bool = False,
        whole_segments: bool = False,
    ) -> None:
        self._hosts = hosts
        self._topology = topology
        self._placement = placement
        self._any_source = any_source
        self._whole_segments = whole_segments
        self._known: dict[int, _Known] = {}  # of the thread
        self._overflowed: dict[tuple[int, int], int] = {}  # by namespace and device, seen last
        self._lost_before = 0  # by devices that are gone
        self._pool = ThreadPoolExecutor(1, "hosts")

    def host(self, node: int) -> LocalHost:
        return self._hosts.hosts[self._placement[node]]

    async def _do(self, action: Callable[[], Value]) -> Value:
        return await process_limits.in_thread(self._pool, action)

    async def add(self, port: int, node: int, pid: int) -> None:
        """Makes eth0 in the namespace of process `pid`. RunError with the kernel's words."""
        host, instance = self.host(node), self._topology.nodes[node]
        wanted = PortRequest(
            port,
            instance.name,
            pid,
            instance.ipv4,
            instance.ipv6,
            INTERFACE,
            self._any_source,
            self._whole_segments,
        )

        def make() -> None:
            host.add_port(wanted)
            self._known[port] = _Known(instance.name)

        await self._do(make)

    async def wire(self, bound: Mapping[int, int]) -> None:
        """From now on these nodes' packets go to these ports."""
        wanted: dict[int, list[tuple[int, str]]] = {}
        for node, port in sorted(bound.items()):
            address = self._topology.nodes[node].ipv4
            wanted.setdefault(self._placement[node], []).append((port, address))
        for number, ports in wanted.items():
            await self._do(_wiring(self._hosts.hosts[number], ports))

    async def remove(self, port: int, node: int) -> list[Dropped]:
        """Returns what it has dropped since `dropped` was last asked."""
        host = self.host(node)

        def take_away() -> list[Dropped]:
            found = list(self._look(host, LOOK_MS))
            host.remove_port(port)
            self._known.pop(port, None)
            self._lost_before += self._overflowed.pop(
                (host.net, hosts_backend.port_device(port)), 0
            )
            return found

        return await self._do(take_away)

    async def dropped(self) -> list[Dropped]:
        """What ports have dropped since this was last asked. RunError with the kernel's words."""
        hosts = self._hosts.hosts

        def look() -> list[Dropped]:
            self._look_at_ways(self._hosts.data)
            return [one for host in hosts for one in self._look(host, LOOK_MS)]

        return await self._do(look)

    @property
    def overflowed(self) -> int:
        """Packets that were shaped already and found no room on their way to an instance, as of the
        last look at what ports have dropped."""
        return self._lost_before + sum(self._overflowed.values())

    def _look_at_ways(self, space: LocalHost) -> None:
        found = space.overflowed()
        self._overflowed.update(((space.net, device), count) for device, count in found.items())

    def _look(self, host: LocalHost, since_ms: int) -> Iterator[Dropped]:
        self._look_at_ways(host)
        for port, counts in sorted(host.dropped(since_ms).items()):
            known = self._known.get(port)
            more = known.more(counts) if known is not None else {}
            if known is not None and more:
                yield known.instance, more

    def close(self) -> None:
        """The namespaces end with the last process in them."""
        self._pool.shutdown(wait=True)
        self._hosts.close()


def _wiring(host: LocalHost, ports: list[tuple[int, str]]) -> Callable[[], None]:
    return lambda: host.wire(ports)
