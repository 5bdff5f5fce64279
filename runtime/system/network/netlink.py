"""Route netlink in one go: requests as bytes, sent together, answered one by one.

Works on a socket that somebody opened in the network namespace that is meant, so no thread here
ever changes namespaces. runtime.system.network.rtnetlink builds the messages.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.errors import RunError
from runtime.system.network import rtnetlink
from runtime.system.network.rtnetlink import (
    HEADER,
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLMSG_ERROR,
    Attributes,
)

ANSWER_SECONDS = 30.0
SEND_BYTES = 64 * 1024  # requests sent together: the kernel does all before it returns
SEND_REQUESTS = 100  # at most, so that all answers have room in the socket's buffer
_NODAD = 0x02  # IFA_F_NODAD: usable at once (linux/if_addr.h)
_ADDRGEN_NONE = 1  # IN6_ADDR_GEN_MODE_NONE: no link-local address, no chatter from the kernel
_LOOPBACK_INDEX = 1
_NUD_PERMANENT = 0x80  # linux/neighbour.h
_NEW = NLM_F_CREATE | NLM_F_EXCL
_EXTACK_MESSAGE = 1  # NLMSGERR_ATTR_MSG
_CAPPED = 0x100  # NLM_F_CAPPED: the request is not repeated in the answer
_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11


_INET6 = [("IFLA_INET6_ADDR_GEN_MODE", _ADDRGEN_NONE)]
QUIET: Attributes = [("IFLA_AF_SPEC", [("AF_INET6", _INET6)])]


@dataclass(frozen=True, slots=True)
class NetlinkRequest:
    """`what` says it in words that follow "cannot"."""

    what: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """The kernel's answer to a request that it did not carry out."""

    what: str
    code: int  # errno
    words: str  # its own, '' without any

    @property
    def reason(self) -> str:
        return os.strerror(self.code) + (f" ({self.words})" if self.words else "")


def link(index: int, attributes: Attributes = (), *, up: bool = False) -> bytes:
    """RTM_NEWLINK of an existing device: brings it up, sets attributes."""
    state = rtnetlink.IFF_UP if up else 0
    return rtnetlink.link(rtnetlink.RTM_NEWLINK, 0, index, state, attributes)


def down(index: int) -> bytes:
    """RTM_NEWLINK: takes a device down, with its routes."""
    cleared = rtnetlink.IFF_UP
    return rtnetlink.link(rtnetlink.RTM_NEWLINK, 0, index, 0, (), cleared)


def new_link(index: int, attributes: Attributes, *, up: bool = True) -> bytes:
    """RTM_NEWLINK of a new device with this number (0: any)."""
    state = rtnetlink.IFF_UP if up else 0
    return rtnetlink.link(rtnetlink.RTM_NEWLINK, _NEW, index, state, attributes)


def loopback_up() -> NetlinkRequest:
    return NetlinkRequest("bring the loopback up", link(_LOOPBACK_INDEX, up=True))


def address(index: int, text: str, prefix: int, metric: int = 0) -> bytes:
    """RTM_NEWADDR. Without duplicate detection: an IPv6 address is usable at once. `metric` of the
    route to its network; 0: the kernel's own."""
    attributes: list[tuple[str, object]] = [("IFA_LOCAL", text), ("IFA_ADDRESS", text)]
    attributes.append(("IFA_FLAGS", _NODAD))
    if metric:
        attributes.append(("IFA_RT_PRIORITY", metric))
    return rtnetlink.address(_NEW, index, text, prefix, attributes)


def removed(index: int) -> bytes:
    """RTM_DELLINK of a device."""
    return rtnetlink.link(rtnetlink.RTM_DELLINK, 0, index, 0, ())


def route(
    index: int, text: str, prefix: int, table: int = rtnetlink.MAIN_TABLE, gateway: str = ""
) -> bytes:
    """RTM_NEWROUTE: what is for this network leaves by this device, to the gateway if there is
    one."""
    found: list[tuple[str, object]] = [("RTA_DST", text), ("RTA_OIF", index)]
    if gateway:
        found.append(("RTA_GATEWAY", gateway))
    return rtnetlink.route(_NEW, text, prefix, table, found)


