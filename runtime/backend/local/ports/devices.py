"""Devices of local hosts as netlink requests: bridges, veths, and who is at which port."""

from __future__ import annotations

import socket

from runtime.system.network import rtnetlink
from runtime.system.network.netlink import link, new_link
from runtime.system.network.rtnetlink import IFF_NOARP, IFF_UP, RTM_DELLINK, RTM_NEWLINK, Attributes

MTU = 1500
_NTF_MASTER, _NUD_NOARP = 0x04, 0x40  # linux/neighbour.h; the latter is a static entry of a bridge
_AF_BRIDGE = 7

WHOLE_SEGMENTS: Attributes = [("IFLA_GSO_MAX_SEGS", 1)]  # the stack above splits by itself


def mac_of(ipv4: str) -> str:
    """MAC for an address: the same in every life, so that nobody's ARP table goes stale."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in socket.inet_aton(ipv4))


def veth(
    index: int, near: Attributes, peer: Attributes, peer_index: int = 0, *, up: bool = True
) -> bytes:
    """A pair: the near end, which is up or not, has the number `index`, the other one `peer_index`
    (0: any)."""
    data = [("VETH_INFO_PEER", (peer_index, [*peer, ("IFLA_MTU", MTU)]))]
    kind = [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", data)]
    return new_link(index, [*near, ("IFLA_MTU", MTU), ("IFLA_LINKINFO", kind)], up=up)


def bridge(index: int, name: str, mac: str) -> bytes:
    """Without snooping: neighbour discovery is multicast, and nobody here asks for membership.

    With a MAC of its own: by default a bridge takes the lowest of its ports' and changes it as they
    come and go.
    """
    data = [("IFLA_BR_MCAST_SNOOPING", 0), ("IFLA_BR_STP_STATE", 0)]
    kind = [("IFLA_INFO_KIND", "bridge"), ("IFLA_INFO_DATA", data)]
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
    kind = [("IFLA_INFO_SLAVE_KIND", "bridge"), ("IFLA_INFO_SLAVE_DATA", flags)]
    return link(index, [("IFLA_LINKINFO", kind)])


def forward(index: int, ipv4: str) -> bytes:
    """The bridge sends what is for the MAC of this address to this port."""
    attributes = [("NDA_LLADDR", mac_of(ipv4))]
    return rtnetlink.neighbour(_AF_BRIDGE, index, _NUD_NOARP, _NTF_MASTER, attributes)


def up_without_arp(index: int) -> bytes:
    return rtnetlink.link(RTM_NEWLINK, 0, index, IFF_UP | IFF_NOARP, ())


def removal(group: int) -> bytes:
    """Of all devices of a group at once, which costs what one does; of a veth both ends go."""
    return rtnetlink.link(RTM_DELLINK, 0, 0, 0, [("IFLA_GROUP", group)])
