"""Messages of route netlink as bytes: rtnetlink(7).

An attribute is a pair of its name in the kernel's headers and a value: a number, a text, a MAC
address, an IP address, or for one that holds others a list of those. KeyError for a name that is
not in the table.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Attributes = Sequence[tuple[str, Any]]

# linux/rtnetlink.h, linux/netlink.h, linux/if.h
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH = 16, 17, 20, 24, 28
RTM_NEWRULE = 32
NLM_F_REQUEST, NLM_F_ACK = 0x1, 0x4
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE, NLM_F_DUMP = 0x100, 0x200, 0x400, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
IFF_UP, IFF_NOARP = 0x1, 0x80

HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBi")
_NEIGHBOUR = struct.Struct("=B3xiHBB")
_ROUTE = struct.Struct("=BBBBBBBBI")
MAIN_TABLE = 254
_NO_TABLE = 0  # RT_TABLE_UNSPEC: an attribute has it, where there is room for all numbers
_STATIC, _ANYWHERE, _ON_LINK, _UNICAST = 4, 0, 253, 1  # RTPROT_, RT_SCOPE_, RTN_
_IS_NEIGHBOUR = 4  # RTNH_F_ONLINK
_RULE = struct.Struct("=BBBBBBBBI")
_TO_TABLE = 1  # FR_ACT_TO_TBL
_ATTRIBUTE = struct.Struct("=HH")
_SEQUENCE = 1  # of the only request that waits for an answer
_RECEIVE_BYTES = 1 << 18  # of a part of a dump


def attribute(kind: int, payload: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(size, kind) + payload + bytes(-size % 4)


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def _u8(value: int) -> bytes:
    return struct.pack("=B", value)


def _u32(value: int) -> bytes:
    return struct.pack("=I", value)


def _mac(value: str) -> bytes:
    return bytes.fromhex(value.replace(":", ""))


def _ip(value: str) -> bytes:
    return socket.inet_pton(family(value), value)


def attributes(found: Attributes) -> bytes:
    return b"".join(attribute(_TABLE[name][0], _TABLE[name][1](value)) for name, value in found)


def _peer(value: tuple[int, Attributes]) -> bytes:
    index, found = value
    return _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0) + attributes(found)


# linux/if_link.h, linux/if_addr.h, linux/neighbour.h, linux/veth.h
_TABLE: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "IFLA_ADDRESS": (1, _mac),
    "IFLA_IFNAME": (3, text),
    "IFLA_MTU": (4, _u32),
    "IFLA_MASTER": (10, _u32),
    "IFLA_LINK": (5, _u32),
    "IFLA_LINKINFO": (18, attributes),
    "IFLA_NET_NS_PID": (19, _u32),
    "IFLA_AF_SPEC": (26, attributes),
    "IFLA_GROUP": (27, _u32),
    "IFLA_NET_NS_FD": (28, _u32),
    "IFLA_GSO_MAX_SEGS": (40, _u32),
    "IFLA_INFO_KIND": (1, text),
    "IFLA_INFO_DATA": (2, attributes),
    "IFLA_INFO_SLAVE_KIND": (4, text),
    "IFLA_INFO_SLAVE_DATA": (5, attributes),
    "VETH_INFO_PEER": (1, _peer),
    "IFLA_MACVLAN_MODE": (1, _u32),
    "IFLA_BR_STP_STATE": (5, _u32),
    "IFLA_BR_MCAST_SNOOPING": (23, _u8),
    "IFLA_BRPORT_LEARNING": (8, _u8),
    "IFLA_BRPORT_UNICAST_FLOOD": (9, _u8),
    "IFLA_BRPORT_MCAST_FLOOD": (27, _u8),
    "IFLA_BRPORT_BCAST_FLOOD": (30, _u8),
    "AF_INET6": (socket.AF_INET6, attributes),
    "IFLA_INET6_ADDR_GEN_MODE": (8, _u8),
    "IFA_ADDRESS": (1, _ip),
    "IFA_LOCAL": (2, _ip),
    "IFA_FLAGS": (8, _u32),
    "IFA_RT_PRIORITY": (9, _u32),
    "FRA_SRC": (2, _ip),
    "RTA_DST": (1, _ip),
    "RTA_OIF": (4, _u32),
    "RTA_GATEWAY": (5, _ip),
    "RTA_PRIORITY": (6, _u32),
    "RTA_TABLE": (15, _u32),
    "FRA_TABLE": (15, _u32),
    "NDA_DST": (1, _ip),
    "NDA_LLADDR": (2, _mac),
}


def family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def message(kind: int, flags: int, body: bytes, sequence: int = 0) -> bytes:
    """A request."""
    size = HEADER.size + len(body)
    return HEADER.pack(size, kind, NLM_F_REQUEST | flags, sequence, 0) + body


def link(
    kind: int, flags: int, index: int, state: int, found: Attributes, cleared: int = 0
) -> bytes:
    """RTM_NEWLINK or RTM_DELLINK; the IFF_* that are to be set and cleared. Acknowledged."""
    head = _LINK.pack(socket.AF_UNSPEC, 0, index, state, state | cleared)
    return message(kind, NLM_F_ACK | flags, head + attributes(found))


def address(flags: int, index: int, ip: str, prefix: int, found: Attributes) -> bytes:
    """RTM_NEWADDR. Acknowledged."""
    head = _ADDRESS.pack(family(ip), prefix, 0, 0, index)
    return message(RTM_NEWADDR, NLM_F_ACK | flags, head + attributes(found))


def neighbour(
    family_number: int, index: int, state: int, neighbour_flags: int, found: Attributes
) -> bytes:
    """RTM_NEWNEIGH, instead of one that is there. Acknowledged."""
    head = _NEIGHBOUR.pack(family_number, index, state, neighbour_flags, 0)
    flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
    return message(RTM_NEWNEIGH, flags, head + attributes(found))


def route(flags: int, ip: str, prefix: int, table: int, found: Attributes) -> bytes:
    """RTM_NEWROUTE, to what is on the link itself, or by a gateway that is there whatever addresses
    the device has. Acknowledged."""
    leads = any(name == "RTA_GATEWAY" for name, _ in found)
    place = (_NO_TABLE, _STATIC, _ANYWHERE if leads else _ON_LINK, _UNICAST)
    head = _ROUTE.pack(family(ip), prefix, 0, 0, *place, _IS_NEIGHBOUR if leads else 0)
    found = [*found, ("RTA_TABLE", table)]
    return message(RTM_NEWROUTE, NLM_F_ACK | flags, head + attributes(found))


def default_route(flags: int, gateway: str, table: int, found: Attributes) -> bytes:
    """RTM_NEWROUTE, of all that has no other, by a neighbour. Acknowledged."""
    head = _ROUTE.pack(family(gateway), 0, 0, 0, _NO_TABLE, _STATIC, _ANYWHERE, _UNICAST, 0)
    found = [*found, ("RTA_GATEWAY", gateway), ("RTA_TABLE", table)]
    return message(RTM_NEWROUTE, NLM_F_ACK | flags, head + attributes(found))


def rule(flags: int, source: str, table: int) -> bytes:
    """RTM_NEWRULE: what comes from this address goes by that table first. Acknowledged."""
    length = 8 * len(_ip(source))
    head = _RULE.pack(family(source), 0, length, 0, _NO_TABLE, 0, 0, _TO_TABLE, 0)
    found = [("FRA_SRC", source), ("FRA_TABLE", table)]
    return message(RTM_NEWRULE, NLM_F_ACK | flags, head + attributes(found))


def dump(
    netlink: socket.socket, kind: int, body: bytes, refused: str
) -> Iterator[tuple[int, bytes]]:
    """Asks for all objects of a kind; the type and body of each message of the answer. OSError with
    the words `refused` if the kernel refuses. May block."""
    netlink.send(message(kind, NLM_F_DUMP, body, _SEQUENCE))
    while True:
        datagram = netlink.recv(_RECEIVE_BYTES)
        at = 0
        while at + HEADER.size <= len(datagram):
            length, found, _flags, _seq, _pid = HEADER.unpack_from(datagram, at)
            content = datagram[at + HEADER.size : at + length]
            if found == NLMSG_DONE:
                return
            if found == NLMSG_ERROR:
                raise OSError(-struct.unpack_from("=i", content)[0], refused)
            yield found, content
            at += max((length + 3) & ~3, HEADER.size)


# What devices of a network namespace had no room for, by route netlink: rtnetlink(7).
#
# In: a netlink socket in the namespace. Out: numbers by device. A veth counts here what the
# kernel's queue at its other end refused (`net.core.netdev_max_backlog`). Source: linux/if_link.h
# (if_stats_msg, rtnl_link_stats64).

_RTM_NEWSTATS, _RTM_GETSTATS = 92, 94
_STATS = struct.Struct("=BxHII")
_HEADER = struct.Struct("=HH")
_LINK_64 = 1  # IFLA_STATS_LINK_64; the filter has the bit below
_TX_DROPPED = 7  # position in rtnl_link_stats64


def _of(body: bytes) -> tuple[int, int] | None:
    """Device and number of one message, which was asked for this attribute alone."""
    at = _STATS.size
    if len(body) < at + _HEADER.size + 8 * (_TX_DROPPED + 1):
        return None
    if _HEADER.unpack_from(body, at)[1] != _LINK_64:
        return None
    (dropped,) = struct.unpack_from("=Q", body, at + _HEADER.size + 8 * _TX_DROPPED)
    return _STATS.unpack_from(body)[2], dropped


def dropped(netlink: socket.socket) -> dict[int, int]:
    """Packets that each device was to send and has dropped since it was made, by its number.
    Raises OSError. May block."""
    question = _STATS.pack(socket.AF_UNSPEC, 0, 0, 1 << _LINK_64 - 1)
    refused = "the kernel refuses to tell what its devices have dropped"
    answers = dump(netlink, _RTM_GETSTATS, question, refused)
    found = (_of(body) for kind, body in answers if kind == _RTM_NEWSTATS)
    return dict(one for one in found if one is not None)
