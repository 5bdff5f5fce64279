"""Traffic control as far as hosts need it: u32 filters that redirect what they match, and counting.

Only cls_u32, act_mirred and clsact are used, which pktd needs anyway: to drop is to redirect into a
device behind which there is nobody. Actions are named by a number, so several filters share one
and its counter. In: numbers; out: netlink requests as bytes. Sources: tc-u32(8), linux/pkt_cls.h,
linux/tc_act/tc_mirred.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.system.network.rtnetlink import (
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_EXCL,
    attribute,
    dump,
    message,
    text,
)

CLSACT = 0xFFFF_FFF1
INGRESS = 0xFFFF_FFF2
EGRESS = 0xFFFF_FFF3
ALL, IPV4, ARP, IPV6 = 0x0003, 0x0800, 0x0806, 0x86DD  # linux/if_ether.h
_PREFERENCE = {IPV4: 1, IPV6: 2, ARP: 3, ALL: 4}

_RTM_NEWQDISC, _RTM_NEWTFILTER, _RTM_GETACTION = 36, 44, 50
_SEQUENCE = 1
_TCMSG = struct.Struct("=BBHiIII")
_SELECTOR = struct.Struct("=BBBBHHhhI")
_KEY = struct.Struct("!II")
_KEY_PLACE = struct.Struct("=ii")
_MIRRED = struct.Struct("=IIiiiiI")
_ATTRIBUTE = struct.Struct("=HH")
_KIND, _OPTIONS = 1, 2  # TCA_KIND, TCA_OPTIONS; the same numbers name an action's
_U32_CLASSID, _U32_SEL, _U32_ACT = 1, 5, 7
_TERMINAL = 1  # TC_U32_TERMINAL
_STOLEN, _EGRESS_REDIR = 4, 1
_MIRRED_PARMS, _ACT_STATS, _STATS_BASIC = 2, 4, 1
_ROOT_TAB, _ROOT_FLAGS, _ROOT_DELTA = 1, 2, 4
_LARGE_DUMP = 1  # TCA_ACT_FLAG_LARGE_DUMP_ON


@dataclass(frozen=True, slots=True)
class Key:
    """Four bytes of a packet at an offset from its network header, and what they are to be."""

    offset: int
    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """An action: on its way out at another device. `number` names it in its namespace."""

    number: int
    device: int


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, text(value))


def clsact(device: int) -> bytes:
    """The place for filters at a device. Refused if there is one."""
    head = _TCMSG.pack(socket.AF_UNSPEC, 0, 0, device, 0xFFFF_0000, CLSACT, 0)
    flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    return message(_RTM_NEWQDISC, flags, head + _text(_KIND, "clsact"), _SEQUENCE)


def _selector(keys: Sequence[Key]) -> bytes:
    found = _SELECTOR.pack(_TERMINAL, 0, len(keys), 0, 0, 0, 0, 0, 0)
    for key in keys:
        found += _KEY.pack(key.mask, key.value & key.mask) + _KEY_PLACE.pack(key.offset, 0)
    return found


def _actions(redirects: Sequence[Redirect]) -> bytes:
    found = b""
    for place, one in enumerate(redirects, start=1):
        parameters = _MIRRED.pack(one.number, 0, _STOLEN, 0, 0, _EGRESS_REDIR, one.device)
        options = attribute(_OPTIONS, attribute(_MIRRED_PARMS, parameters))
        found += attribute(place, _text(_KIND, "mirred") + options)
    return found


def u32(
    device: int,
    parent: int,
    protocol: int,
    number: int,
    keys: Sequence[Key],
    redirects: Sequence[Redirect],
) -> bytes:
    """The filter `number` (from 1) for packets of a protocol (or ALL, asked last), in order.

    It matches what has all its keys; without any it matches everything. The first redirect is
    carried out; without any what matches goes on its way.
    """
    info = _PREFERENCE[protocol] << 16 | socket.htons(protocol)
    head = _TCMSG.pack(socket.AF_UNSPEC, 0, 0, device, number, parent, info)
    options = attribute(_U32_CLASSID, struct.pack("=I", 0xFFFF_0001))
    options += attribute(_U32_SEL, _selector(keys or (Key(0, 0, 0),)))
    if redirects:
        options += attribute(_U32_ACT, _actions(redirects))
    flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    body = head + _text(_KIND, "u32") + attribute(_OPTIONS, options)
    return message(_RTM_NEWTFILTER, flags, body, _SEQUENCE)


# -- counters -------------------------------------------------------------------------------------


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        if size < _ATTRIBUTE.size or at + size > len(data):
            return
        yield kind & 0x3FFF, data[at + _ATTRIBUTE.size : at + size]
        at += (size + 3) & ~3


def _count(action: bytes) -> tuple[int, int] | None:
    """Number and packets of one action of a dump."""
    found = dict(_attributes(action))
    options = dict(_attributes(found.get(_OPTIONS, b"")))
    basic = dict(_attributes(found.get(_ACT_STATS, b""))).get(_STATS_BASIC, b"")
    parameters = options.get(_MIRRED_PARMS, b"")
    if len(parameters) < _MIRRED.size or len(basic) < 12:
        return None
    return _MIRRED.unpack_from(parameters)[0], struct.unpack_from("=QI", basic)[1]


def counts(netlink: socket.socket, since_ms: int = 0) -> dict[int, int]:
    """Packets that each redirect of this namespace has had, by its number; with `since_ms` of those
    only that had one lately. Raises OSError. May block."""
    table = attribute(_ROOT_TAB, attribute(1, _text(_KIND, "mirred")))
    table += attribute(_ROOT_FLAGS, struct.pack("=II", _LARGE_DUMP, _LARGE_DUMP))
    if since_ms:
        table += attribute(_ROOT_DELTA, struct.pack("=I", since_ms))
    refused = "the kernel refuses to list its actions"
    found: dict[int, int] = {}
    for _kind, body in dump(netlink, _RTM_GETACTION, bytes(4) + table, refused):
        actions = dict(_attributes(body[4:])).get(_ROOT_TAB, b"")
        told = (_count(action) for _place, action in _attributes(actions))
        found.update(one for one in told if one is not None)
    return found
