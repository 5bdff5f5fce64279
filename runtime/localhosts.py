"""Local hosts: network namespaces of this machine that stand for machines of a cluster.

    host0: br0 100.64.1.1 ── up0 ┐
    host1: br0 100.64.1.2 ── up0 ┼── the underlay: one bridge in a namespace of its own
    the driver:  under0 100.64.0.1 ┘

An instance's eth0 is one end of a veth whose other end is a port of its host's br0, as a CNI plugin
would do it. Nothing here has a name on the machine: namespaces are held by descriptors and by the
processes in them, devices live in the namespaces, so all of it ends with the run.

Where instances are is stated and not learnt: br0 sends what is for an instance to the port of the
incarnation that was wired last. So the one of a life before and the one that is being prepared,
which have the same addresses, never take each other's packets.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyroute2.netlink import NLM_F_CREATE, NLM_F_REPLACE
from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_NEWNEIGH
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg

from compiler.plan.types import Topology
from runtime import netlink
from runtime.errors import MachineError
from runtime.netlink import Request, address, encoded, link, loopback_up, neighbour, new_link

COORDINATOR = "100.64.0.1"
UNDERLAY = "100.64.0.2"  # of its bridge: only for a MAC
PREFIX = 16  # 100.64.0.0/16, which RFC 6598 sets aside for networks behind a translator
MTU = 1500
MAX_NEIGHBOURS = 256  # instances; more are found by ARP and neighbour discovery
_CLONE_NEWNET = 0x40000000
_BRIDGE, _UPLINK = 2, 3  # numbers of devices; 1 is the loopback. Bridges have 2 everywhere
_FIRST_PORT = 10  # number of the bridge's end of the veth of port 0
_ETH0 = 100  # in an instance, where a kernel may have made devices before
_WAY_TO_DRIVER = 10  # in the underlay: that end; those to the hosts follow
_COORDINATOR_LINK = 1000  # number of under0 in the driver's own namespace
_NTF_MASTER, _NUD_NOARP = 0x04, 0x40  # linux/neighbour.h; the latter is a static entry of a bridge
_AF_BRIDGE = 7

Value = TypeVar("Value")


def host_name(index: int) -> str:
    return f"host{index}"


def host_address(index: int) -> str:
    """Address of a host (from 0) in the underlay."""
    return f"100.64.{1 + index // 200}.{1 + index % 200}"


def mac_of(ipv4: str) -> str:
    """MAC for an address: the same in every life, so that nobody's ARP table goes stale."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in socket.inet_aton(ipv4))


def neighbours(topology: Topology) -> list[Request]:
    """What tells every instance the MAC of every other, since it follows from the address.

    So who is down is silent, as in a run on one machine: with ARP, programs would be told after 3 s
    that there is no route to it. And the kernel's one neighbour table of 1,024 entries, which all
    namespaces share, is not used up: stated entries do not count.
    """
    nodes = [node for node in topology.nodes if node.service >= 0]
    if len(nodes) > MAX_NEIGHBOURS:
        return []
    return [
        Request(f"state the MAC of {node.name}", neighbour(_ETH0, text, mac_of(node.ipv4)))
        for node in nodes
        for text in (node.ipv4, node.ipv6)
    ]


@dataclass(slots=True)
class LocalHost:
    """One host: its namespace and a netlink socket in it."""

    index: int
    net: int  # descriptor of the network namespace
    netlink: socket.socket

    @property
    def name(self) -> str:
        return host_name(self.index)

    @property
    def address(self) -> str:
        return host_address(self.index)

    def add_port(self, port: int, instance: str, pid: int, ipv4: str, interface: str) -> None:
        """Makes `interface` in the namespace of process `pid`, its other end in br0.

        Packets for it come once it is wired. RunError with the kernel's words. May block.
        """
        peer: list[Any] = [
            ("IFLA_IFNAME", interface),
            ("IFLA_ADDRESS", mac_of(ipv4)),
            ("IFLA_NET_NS_PID", pid),
        ]
        made = _veth(_FIRST_PORT + port, f"p{port}", _BRIDGE, peer, _ETH0)
        requests = [
            Request(f"make {interface} of {instance}", made),
            Request(f"keep br0 from learning at p{port}", _without_learning(_FIRST_PORT + port)),
        ]
        netlink.carry_out(self.netlink, self.name, requests)

    def wire(self, ports: Iterable[tuple[int, str]]) -> None:
        """From now on packets for these IPv4 addresses go to these ports, and nowhere else."""
        requests = [
            Request(f"send packets for {ipv4} to p{port}", _forward(_FIRST_PORT + port, ipv4))
            for port, ipv4 in ports
        ]
        netlink.carry_out(self.netlink, self.name, requests)

    def remove_port(self, port: int) -> None:
        """Both ends of the veth. One that went with its namespace already is no error."""
        message = ifinfmsg()
        message["index"] = _FIRST_PORT + port
        request = Request(f"remove p{port}", encoded(message, RTM_DELLINK))
        with suppress(OSError):
            netlink.exchange(self.netlink, [request])

    def close(self) -> None:
        os.close(self.net)
        self.netlink.close()


