"""Frames as bytes, written apart from the code under test, and a raw socket to send them from.

Checksums are right where a receiver would look at them. Sources: RFC 826, 791, 768, 8200, 4443,
4861, IEEE 802.1Q, 802.1D.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

EVERYBODY = "ff:ff:ff:ff:ff:ff"
IPV4, ARP, VLAN, IPV6, LLDP = 0x0800, 0x0806, 0x8100, 0x86DD, 0x88CC
REQUEST, REPLY = 1, 2
ROUTER_ADVERTISEMENT, SOLICITATION, ADVERTISEMENT, REDIRECT = 134, 135, 136, 137
_PACKET_QDISC_BYPASS = 20  # linux/if_packet.h
_SOL_PACKET = 263
_ETH_P_ALL = 3


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def mac_of(ipv4: str) -> str:
    """The MAC that a run gives to the instance with this address."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in socket.inet_aton(ipv4))


def frame(dest: str, source: str, kind: int, payload: bytes) -> bytes:
    return (mac(dest) + mac(source) + struct.pack("!H", kind) + payload).ljust(60, b"\0")


def tagged(dest: str, source: str, vlan: int, kind: int, payload: bytes) -> bytes:
    return frame(dest, source, VLAN, struct.pack("!HH", vlan, kind) + payload)


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(
    source: str, dest: str, protocol: int, payload: bytes, *, fragment: int = 0, ttl: int = 64
) -> bytes:
    """`fragment` is the field with flags and offset."""
    ends = socket.inet_aton(source) + socket.inet_aton(dest)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, fragment, ttl, protocol, 0)
    return head[:10] + struct.pack("!H", checksum(head + ends)) + ends + payload


def udp(payload: bytes, port: int) -> bytes:
    """Without a checksum, which IPv4 allows."""
    return struct.pack("!HHHH", 7, port, 8 + len(payload), 0) + payload


def ipv6(source: str, dest: str, next_header: int, payload: bytes, hop_limit: int = 255) -> bytes:
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, dest)
    return struct.pack("!IHBB", 6 << 28, len(payload), next_header, hop_limit) + ends + payload


def icmpv6(source: str, dest: str, kind: int, body: bytes, hop_limit: int = 255) -> bytes:
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, dest)
    size = 4 + len(body)
    pseudo = ends + struct.pack("!IBBBB", size, 0, 0, 0, 58)
    total = checksum(pseudo + struct.pack("!BBH", kind, 0, 0) + body)
    return ipv6(source, dest, 58, struct.pack("!BBH", kind, 0, total) + body, hop_limit)


def discovery(source: str, dest: str, kind: int, target: str, link: str) -> bytes:
    """A solicitation or an advertisement (which overrides) with its sender's link address."""
    flags = 0x20000000 if kind == ADVERTISEMENT else 0
    body = struct.pack("!I", flags) + socket.inet_pton(socket.AF_INET6, target)
    option = 2 if kind == ADVERTISEMENT else 1
    return icmpv6(source, dest, kind, body + bytes([option, 1]) + mac(link))


def solicited_group(ipv6_address: str) -> tuple[str, str]:
    """Where a solicitation for an address goes: an IPv6 and a MAC address."""
    tail = socket.inet_pton(socket.AF_INET6, ipv6_address)[13:]
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + tail
    return socket.inet_ntop(socket.AF_INET6, group), "33:33:ff:" + tail.hex(":")


def arp(operation: int, sender: tuple[str, str], target: tuple[str, str]) -> bytes:
    """`sender` and `target`: MAC and IPv4 address."""
    ends = [mac(pair[0]) + socket.inet_aton(pair[1]) for pair in (sender, target)]
    return struct.pack("!HHBBH", 1, IPV4, 6, 4, operation) + b"".join(ends)


class RawSocket:
    """Sends frames from an interface; with `bypass` round its queueing disciplines."""

    def __init__(self, interface: str, *, bypass: bool = False) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        if bypass:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        self._socket.bind((interface, 0))

    def send(self, data: bytes) -> bool:
        with suppress(OSError):  # no room in a queue, or the interface has gone
            self._socket.send(data)
            return True
        return False
