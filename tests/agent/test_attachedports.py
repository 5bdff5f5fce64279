"""Ports that an agent takes over from the one before it, in networks of real processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from runtime.agent.clock import SystemClock
from runtime.agent.path.datapath import Datapath
from runtime.agent.process.attachedports import AttachedPorts, network_at
from runtime.agent.process.orders import PortOrder
from runtime.datapath.pktd import EngineError
from tests.doubles.datapath import FakeDatapath
from tests.waiting import in_a_loop

PREFIXES = ("10.0.0.0/8",)
HERE = "/proc/self/ns/net"
GONE = "/proc/0/ns/net"


class Kernel(FakeDatapath):
    """Ports are in the networks that their paths lead to, and `without` have no eth0 there."""

    def __init__(self) -> None:
        super().__init__()
        self.spaces: dict[int, str] = {}
        self.without: set[str] = set()

    def _do_attach(self, words: list[str]) -> list[str]:
        netns = words[1].removeprefix("netns=")
        network = network_at(netns)
        if not network:
            return [f"err system open {netns}: No such file or directory"]
        if network in self.without:
            return ["err system attach to eth0: No such device"]
        self.spaces[int(words[0])] = network
        return super()._do_attach(words)

    def _do_ports(self, _words: list[str]) -> list[str]:
        at = {port: self.spaces[port].strip("net:[]") for port in sorted(self.ports)}
        return [f"ok {len(at)}", *(f"{port} - eth0 {inode} packet" for port, inode in at.items())]


class Node:
    def __init__(self) -> None:
        self.kernel = Kernel()

    async def __aenter__(self) -> Node:
        await self.kernel.open()
        self._datapath = Datapath(SystemClock(0), lambda _event: None)
        await self._datapath.connect(os.dup(self.kernel.agent_end.fileno()))
        self.ports = AttachedPorts(self._datapath, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kernel.close()

    async def restore(self, wanted: dict[int, str], pods: dict[int, str] | None) -> list[int]:
        """The next agent's; each port is its node's."""
        self.ports = AttachedPorts(self._datapath, None)
        orders = [PortOrder(port, port, netns, "eth0") for port, netns in wanted.items()]
        return [port.port for port in await self.ports.restore(orders, pods, PREFIXES)]


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The path of another network."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *user, "--net", "sh", "-c", "echo; exec >&-; exec sleep 1000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        out.readline()
    yield f"/proc/{process.pid}/ns/net"
    process.kill()
    process.wait()


@in_a_loop
async def test_a_port_is_detached_once() -> None:
    async with Node() as node:
        await node.ports.attach(4, HERE, "eth0", PREFIXES)
        assert node.ports.networks == {4: network_at(HERE)}
        assert await node.ports.detach(4) == network_at(HERE)
        assert await node.ports.detach(4) == ""
        assert node.kernel.commands.count("detach 4") == 1


@in_a_loop
async def test_pods_are_attached_where_they_are_now(elsewhere: str) -> None:
    """0: its process has another number. 1: its network is another one. 2: it is as it was. 3: it
    is nowhere. 4: as 3, and attached still. 5: nobody wants it any more."""
    async with Node() as node:
        for port in (1, 2, 4, 5):
            await node.ports.attach(port, HERE, "eth0", PREFIXES)
        before = len(node.kernel.commands)
        wanted = {0: GONE, 1: HERE, 2: HERE, 3: GONE, 4: GONE}
        assert await node.restore(wanted, {0: elsewhere, 1: elsewhere, 2: HERE}) == [3]
        here, there = network_at(HERE), network_at(elsewhere)
        assert node.ports.networks == {0: there, 1: there, 2: here, 4: here}
        assert node.kernel.spaces.items() >= node.ports.networks.items()
        told = [line.split(" netns")[0] for line in node.kernel.commands[before:]]
        assert told == ["ports", "detach 5", "attach 0", "detach 1", "attach 1", "attach 3"]


@in_a_loop
async def test_a_network_that_is_being_taken_down_is_none(elsewhere: str) -> None:
    async with Node() as node:
        node.kernel.without.add(network_at(elsewhere))
        assert await node.restore({0: elsewhere}, {}) == [0]
        assert node.ports.networks == {}
        node.kernel.refuse = "attach"
        with pytest.raises(EngineError, match="refused on request"):
            await node.restore({0: elsewhere}, {})


@in_a_loop
async def test_elsewhere_than_in_a_cluster_every_network_is_there() -> None:
    async with Node() as node:
        with pytest.raises(EngineError, match="No such file"):
            await node.restore({0: GONE}, None)