def _veth(index: int, name: str, master: int, peer: list[Any], peer_index: int = 0) -> bytes:
    """A veth as a port of the bridge `master`; its other end is as `peer` says."""
    far = {"index": peer_index, "attrs": [*peer, ("IFLA_MTU", MTU)]}
    data = {"attrs": [("VETH_INFO_PEER", far)]}
    kind = {"attrs": [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", data)]}
    attributes = [("IFLA_IFNAME", name), ("IFLA_MTU", MTU), ("IFLA_MASTER", master)]
    return new_link(index, [*attributes, ("IFLA_LINKINFO", kind)])


def _bridge(index: int, ipv4: str) -> bytes:
    """Without snooping: neighbour discovery is multicast, and nobody here asks for membership.

    With a MAC of its own: by default a bridge takes the lowest of its ports' and changes it as they
    come and go, and the other hosts would send to the old one until their ARP tables find out.
    """
    data = {"attrs": [("IFLA_BR_MCAST_SNOOPING", 0), ("IFLA_BR_STP_STATE", 0)]}
    kind = {"attrs": [("IFLA_INFO_KIND", "bridge"), ("IFLA_INFO_DATA", data)]}
    name = [("IFLA_IFNAME", "br0"), ("IFLA_ADDRESS", mac_of(ipv4))]
    return new_link(index, [*name, ("IFLA_LINKINFO", kind)])


def _without_learning(index: int) -> bytes:
    slave = {"attrs": [("IFLA_BRPORT_LEARNING", 0)]}
    kind = {"attrs": [("IFLA_INFO_SLAVE_KIND", "bridge"), ("IFLA_INFO_SLAVE_DATA", slave)]}
    return link(index, [("IFLA_LINKINFO", kind)])


def _forward(index: int, ipv4: str) -> bytes:
    message = ndmsg()
    message["family"] = _AF_BRIDGE
    message["ifindex"] = index
    message["state"] = _NUD_NOARP
    message["flags"] = _NTF_MASTER
    message["attrs"] = [("NDA_LLADDR", mac_of(ipv4))]
    return encoded(message, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE)


@dataclass(slots=True)
class LocalHosts:
    """All hosts of a run and what joins them."""

    hosts: tuple[LocalHost, ...]
    _underlay: LocalHost

    def close(self) -> None:
        """Lets go of the namespaces: they end with the last process in them."""
        for host in (*self.hosts, self._underlay):
            host.close()


def make(count: int) -> LocalHosts:
    """Hosts 0 to count-1, the underlay, and the coordinator's address in this very namespace.

    RunError with the kernel's words, MachineError if it refuses namespaces; nothing is left then.
    """
    found = LocalHosts(*_in_thread(lambda: _namespaces(count)))
    try:
        _connect(found)
    except BaseException:
        found.close()
        raise
    return found


def _in_thread(action: Callable[[], Value]) -> Value:
    """Runs it in a thread that ends then: one that has changed namespaces serves nobody else."""
    results: list[Value] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="namespaces")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _namespaces(count: int) -> tuple[tuple[LocalHost, ...], LocalHost]:
    made: list[LocalHost] = []
    try:
        for index in range(count + 1):
            made.append(_namespace(index))
    except BaseException:
        for host in made:
            host.close()
        raise
    return tuple(made[:-1]), made[-1]


def _namespace(index: int) -> LocalHost:
    """A fresh namespace; this thread is in it afterwards."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(ctypes.c_int(_CLONE_NEWNET)) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(
            f"cannot create the network namespace of {host_name(index)}: {reason}",
            "ask `tstorm doctor`; sysctl user.max_net_namespaces says how many there may be",
        )
    _without_ipv6()
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    connection.bind((0, 0))
    netlink.prepare(connection)
    return LocalHost(index, descriptor, connection)


def _without_ipv6() -> None:
    """Hosts speak IPv4 to each other; what instances say in IPv6 passes the bridges all the same.

    So no device of a host gets a link-local address and talks about it into the instances. Where
    this cannot be switched there is that talk, and nothing else is wrong.
    """
    for which in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")


def _connect(found: LocalHosts) -> None:
    """Bridges and veths, first the underlay's."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        netlink.carry_out(found._underlay.netlink, "the underlay", _underlay(found.hosts, here))
    finally:
        os.close(here)
    for host in found.hosts:
        netlink.carry_out(host.netlink, host.name, _inside(host))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as own:
        own.bind((0, 0))
        netlink.prepare(own)
        netlink.carry_out(own, "the driver's namespace", _own())


def _underlay(hosts: Sequence[LocalHost], here: int) -> list[Request]:
    coordinator: list[Any] = [("IFLA_IFNAME", "under0"), ("IFLA_NET_NS_FD", here)]
    way = _veth(_WAY_TO_DRIVER, "driver", _BRIDGE, coordinator, _COORDINATOR_LINK)
    requests = [
        loopback_up(),
        Request("make the bridge", _bridge(_BRIDGE, UNDERLAY)),
        Request("connect the driver", way),
    ]
    for host in hosts:
        peer: list[Any] = [("IFLA_IFNAME", "up0"), ("IFLA_NET_NS_FD", host.net)]
        made = _veth(_WAY_TO_DRIVER + 1 + host.index, host.name, _BRIDGE, peer, _UPLINK)
        requests.append(Request(f"connect {host.name}", made))
    return requests


def _inside(host: LocalHost) -> list[Request]:
    return [
        loopback_up(),
        Request("make the bridge br0", _bridge(_BRIDGE, host.address)),
        Request("put up0 into br0", link(_UPLINK, [("IFLA_MASTER", _BRIDGE)], up=True)),
        Request(f"add {host.address} to br0", address(_BRIDGE, host.address, PREFIX)),
    ]


def _own() -> list[Request]:
    return [
        loopback_up(),
        Request("bring under0 up", link(_COORDINATOR_LINK, up=True)),
        Request(f"add {COORDINATOR} to under0", address(_COORDINATOR_LINK, COORDINATOR, PREFIX)),
    ]
