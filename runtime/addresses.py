"""Gives an instance its addresses: loopback up, eth0 with IPv4 and IPv6, up.

Runs over a netlink socket that the instance's PID 1 opened in its own network namespace, so no
thread here ever changes namespaces. Messages are built by pyroute2 and sent in one go.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any

from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_NEWADDR, RTM_NEWLINK
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import IFF_UP, ifinfmsg

from runtime.errors import RunError

IPV4_PREFIX = 16  # 10.77.0.0/16
IPV6_PREFIX = 64  # fd77:7473::/64
INTERFACE = "eth0"
NODAD = 0x02  # IFA_F_NODAD: usable at once (linux/if_addr.h)
_ADDRGEN_NONE = 1  # IN6_ADDR_GEN_MODE_NONE: no link-local address, no chatter from the kernel
_SIOCGIFINDEX = 0x8933
_NLMSG_ERROR = 2
_HEADER = struct.Struct("=IHHII")
_EXTACK_MESSAGE = 1  # NLMSGERR_ATTR_MSG
_CAPPED = 0x100  # NLM_F_CAPPED: the request is not repeated in the answer
_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11
_LOOPBACK_INDEX = 1


@dataclass(frozen=True, slots=True)
class Addresses:
    ipv4: str
    ipv6: str


def _interface_index(netlink: socket.socket, name: str) -> int:
    request = struct.pack("16si20x", name.encode(), 0)
    answer = fcntl.ioctl(netlink.fileno(), _SIOCGIFINDEX, request)
    return int(struct.unpack_from("i", answer, 16)[0])


def _encoded(message: Any, kind: int, extra_flags: int = 0) -> bytes:
    message["header"]["type"] = kind
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | extra_flags
    message.encode()
    return bytes(message.data)


def _link(index: int, *, up: bool, attributes: list[Any]) -> bytes:
    """RTM_NEWLINK: brings a device up, or only sets attributes."""
    message = ifinfmsg()
    message["index"] = index
    message["flags"] = message["change"] = IFF_UP if up else 0
    message["attrs"] = attributes
    return _encoded(message, RTM_NEWLINK)


def _address(index: int, family: int, address: str, prefix: int) -> bytes:
    """RTM_NEWADDR. Without duplicate detection: an IPv6 address is usable at once."""
    message = ifaddrmsg()
    message["family"] = family
    message["prefixlen"] = prefix
    message["index"] = index
    message["attrs"] = [("IFA_LOCAL", address), ("IFA_ADDRESS", address), ("IFA_FLAGS", NODAD)]
    return _encoded(message, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)


def _messages(index: int, addresses: Addresses) -> list[tuple[str, bytes]]:
    """What is asked for, in words and in bytes."""
    ipv4, ipv6 = addresses.ipv4, addresses.ipv6
    mode = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _ADDRGEN_NONE)]}
    quiet = [("IFLA_AF_SPEC", {"attrs": [("AF_INET6", mode)]})]
    return [
        ("bring the loopback up", _link(_LOOPBACK_INDEX, up=True, attributes=[])),
        (f"silence {INTERFACE} (IPv6)", _link(index, up=False, attributes=quiet)),
        (f"add {ipv4} to {INTERFACE}", _address(index, socket.AF_INET, ipv4, IPV4_PREFIX)),
        (f"add {ipv6} to {INTERFACE}", _address(index, socket.AF_INET6, ipv6, IPV6_PREFIX)),
        (f"bring {INTERFACE} up", _link(index, up=True, attributes=[])),
    ]


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
    while at + _HEADER.size <= len(answer):
        length, kind, flags, _seq, _pid = _HEADER.unpack_from(answer, at)
        if kind == _NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, at + 16)
            found.append((-code, _extack(answer, at, length, flags) if code else ""))
        at += max((length + 3) & ~3, _HEADER.size)
    return found


def configure(netlink: socket.socket, instance: str, addresses: Addresses) -> None:
    """Raises RunError naming the step, the instance and the kernel's words. May block."""
    netlink.setblocking(True)
    netlink.settimeout(30.0)
    netlink.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
    netlink.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
    try:
        index = _interface_index(netlink, INTERFACE)
        messages = _messages(index, addresses)
        netlink.send(b"".join(payload for _, payload in messages))
        answers: list[tuple[int, str]] = []
        while len(answers) < len(messages):
            answers.extend(_answer_errors(netlink.recv(65536)))
    except OSError as error:
        raise RunError(f"cannot configure {INTERFACE} of {instance}: {error}") from error
    for (what, _), (code, words) in zip(messages, answers, strict=False):
        if code:
            raise _refusal(what, instance, code, words)


def _refusal(what: str, instance: str, code: int, words: str) -> RunError:
    reason = os.strerror(code) + (f" ({words})" if words else "")
    remedy = ""
    unsupported = code in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EACCES)
    if unsupported and ("IPv6" in what or ":" in what):
        remedy = "instances need IPv6: enable it in the kernel (ipv6.disable=0)"
    return RunError(f"cannot {what} in instance {instance}: {reason}", remedy)
