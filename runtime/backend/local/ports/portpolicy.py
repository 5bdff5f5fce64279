"""What an instance may send and what reaches it, held at its host's end of its veth.

An instance is root in its own network namespace, so nothing in there holds it to anything. What it
sends enters its host at port pN; there, before the bridge:

    taken      IPv4 and IPv6 for one station, from its own MAC and address, to the experiment's
               networks: to the device at which the datapath shapes
    passed     ARP and neighbour discovery that tell nothing but its own address and MAC
    dropped    everything else, counted by what is wrong with it

On the way back only what is addressed to it passes. So nobody gets what was shaped for somebody
else, and a request for an address reaches nobody but its owner.

Filters are in order: the first that matches decides. Offsets are from the IP header; the Ethernet
header ends there. Sources: RFC 826, RFC 4861 sections 4.3, 4.4 and 7.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from runtime.system.network import tc
from runtime.system.network.interface import IPV4_PREFIX, IPV6_PREFIX
from runtime.system.network.netlink import NetlinkRequest
from runtime.system.network.tc import ALL, ARP, EGRESS, INGRESS, IPV4, IPV6, Key, Redirect

# Why something is dropped. Numbers are those of the counters.
SOURCE, FRAME, OUTSIDE, GROUP, OTHER, STRAY = range(1, 7)
_TAKE, _PASS = 0, -1
REASONS = {
    SOURCE: "source",
    FRAME: "frame",
    OUTSIDE: "outside",
    GROUP: "group",
    OTHER: "other",
    STRAY: "stray",
}
_NUMBERS = 16  # of actions kept for each port
_FIRST_NUMBER = 1 << 30  # the kernel numbers actions that have no number from 1
_ICMPV6 = 58
_SOLICIT, _ADVERTISE = 135, 136
_ONE_STATION = Key(-14, 0x0100_0000, 0)

Rule = tuple[int, Sequence[Key], int]  # protocol, what must be so, what becomes of it


@dataclass(frozen=True, slots=True)
class PortOwner:
    """Whose port it is."""

    mac: str
    ipv4: str
    ipv6: str


def _words(data: bytes, offset: int) -> list[Key]:
    """Keys for bytes at an offset, both whole numbers of four."""
    values = struct.unpack(f"!{len(data) // 4}I", data)
    return [Key(offset + 4 * n, 0xFFFF_FFFF, value) for n, value in enumerate(values)]


def _inside(network: IPv4Network | IPv6Network, offset: int) -> list[Key]:
    values = _words(network.network_address.packed, offset)
    masks = _words(network.netmask.packed, offset)
    keys = [Key(v.offset, m.value, v.value) for v, m in zip(values, masks, strict=True)]
    return [key for key in keys if key.mask]


class _Rules:
    """The rules of one port."""

    def __init__(self, who: PortOwner, *, any_source: bool) -> None:
        self._mac = mac = bytes.fromhex(who.mac.replace(":", ""))
        self._ipv4 = socket.inet_pton(socket.AF_INET, who.ipv4)
        self._ipv6 = socket.inet_pton(socket.AF_INET6, who.ipv6)
        self._net4 = IPv4Network(ip_network(f"{who.ipv4}/{IPV4_PREFIX}", strict=False))
        self._net6 = IPv6Network(ip_network(f"{who.ipv6}/{IPV6_PREFIX}", strict=False))
        self._any_source = any_source
        (tail,) = struct.unpack("!H", mac[4:])
        self._own_mac = [*_words(mac[:4], -8), Key(-4, 0xFFFF_0000, tail << 16)]

    def leaving(self) -> Iterator[Rule]:
        yield from self._ipv4_leaving()
        yield from self._ipv6_leaving()
        yield from self._arp_leaving()
        yield ALL, (), OTHER

    def _ipv4_leaving(self) -> Iterator[Rule]:
        own, one = self._own_mac, [_ONE_STATION, *self._own_mac]
        there = _inside(self._net4, 16)
        source = [] if self._any_source else _words(self._ipv4, 12)
        yield IPV4, (*one, *source, *there), _TAKE
        yield IPV4, (*own, Key(16, 0xE000_0000, 0xE000_0000)), GROUP
        yield IPV4, (*own, *_words(self._net4.broadcast_address.packed, 16)), GROUP
        yield IPV4, (*one, *there), SOURCE
        yield IPV4, one, OUTSIDE
        yield IPV4, (), FRAME

    def _ipv6_leaving(self) -> Iterator[Rule]:
        own, one = self._own_mac, [_ONE_STATION, *self._own_mac]
        there = _inside(self._net6, 24)
        source = _words(self._ipv6, 8)
        yield from self._discovery_leaving([*own, *source], there)
        yield IPV6, (*one, *([] if self._any_source else source), *there), _TAKE
        yield IPV6, (*own, Key(24, 0xFF00_0000, 0xFF00_0000)), GROUP
        yield IPV6, (*one, *there), SOURCE
        yield IPV6, one, OUTSIDE
        yield IPV6, (), FRAME

    def _discovery_leaving(self, own: list[Key], there: list[Key]) -> Iterator[Rule]:
        """Requests and answers of the usual lengths pass; no other message of types 132 to 137
        does, since datapaths leave these alone."""
        target = _inside(self._net6, 48)
        asked = _words(bytes.fromhex("ff02" + "00" * 9 + "01ff000000"), 24)
        group = [*asked[:3], Key(36, 0xFF00_0000, 0xFF00_0000)]
        yield IPV6, (*own, *_discovery(_SOLICIT, 32), *target, *group), _PASS
        one = [_ONE_STATION, *own, *there]
        yield IPV6, (*one, *_discovery(_SOLICIT, 32), *target), _PASS
        for length in (32, 24):
            yield IPV6, (*one, *_discovery(_ADVERTISE, length), *_words(self._ipv6, 48)), _PASS
        any_type = Key(4, 0xFF00, _ICMPV6 << 8)
        claims = ((0xFE, _ADVERTISE), (0xFF, 134))  # also redirects; routers
        for mask, kind in claims:
            yield IPV6, (any_type, Key(40, mask << 24, kind << 24)), SOURCE
        yield IPV6, (any_type, Key(40, 0xFC00_0000, 132 << 24)), GROUP

    def _arp_leaving(self) -> Iterator[Rule]:
        """For Ethernet and IPv4, a request or an answer, about the sender's own address."""
        kind = [Key(0, 0xFFFF_FFFF, 0x0001_0800), Key(4, 0xFFFF_FFFC, 0x0604_0000)]
        sender = [*self._own_mac, *kind, *_words(self._mac + self._ipv4 + b"\0\0", 8)]
        sender[-1] = Key(16, 0xFFFF_0000, sender[-1].value)
        nobody = [Key(12, 0xFFFF, 0), Key(16, 0xFFFF_0000, 0)]
        yield ARP, (*sender, *_inside(self._net4, 24)), _PASS
        yield ARP, sender, OUTSIDE
        yield ARP, (*self._own_mac, *nobody), GROUP  # asks whether an address is taken
        yield ARP, self._own_mac, SOURCE
        yield ARP, (), FRAME

    def arriving(self) -> Iterator[Rule]:
        group = bytes.fromhex("ff02" + "00" * 9 + "01ff") + self._ipv6[13:]
        asks = (*_words(group, 24), *_discovery(_SOLICIT, 32), *_words(self._ipv6, 48))
        yield IPV4, _words(self._ipv4, 16), _PASS
        yield IPV6, _words(self._ipv6, 24), _PASS
        yield IPV6, asks, _PASS
        yield ARP, _words(self._ipv4, 24), _PASS
        yield ALL, (), STRAY


