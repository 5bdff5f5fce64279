"""Gives an instance its addresses: loopback up, each interface with IPv4 and IPv6, up, and routes.

Of several interfaces the first has what no address or device is chosen for. What comes from an
address of another one leaves by that one: it has a table of its own, and a rule for its addresses.

Runs over a netlink socket that the instance's PID 1 opened in its own network namespace, so no
thread here ever changes namespaces. All of it is sent in one go (runtime.system.network.netlink).
"""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_interface

from runtime.errors import RunError
from runtime.system.network import netlink, rtnetlink
from runtime.system.network.interface import INTERFACE, IPV4_PREFIX, IPV6_PREFIX
from runtime.system.network.netlink import (
    QUIET,
    NetlinkRequest,
    Refusal,
    address,
    default_route,
    link,
    loopback_up,
    route,
    rule,
)

_SIOCGIFINDEX = 0x8933


@dataclass(frozen=True, slots=True)
class FrameAddresses:
    """What an interface that carries frames has of its own: the address of its device, the lengths
    of its prefixes, and its gateways, IPv4 first."""

    mac: str
    prefixes: tuple[int, int]
    gateways: tuple[str, str]

    @property
    def link_local(self) -> str:
        """Of IPv6, as the device's address gives it (RFC 4291, appendix A)."""
        mac = bytes.fromhex(self.mac.replace(":", ""))
        own = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
        return str(IPv6Address(b"\xfe\x80" + bytes(6) + own))


@dataclass(frozen=True, slots=True)
class Addresses:
    """'' for the one that it has not."""

    ipv4: str
    ipv6: str
    groups: bool = False  # its network carries multicast and broadcast
    interface: str = INTERFACE
    number: int = 0  # of the interface in the instance
    frames: FrameAddresses | None = None  # of an interface that carries any frame
    beyond: tuple[tuple[str, int], ...] = ()  # further networks of IPv4 that it leads to


# Without a default route those of IPv4 have none. IPv6 has a route to groups by itself.
_GROUPS = (("224.0.0.0", 4), ("255.255.255.255", 32))


_FIRST_TABLE = 1000  # of eth1
_FIRST_METRIC = 1024  # of the route by eth1, behind those of eth0 (0, in IPv6 256)


def interface_index(connection: socket.socket, name: str) -> int:
    request = struct.pack("16si20x", name.encode(), 0)
    answer = fcntl.ioctl(connection.fileno(), _SIOCGIFINDEX, request)
    return int(struct.unpack_from("i", answer, 16)[0])


def _requests(index: int, addresses: Addresses) -> list[NetlinkRequest]:
    if addresses.frames is not None:
        return list(_of_frames(index, addresses, addresses.frames))
    device, number = addresses.interface, addresses.number
    wanted = ((addresses.ipv4, IPV4_PREFIX), (addresses.ipv6, IPV6_PREFIX))
    metric = _FIRST_METRIC + number if number else 0
    return [
        NetlinkRequest(f"silence {device} (IPv6)", link(index, QUIET)),
        *(
            NetlinkRequest(f"add {one} to {device}", address(index, one, prefix, metric))
            for one, prefix in wanted
            if one
        ),
        NetlinkRequest(f"bring {device} up", link(index, up=True)),
        *(
            NetlinkRequest(f"add a route to {one}/{prefix} to {device}", route(index, one, prefix))
            for one, prefix in addresses.beyond
            if addresses.ipv4
        ),
        *(_own_routes(index, addresses) if number else _groups(index, addresses)),
    ]


def _of_frames(
    index: int, addresses: Addresses, frames: FrameAddresses
) -> Iterator[NetlinkRequest]:
    """With ARP and neighbour discovery, and so a link-local address; no rules, and no routes but
    those of its networks and the default: what a router's programs find is theirs."""
    device, number = addresses.interface, addresses.number
    yield NetlinkRequest(f"silence {device} (IPv6)", link(index, QUIET))
    own = zip((addresses.ipv4, addresses.ipv6), frames.prefixes, strict=True)
    for one, prefix in (*own, (frames.link_local, 64)):
        if one:
            yield NetlinkRequest(f"add {one} to {device}", address(index, one, prefix))
    yield NetlinkRequest(f"bring {device} up", link(index, up=True))
    for gateway in filter(None, frames.gateways):
        what = f"add a default route by {gateway} to {device}"
        yield NetlinkRequest(what, default_route(index, gateway, _FIRST_METRIC + number))


def _groups(
    index: int, addresses: Addresses, table: int = rtnetlink.MAIN_TABLE
) -> Iterator[NetlinkRequest]:
    for one, prefix in _GROUPS if addresses.groups and addresses.ipv4 else ():
        what = f"add a route to {one} to {addresses.interface}"
        yield NetlinkRequest(what, route(index, one, prefix, table))


def _own_routes(index: int, addresses: Addresses) -> Iterator[NetlinkRequest]:
    """Of an interface after the first: whatever comes from its addresses leaves by it."""
    table = _FIRST_TABLE + addresses.number - 1
    for one, prefix in ((addresses.ipv4, IPV4_PREFIX), (addresses.ipv6, IPV6_PREFIX)):
        if one:
            network = str(ip_interface(f"{one}/{prefix}").network.network_address)
            what = f"add a route to {network}/{prefix} to {addresses.interface}"
            yield NetlinkRequest(what, route(index, network, prefix, table))
            yield NetlinkRequest(f"add a rule for what comes from {one}", rule(one, table))
    yield from _groups(index, addresses, table)


def configure(
    connection: socket.socket,
    instance: str,
    interfaces: Sequence[Addresses],
    more: Sequence[NetlinkRequest] = (),
) -> None:
    """`more` is asked for at the end.

    Raises RunError naming the step, the instance and the kernel's words. May block.
    """
    device = INTERFACE
    try:
        netlink.prepare(connection)
        requests = [loopback_up()]
        for one in interfaces:
            device = one.interface
            requests += _requests(interface_index(connection, device), one)
        refusals = netlink.exchange(connection, [*requests, *more])
    except OSError as error:
        raise RunError(
            f"cannot configure {device} of {instance}: {error.strerror or error}"
        ) from error
    if refusals:
        raise _refusal(refusals[0], instance)


def _refusal(refusal: Refusal, instance: str) -> RunError:
    what, remedy = refusal.what, ""
    unsupported = refusal.code in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EACCES)
    if unsupported and ("IPv6" in what or ":" in what):
        remedy = "instances need IPv6: enable it in the kernel (ipv6.disable=0)"
    return RunError(f"cannot {what} in instance {instance}: {refusal.reason}", remedy)
