"""Local hosts: network namespaces of this machine that stand for machines of a cluster.

    host0: ctl0 100.64.1.1 ── ┐                 host0: br0 ── up0 ── ┐
    host1: ctl0 100.64.1.2 ── ┼── control       host1: br0 ── up0 ── ┼── data
    the driver: ctl0 100.64.0.1 ┘

Two networks, each a bridge in a namespace of its own. Agents and the coordinator talk over the
*control* network, whose MACs are stated; the *data* network has no addresses and carries what
instances send. No host forwards from one to the other, and br0 hands nothing up to its own host, so
no instance reaches an agent, whatever it sends.

An instance's eth0 is one end of a veth whose other end pN is a port of its host's br0, as a CNI
plugin would do it. pN holds the instance to what it may send
(runtime.backend.local.ports.portpolicy) and redirects what is to be shaped to eN, where the
datapath is attached; what leaves there comes out at fN, the other port:

    eth0 ── pN ─(redirect)─▶ eN ── fN          pN and fN are ports of br0

Nothing here has a name on the machine: namespaces are held by descriptors and by the processes in
them, devices live in the namespaces, so all of it ends with the run.

Where instances are is stated and not learnt: br0 sends what is for an instance to the port of the
incarnation that was wired last. So the one of a life before and the one that is being prepared,
which have the same addresses, never take each other's packets.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compiler.plan.types import Topology
from runtime.backend.local.ports import devices, portpolicy, spaces
from runtime.backend.local.ports.devices import mac_of
from runtime.backend.local.ports.portpolicy import PortOwner
from runtime.errors import MachineError, RunError
from runtime.system.network import netlink, rtnetlink, tc
from runtime.system.network.netlink import (
    QUIET,
    NetlinkRequest,
    address,
    link,
    loopback_up,
    neighbour,
)

COORDINATOR = "100.64.0.1"
PREFIX = 16  # 100.64.0.0/16, which RFC 6598 sets aside for networks behind a translator
MAX_NEIGHBOURS = 256  # instances; more are found by ARP and neighbour discovery
# Numbers of devices. 1 is the loopback; the next ones may be tunnels (sit0, …) of the kernel.
_BRIDGE, _UPLINK, _CONTROL, _VOID = 200, 201, 202, 203
# Of port 0: far above what the kernel gives to the devices that datapaths make.
_FIRST_PORT, _FIRST_SHAPER, _FIRST_EXIT = 1_000_000, 2_000_000, 3_000_000
_ETH0 = 100  # in an instance, where a kernel may have made devices before
_FIRST_WAY = 10_000  # in the namespaces of both networks: ends that lead to the hosts
_FIRST_VOID = 11_000  # in that of the data network: ends of void0
_COORDINATOR_LINK = 1000  # number of ctl0 in the driver's own namespace


def host_name(index: int) -> str:
    return f"host{index}"


def host_address(index: int) -> str:
    """Address of a host (from 0) in the control network."""
    return f"100.64.{1 + index // 200}.{1 + index % 200}"


def shaper_name(port: int) -> str:
    """The device of a host at which its datapath shapes what comes from a port."""
    return f"e{port}"


def port_device(port: int) -> int:
    """The number of pN in its host."""
    return _FIRST_PORT + port


def neighbours(topology: Topology) -> list[NetlinkRequest]:
    """What tells every instance the MAC of every other, since it follows from the address.

    So who is down is silent, as in a run on one machine: with ARP, programs would be told after 3 s
    that there is no route to it. And the kernel's one neighbour table of 1,024 entries, which all
    namespaces share, is not used up: stated entries do not count.
    """
    nodes = [node for node in topology.nodes if node.service >= 0]
    if len(nodes) > MAX_NEIGHBOURS:
        return []
    return [
        NetlinkRequest(f"state the MAC of {node.name}", neighbour(_ETH0, text, mac_of(node.ipv4)))
        for node in nodes
        for text in (node.ipv4, node.ipv6)
    ]


@dataclass(frozen=True, slots=True)
class PortRequest:
    """What is to be at a port."""

    port: int
    instance: str
    pid: int  # a process in the instance's network namespace
    ipv4: str
    ipv6: str
    interface: str
    any_source: bool = False  # source addresses of its IP packets are not looked at
    whole_segments: bool = False  # its own stack splits what it sends into frames


@dataclass(slots=True)
class LocalHost:
    """One host: its namespace, a netlink socket in it, and one that hears of its devices."""

    index: int
    net: int  # descriptor of the network namespace
    netlink: socket.socket
    watch: socket.socket

    @property
    def name(self) -> str:
        return host_name(self.index)

    @property
    def address(self) -> str:
        return host_address(self.index)

    @property
    def netns(self) -> str:
        """A path of the namespace for other processes of this run."""
        return f"/proc/{os.getpid()}/fd/{self.net}"

    def add_port(self, wanted: PortRequest) -> None:
        """Makes the interface in the instance's namespace, its other end in br0, and eN.

        Packets for it come once it is wired. RunError with the kernel's words. May block.
        """
        port = wanted.port
        device, shaper, leaves = _FIRST_PORT + port, _FIRST_SHAPER + port, _FIRST_EXIT + port
        group = ("IFLA_GROUP", port + 1)  # by which they are removed
        near: list[Any] = [("IFLA_IFNAME", f"p{port}"), ("IFLA_MASTER", _BRIDGE), group]
        peer: list[Any] = [
            ("IFLA_IFNAME", wanted.interface),
            ("IFLA_ADDRESS", mac_of(wanted.ipv4)),
            ("IFLA_NET_NS_PID", wanted.pid),
            *(devices.WHOLE_SEGMENTS if wanted.whole_segments else ()),
        ]
        made = devices.veth(device, near, peer, _ETH0)
        who = PortOwner(mac_of(wanted.ipv4), wanted.ipv4, wanted.ipv6)
        # Datapaths give what they send the MAC of the device that they are attached to.
        entry: list[Any] = [("IFLA_IFNAME", shaper_name(port)), ("IFLA_ADDRESS", who.mac)]
        pair = devices.veth(leaves, [("IFLA_IFNAME", f"f{port}"), group], entry, shaper)
        requests = [
            NetlinkRequest(f"make {wanted.interface} of {wanted.instance}", made),
            NetlinkRequest(f"make e{port} and f{port}", pair),
            NetlinkRequest(f"bring e{port} up", link(shaper, up=True)),
            # Not before: a port of a bridge that gets its carrier later forwards up to 1 s later.
            NetlinkRequest(f"put f{port} into br0", link(leaves, [("IFLA_MASTER", _BRIDGE)])),
            NetlinkRequest(f"set p{port} up in br0", devices.bridge_port(device, groups=True)),
            NetlinkRequest(f"set f{port} up in br0", devices.bridge_port(leaves, groups=False)),
            *portpolicy.requests(port, device, shaper, _VOID, who, any_source=wanted.any_source),
        ]
        netlink.carry_out(self.netlink, self.name, requests)

    def wire(self, ports: Iterable[tuple[int, str]]) -> None:
        """From now on packets for these IPv4 addresses go to these ports, and nowhere else."""
        requests = [
            NetlinkRequest(
                f"send packets for {ipv4} to p{port}", devices.forward(_FIRST_PORT + port, ipv4)
            )
            for port, ipv4 in ports
        ]
        netlink.carry_out(self.netlink, self.name, requests)

    def remove_port(self, port: int) -> None:
        """Both ends of both veths. One that went with its namespace already is no error."""
        request = NetlinkRequest(f"remove the devices of port {port}", devices.removal(port + 1))
        with suppress(OSError):
            netlink.exchange(self.netlink, [request])

    def dropped(self, since_ms: int = 0) -> dict[int, dict[str, int]]:
        """Packets that ports have dropped since they were made, by port and reason; with `since_ms`
        counters that have moved lately. RunError with the kernel's words. May block."""
        try:
            return portpolicy.by_port(tc.counts(self.netlink, since_ms))
        except OSError as error:
            raise RunError(f"cannot read the counters of {self.name}: {error}") from error

    def overflowed(self) -> dict[int, int]:
        """What was shaped already and found no room on its way to an instance, by the device that
        lost it, since that was made. RunError with the kernel's words. May block.

        What finds no room on its way from an instance to its datapath, the datapath counts; void0
        is there to lose packets.
        """
        try:
            found = rtnetlink.dropped(self.netlink)
        except OSError as error:
            raise RunError(f"cannot read the counters of {self.name}: {error}") from error
        return {device: count for device, count in found.items() if count and _is_way(device)}

    def close(self) -> None:
        os.close(self.net)
        self.netlink.close()
        self.watch.close()


