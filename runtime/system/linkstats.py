"""What devices of a network namespace had no room for, by route netlink: rtnetlink(7).

In: a netlink socket in the namespace. Out: numbers by device. A veth counts here what the kernel's
queue at its other end refused (`net.core.netdev_max_backlog`). Source: linux/if_link.h
(if_stats_msg, rtnl_link_stats64).
"""

from __future__ import annotations

import socket
import struct

from runtime.system.rtnetlink import HEADER, NLM_F_DUMP, NLMSG_DONE, NLMSG_ERROR, message

_RTM_NEWSTATS, _RTM_GETSTATS = 92, 94
_STATS = struct.Struct("=BxHII")
_ATTRIBUTE = struct.Struct("=HH")
_LINK_64 = 1  # IFLA_STATS_LINK_64; the filter has the bit below
_TX_DROPPED = 7  # position in rtnl_link_stats64
_RECEIVE_BYTES = 1 << 18


def _of(body: bytes) -> tuple[int, int] | None:
    """Device and number of one message, which was asked for this attribute alone."""
    at = _STATS.size
    if len(body) < at + _ATTRIBUTE.size + 8 * (_TX_DROPPED + 1):
        return None
    if _ATTRIBUTE.unpack_from(body, at)[1] != _LINK_64:
        return None
    (dropped,) = struct.unpack_from("=Q", body, at + _ATTRIBUTE.size + 8 * _TX_DROPPED)
    return _STATS.unpack_from(body)[2], dropped


def _in(datagram: bytes) -> tuple[dict[int, int], bool]:
    """What is in a part of the answer, and whether it was the last. OSError if it is a refusal."""
    found: dict[int, int] = {}
    at = 0
    while at + HEADER.size <= len(datagram):
        length, kind, _flags, _seq, _pid = HEADER.unpack_from(datagram, at)
        body = datagram[at + HEADER.size : at + length]
        if kind == NLMSG_DONE:
            return found, True
        if kind == NLMSG_ERROR:
            code = -struct.unpack_from("=i", body)[0]
            raise OSError(code, "the kernel refuses to tell what its devices have dropped")
        one = _of(body) if kind == _RTM_NEWSTATS else None
        if one is not None:
            found[one[0]] = one[1]
        at += max((length + 3) & ~3, HEADER.size)
    return found, False


def dropped(netlink: socket.socket) -> dict[int, int]:
    """Packets that each device was to send and has dropped since it was made, by its number.
    Raises OSError. May block."""
    question = _STATS.pack(socket.AF_UNSPEC, 0, 0, 1 << _LINK_64 - 1)
    netlink.send(message(_RTM_GETSTATS, NLM_F_DUMP, question, 1))
    found: dict[int, int] = {}
    done = False
    while not done:
        part, done = _in(netlink.recv(_RECEIVE_BYTES))
        found.update(part)
    return found