def default_route(index: int, gateway: str, metric: int) -> bytes:
    """RTM_NEWROUTE: what no other route is for goes to this neighbour."""
    found: list[tuple[str, object]] = [("RTA_OIF", index), ("RTA_PRIORITY", metric)]
    return rtnetlink.default_route(_NEW, gateway, rtnetlink.MAIN_TABLE, found)


def rule(source: str, table: int) -> bytes:
    """RTM_NEWRULE: what comes from this address goes by this table first."""
    return rtnetlink.rule(_NEW, source, table)


def neighbour(index: int, text: str, mac: str) -> bytes:
    """RTM_NEWNEIGH: packets for this address go to this MAC, without asking anybody."""
    attributes = [("NDA_DST", text), ("NDA_LLADDR", mac)]
    return rtnetlink.neighbour(rtnetlink.family(text), index, _NUD_PERMANENT, 0, attributes)


def _extack(answer: bytes, at: int, length: int, flags: int) -> str:
    """The kernel's own words in an error answer, '' without any."""
    offset = at + 16 + 4 + 16  # header, error, the repeated request's header
    if not flags & _CAPPED:
        (request_length,) = struct.unpack_from("=I", answer, at + 20)
        offset = at + 20 + request_length
    while offset + 4 <= at + length:
        size, kind = struct.unpack_from("=HH", answer, offset)
        if size < 4:
            break
        if kind & 0x3FFF == _EXTACK_MESSAGE:
            return answer[offset + 4 : offset + size].rstrip(b"\0").decode(errors="replace")
        offset += (size + 3) & ~3
    return ""


def _answer_errors(answer: bytes) -> list[tuple[int, str]]:
    """(errno or 0, the kernel's words) of every acknowledgement in a datagram."""
    found = []
    at = 0
    while at + HEADER.size <= len(answer):
        length, kind, flags, _seq, _pid = HEADER.unpack_from(answer, at)
        if kind == NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, at + 16)
            found.append((-code, _extack(answer, at, length, flags) if code else ""))
        at += max((length + 3) & ~3, HEADER.size)
    return found


def opened() -> socket.socket:
    """One that is prepared, to the network namespace of this thread."""
    found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    prepare(found)
    return found


def prepare(netlink: socket.socket) -> None:
    """Short answers with the kernel's words, and no waiting for ever."""
    netlink.setblocking(True)
    netlink.settimeout(ANSWER_SECONDS)
    netlink.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
    netlink.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)


def _batches(requests: Sequence[NetlinkRequest]) -> list[list[NetlinkRequest]]:
    found: list[list[NetlinkRequest]] = []
    size = SEND_BYTES
    for request in requests:
        full = bool(found) and len(found[-1]) == SEND_REQUESTS
        if full or size + len(request.payload) > SEND_BYTES:
            found.append([])
            size = 0
        found[-1].append(request)
        size += len(request.payload)
    return found


def exchange(netlink: socket.socket, requests: Sequence[NetlinkRequest]) -> list[Refusal]:
    """Sends requests to a prepared socket; returns those refused, in order. May block.

    The kernel goes on after a refusal. Raises OSError if the socket does.
    """
    refusals = []
    for batch in _batches(requests):
        netlink.send(b"".join(request.payload for request in batch))
        answers: list[tuple[int, str]] = []
        while len(answers) < len(batch):
            answers.extend(_answer_errors(netlink.recv(SEND_BYTES)))
        for request, (code, words) in zip(batch, answers, strict=False):
            if code:
                refusals.append(Refusal(request.what, code, words))
    return refusals


def carry_out(netlink: socket.socket, where: str, requests: Sequence[NetlinkRequest]) -> None:
    """The same; RunError for the first refusal, naming the attempt, `where` and the reason."""
    try:
        refusals = exchange(netlink, requests)
    except OSError as error:
        raise RunError(f"cannot configure {where}: {error.strerror or error}") from error
    if refusals:
        raise RunError(f"cannot {refusals[0].what} in {where}: {refusals[0].reason}")