def _is_way(device: int) -> bool:
    """Whether it is one of those that shaped packets take to an instance: up0, a way of the data
    network, pN."""
    port = _FIRST_PORT <= device < _FIRST_SHAPER
    return port or device == _UPLINK or _FIRST_WAY < device < _FIRST_VOID


@dataclass(slots=True)
class HostNamespaces:
    """All hosts of a run and what joins them."""

    hosts: tuple[LocalHost, ...]
    _control: LocalHost
    data: LocalHost

    def close(self) -> None:
        """Lets go of the namespaces: they end with the last process in them."""
        for host in (*self.hosts, self._control, self.data):
            host.close()


def make(count: int) -> HostNamespaces:
    """Hosts 0 to count-1, both networks, and the coordinator's address in this very namespace.

    RunError with the kernel's words, MachineError if it refuses namespaces; nothing is left then.
    """
    names = [*map(host_name, range(count)), "the control network", "the data network"]
    made = spaces.make(names)
    *hosts, control, data = (LocalHost(n, *space) for n, space in enumerate(made))
    found = HostNamespaces(tuple(hosts), control, data)
    try:
        _connect(found)
    except BaseException:
        found.close()
        raise
    return found


# -- devices ----------------------------------------------------------------------------------


def _connect(found: HostNamespaces) -> None:
    """Bridges and veths, first those that lead to the hosts."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        ways = _ways(found.hosts, "ctl0", _CONTROL)
        ways.append(NetlinkRequest("connect the driver", _way(-1, "driver", "ctl0", here)))
        netlink.carry_out(found._control.netlink, "the control network", ways)
    finally:
        os.close(here)
    ways = [*_ways(found.hosts, "up0", _UPLINK), *_voids(found.hosts)]
    netlink.carry_out(found.data.netlink, "the data network", ways)
    addresses = [host.address for host in found.hosts]
    for host in found.hosts:
        netlink.carry_out(host.netlink, host.name, _inside(host, addresses))
        _keep_apart(host)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as own:
        own.bind((0, 0))
        netlink.prepare(own)
        requests = _controlled(_COORDINATOR_LINK, COORDINATOR, addresses)
        netlink.carry_out(own, "the driver's namespace", [loopback_up(), *requests])


def _way(number: int, name: str, far: str, net: int, far_index: int = _COORDINATOR_LINK) -> bytes:
    """From a network's bridge to a namespace; `number` is the host's, -1 of the driver."""
    near: list[Any] = [("IFLA_IFNAME", name), ("IFLA_MASTER", _BRIDGE)]
    peer: list[Any] = [("IFLA_IFNAME", far), ("IFLA_NET_NS_FD", net)]
    return devices.veth(_FIRST_WAY + 1 + number, near, peer, far_index)


def _ways(hosts: Sequence[LocalHost], far: str, far_index: int) -> list[NetlinkRequest]:
    """A network: its bridge, and a way to each host that ends there as the device `far`."""
    requests = [
        loopback_up(),
        NetlinkRequest("make the bridge", devices.bridge(_BRIDGE, "br0", "02:01:00:00:00:00")),
    ]
    for host in hosts:
        made = _way(host.index, host.name, far, host.net, far_index)
        requests.append(NetlinkRequest(f"connect {host.name}", made))
    return requests


def _voids(hosts: Sequence[LocalHost]) -> list[NetlinkRequest]:
    """Where hosts send what they drop: a veth that ends in a namespace without any address."""
    return [
        NetlinkRequest(
            f"make void0 of {host.name}",
            devices.veth(
                _FIRST_VOID + host.index,
                [("IFLA_IFNAME", f"void{host.index}")],
                [("IFLA_IFNAME", "void0"), ("IFLA_NET_NS_FD", host.net)],
                _VOID,
            ),
        )
        for host in hosts
    ]


def _inside(host: LocalHost, addresses: Sequence[str]) -> list[NetlinkRequest]:
    mac = "02:01" + mac_of(host.address)[5:]
    return [
        loopback_up(),
        NetlinkRequest("bring void0 up", devices.up_without_arp(_VOID)),
        NetlinkRequest("make the bridge br0", devices.bridge(_BRIDGE, "br0", mac)),
        NetlinkRequest("put up0 into br0", link(_UPLINK, [("IFLA_MASTER", _BRIDGE)], up=True)),
        *_controlled(_CONTROL, host.address, [COORDINATOR, *addresses]),
    ]


def _keep_apart(host: LocalHost) -> None:
    """The first filters: a kernel that has none is found out here."""
    try:
        netlink.carry_out(host.netlink, host.name, portpolicy.closed(_BRIDGE, _VOID))
    except RunError as error:
        modules = "sch_ingress cls_u32 act_mirred"
        raise MachineError(error.message, f"as root: modprobe -a {modules}") from error


def _controlled(index: int, own: str, others: Sequence[str]) -> list[NetlinkRequest]:
    """An interface of the control network: nobody is asked for, or believed about, a MAC."""
    return [
        NetlinkRequest("set the MAC of ctl0", link(index, [("IFLA_ADDRESS", mac_of(own)), *QUIET])),
        NetlinkRequest("bring ctl0 up", devices.up_without_arp(index)),
        NetlinkRequest(f"add {own} to ctl0", address(index, own, PREFIX)),
        *(
            NetlinkRequest(f"state the MAC of {other}", neighbour(index, other, mac_of(other)))
            for other in others
            if other != own
        ),
    ]
