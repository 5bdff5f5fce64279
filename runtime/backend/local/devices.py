"""Devices of local hosts as netlink requests: bridges, veths, and who is at which port."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from pyroute2.netlink import NLM_F_CREATE, NLM_F_REPLACE
from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_NEWLINK, RTM_NEWNEIGH
from pyroute2.netlink.rtnl.ifinfmsg import IFF_NOARP, IFF_UP, ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg

from runtime.system.netlink import encoded, link, new_link

MTU = 1500
_NTF_MASTER, _NUD_NOARP = 0x04, 0x40  # linux/neighbour.h; the latter is a static entry of a bridge
_AF_BRIDGE = 7

Attributes = Sequence[Any]
WHOLE_SEGMENTS: Attributes = [("IFLA_GSO_MAX_SEGS", 1)]  # the stack above splits by itself


def mac_of(ipv4: str) -> str:
    """MAC for an address: the same in every life, so that nobody's ARP table goes stale."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in socket.inet_aton(ipv4))


def veth(index: int, near: Attributes, peer: Attributes, peer_index: int = 0) -> bytes:
    """A pair: the near end, which is up, has the number `index`, the other one `peer_index` (0:
    any)."""
    far = {"index": peer_index, "attrs": [*peer, ("IFLA_MTU", MTU)]}
    data = {"attrs": [("VETH_INFO_PEER", far)]}
    kind = {"attrs": [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", data)]}
    return new_link(index, [*near, ("IFLA_MTU", MTU), ("IFLA_LINKINFO", kind)])


def bridge(index: int, name: str, mac: str) -> bytes:
    """Without snooping: neighbour discovery is multicast, and nobody here asks for membership.

    With a MAC of its own: by default a bridge takes the lowest of its ports' and changes it as they
    come and go.
    """
    data = {"attrs": [("IFLA_BR_MCAST_SNOOPING", 0), ("IFLA_BR_STP_STATE", 0)]}
    kind = {"attrs": [("IFLA_INFO_KIND", "bridge"), ("IFLA_INFO_DATA", data)]}
    attributes = [("IFLA_IFNAME", name), ("IFLA_ADDRESS", mac), ("IFLA_LINKINFO", kind)]
    return new_link(index, attributes)


def bridge_port(index: int, *, groups: bool) -> bytes:
    """Where instances are is stated: a port learns nothing and gets nothing that is for nobody.
    `groups`: it gets what is for everybody."""
    flags = [
        ("IFLA_BRPORT_LEARNING", 0),
        ("IFLA_BRPORT_UNICAST_FLOOD", 0),
        ("IFLA_BRPORT_MCAST_FLOOD", int(groups)),
        ("IFLA_BRPORT_BCAST_FLOOD", int(groups)),
    ]
    slave = {"attrs": flags}
    kind = {"attrs": [("IFLA_INFO_SLAVE_KIND", "bridge"), ("IFLA_INFO_SLAVE_DATA", slave)]}
    return link(index, [("IFLA_LINKINFO", kind)])


def forward(index: int, ipv4: str) -> bytes:
    """The bridge sends what is for the MAC of this address to this port."""
    message = ndmsg()
    message["family"] = _AF_BRIDGE
    message["ifindex"] = index
    message["state"] = _NUD_NOARP
    message["flags"] = _NTF_MASTER
    message["attrs"] = [("NDA_LLADDR", mac_of(ipv4))]
    return encoded(message, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE)


def up_without_arp(index: int) -> bytes:
    message = ifinfmsg()
    message["index"] = index
    message["flags"] = message["change"] = IFF_UP | IFF_NOARP
    return encoded(message, RTM_NEWLINK)


def removal(group: int) -> bytes:
    """Of all devices of a group at once, which costs what one does; of a veth both ends go."""
    message = ifinfmsg()
    message["attrs"] = [("IFLA_GROUP", group)]
    return encoded(message, RTM_DELLINK)
