"""Gives an instance its addresses: loopback up, eth0 with IPv4 and IPv6, up, and routes to groups.

Runs over a netlink socket that the instance's PID 1 opened in its own network namespace, so no
thread here ever changes namespaces. All of it is sent in one go (runtime.system.netlink).
"""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.errors import RunError
from runtime.system import netlink
from runtime.system.interface import INTERFACE, IPV4_PREFIX, IPV6_PREFIX
from runtime.system.netlink import (
    QUIET,
    NetlinkRequest,
    Refusal,
    address,
    link,
    loopback_up,
    route,
)

_SIOCGIFINDEX = 0x8933


@dataclass(frozen=True, slots=True)
class Addresses:
    """'' for the one that it has not."""

    ipv4: str
    ipv6: str
    groups: bool = False  # its network carries multicast and broadcast


# Without a default route those of IPv4 have none. IPv6 has a route to groups by itself.
_GROUPS = (("224.0.0.0", 4), ("255.255.255.255", 32))


def _interface_index(connection: socket.socket, name: str) -> int:
    request = struct.pack("16si20x", name.encode(), 0)
    answer = fcntl.ioctl(connection.fileno(), _SIOCGIFINDEX, request)
    return int(struct.unpack_from("i", answer, 16)[0])


def _requests(index: int, addresses: Addresses) -> list[NetlinkRequest]:
    wanted = ((addresses.ipv4, IPV4_PREFIX), (addresses.ipv6, IPV6_PREFIX))
    return [
        loopback_up(),
        NetlinkRequest(f"silence {INTERFACE} (IPv6)", link(index, QUIET)),
        *(
            NetlinkRequest(f"add {one} to {INTERFACE}", address(index, one, prefix))
            for one, prefix in wanted
            if one
        ),
        NetlinkRequest(f"bring {INTERFACE} up", link(index, up=True)),
        *(
            NetlinkRequest(f"add a route to {one} to {INTERFACE}", route(index, one, prefix))
            for one, prefix in _GROUPS
            if addresses.groups and addresses.ipv4
        ),
    ]


def configure(
    connection: socket.socket,
    instance: str,
    addresses: Addresses,
    more: Sequence[NetlinkRequest] = (),
) -> None:
    """`more` is asked for at the end.

    Raises RunError naming the step, the instance and the kernel's words. May block.
    """
    try:
        netlink.prepare(connection)
        index = _interface_index(connection, INTERFACE)
        refusals = netlink.exchange(connection, [*_requests(index, addresses), *more])
    except OSError as error:
        raise RunError(
            f"cannot configure {INTERFACE} of {instance}: {error.strerror or error}"
        ) from error
    if refusals:
        raise _refusal(refusals[0], instance)


def _refusal(refusal: Refusal, instance: str) -> RunError:
    what, remedy = refusal.what, ""
    unsupported = refusal.code in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EACCES)
    if unsupported and ("IPv6" in what or ":" in what):
        remedy = "instances need IPv6: enable it in the kernel (ipv6.disable=0)"
    return RunError(f"cannot {what} in instance {instance}: {refusal.reason}", remedy)
