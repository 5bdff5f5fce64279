"""What devices of a network namespace had no room for, by route netlink: rtnetlink(7).

In: a netlink socket in the namespace. Out: numbers by device. A veth counts here what the kernel's
queue at its other end refused (`net.core.netdev_max_backlog`). Source: linux/if_link.h
(if_stats_msg, rtnl_link_stats64).
"""

from __future__ import annotations

import socket
import struct

from runtime.system.rtnetlink import dump

_RTM_NEWSTATS, _RTM_GETSTATS = 92, 94
_STATS = struct.Struct("=BxHII")
_ATTRIBUTE = struct.Struct("=HH")
_LINK_64 = 1  # IFLA_STATS_LINK_64; the filter has the bit below
_TX_DROPPED = 7  # position in rtnl_link_stats64


def _of(body: bytes) -> tuple[int, int] | None:
    """Device and number of one message, which was asked for this attribute alone."""
    at = _STATS.size
    if len(body) < at + _ATTRIBUTE.size + 8 * (_TX_DROPPED + 1):
        return None
    if _ATTRIBUTE.unpack_from(body, at)[1] != _LINK_64:
        return None
    (dropped,) = struct.unpack_from("=Q", body, at + _ATTRIBUTE.size + 8 * _TX_DROPPED)
    return _STATS.unpack_from(body)[2], dropped


def dropped(netlink: socket.socket) -> dict[int, int]:
    """Packets that each device was to send and has dropped since it was made, by its number.
    Raises OSError. May block."""
    question = _STATS.pack(socket.AF_UNSPEC, 0, 0, 1 << _LINK_64 - 1)
    refused = "the kernel refuses to tell what its devices have dropped"
    answers = dump(netlink, _RTM_GETSTATS, question, refused)
    found = (_of(body) for kind, body in answers if kind == _RTM_NEWSTATS)
    return dict(one for one in found if one is not None)