def _discovery(kind: int, length: int) -> list[Key]:
    """ICMPv6 of this type and length, by somebody at the same link (hop limit 255)."""
    first = length << 16 | _ICMPV6 << 8 | 255
    return [Key(4, 0xFFFF_FFFF, first), Key(40, 0xFFFF_0000, kind << 24)]


def _number(port: int, reason: int) -> int:
    return _FIRST_NUMBER + port * _NUMBERS + reason


def requests(
    port: int, device: int, shaper: int, nowhere: int, who: PortOwner, *, any_source: bool
) -> list[NetlinkRequest]:
    """What makes a port hold an instance to that. `shaper` is the device for what is taken (it
    keeps the counters, too), `nowhere` the one for what is dropped. With `any_source` IP packets
    may have any source address."""
    rules = _Rules(who, any_source=any_source)
    drops = [Redirect(_number(port, reason), nowhere) for reason in REASONS]
    filters = [
        # Nothing ever comes in there; this keeps the counters when the instance's end has gone.
        tc.u32(shaper, INGRESS, ALL, 1, (), drops),
        *_filters(device, INGRESS, port, shaper, nowhere, rules.leaving()),
        *_filters(device, EGRESS, port, shaper, nowhere, rules.arriving()),
    ]
    places = [tc.clsact(shaper), tc.clsact(device)]
    return [NetlinkRequest(f"guard p{port}", one) for one in (*places, *filters)]


def _filters(
    device: int, parent: int, port: int, shaper: int, nowhere: int, rules: Iterator[Rule]
) -> Iterator[bytes]:
    for number, (protocol, keys, fate) in enumerate(rules, start=1):
        to = shaper if fate == _TAKE else nowhere
        redirects = [] if fate == _PASS else [Redirect(_number(port, fate), to)]
        yield tc.u32(device, parent, protocol, number, keys, redirects)


def closed(device: int, nowhere: int) -> list[NetlinkRequest]:
    """What makes a device's own namespace deaf to it; a bridge goes on bridging."""
    drop = tc.u32(device, INGRESS, ALL, 1, (), [Redirect(_FIRST_NUMBER - 1, nowhere)])
    return [
        NetlinkRequest("filter what br0 hands to its host", one)
        for one in (tc.clsact(device), drop)
    ]


def by_port(counts: dict[int, int]) -> dict[int, dict[str, int]]:
    """Port -> reason -> packets dropped, from tc.counts."""
    found: dict[int, dict[str, int]] = {}
    for number, packets in counts.items():
        port, reason = divmod(number - _FIRST_NUMBER, _NUMBERS)
        if port >= 0 and reason in REASONS and packets:
            found.setdefault(port, {})[REASONS[reason]] = packets
    return found
