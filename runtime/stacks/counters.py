"""The kernel's counters of a network namespace that a run looks at, and what they mean.

They are named as the kernel and nstat(8) name them: the group of /proc/PID/net/snmp and netstat and
the counter in it (`Udp` and `RcvbufErrors`), or the name in snmp6. Those of eth0 (net/dev) have the
names of /sys/class/net/eth0/statistics, and are the sums of all interfaces of an instance.
See docs/run.md, "What instances' own stacks dropped".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from runtime.system.network import netdev
from runtime.system.network.interface import INTERFACE

_UDP = {
    "RcvbufErrors": "the receive buffer of a {} socket was full",
    "SndbufErrors": "the send buffer of a {} socket was full",
    "MemErrors": "{} sockets had all the memory that udp_mem allows",
    "InCsumErrors": "{} checksums were wrong",
}
_IP = {
    "InDiscards": "no memory for an {} packet that came",
    "OutDiscards": "no room or memory for an {} packet to send",
    "InHdrErrors": "{} headers were wrong, or the hop limit was used up",
    "ReasmFails": "fragments of an {} packet were missing or too many",
}
# What the stack of an instance lost: packets that the network had delivered, or never got.
DROPS: Mapping[str, str] = {
    **{f"Udp{name}": text.format("UDP") for name, text in _UDP.items()},
    **{f"Udp6{name}": text.format("UDP over IPv6") for name, text in _UDP.items()},
    **{f"Ip{name}": text.format("IPv4") for name, text in _IP.items()},
    **{f"Ip6{name}": text.format("IPv6") for name, text in _IP.items()},
    "TcpInCsumErrors": "TCP checksums were wrong",
    "TcpExtListenDrops": "a listening TCP socket had no room for a connection",
    "TcpExtTCPReqQFullDrop": "a listening TCP socket had no room for a SYN",
    "TcpExtTCPBacklogDrop": "TCP segments came while their socket was busy, and too many",
    "TcpExtTCPRcvQDrop": "the receive buffer of a TCP socket was full",
    "TcpExtRcvPruned": "the receive buffer of a TCP socket was full, and what was in it was cut",
    "TcpExtTCPOFODrop": "no room for TCP segments that came out of order",
    "TcpExtTCPZeroWindowDrop": "TCP segments came for a socket that had closed its window",
    "TcpExtPFMemallocDrop": "the machine was out of memory for packets",
    "TcpExtIPReversePathFilter": "rp_filter refused the source address",
}
# Between the stack of an instance and the network: neither the program nor a link has lost these.
TAKEN = f"{INTERFACE}_tx_dropped"
BOUNDARY: Mapping[str, str] = {
    TAKEN: f"{INTERFACE} was given packets that were not taken from it: too many, or too large",
    f"{INTERFACE}_rx_dropped": f"{INTERFACE} had no memory for a packet, or nobody its protocol",
}
# What the stack counts as well, of a packet that eth0 did not get rid of.
ECHOED = ("IpOutDiscards", "Ip6OutDiscards", "UdpSndbufErrors", "Udp6SndbufErrors")
# What goes with drops, wherever they were: recorded, and not counted as a drop.
SIGNS: Mapping[str, str] = {
    "TcpRetransSegs": "TCP segments were sent again",
    "TcpExtTCPTimeouts": "retransmission timers of TCP ran out",
    "TcpExtTCPLostRetransmit": "TCP segments were lost that had been sent again",
    "TcpExtTCPSpuriousRTOs": "retransmission timers of TCP ran out too early",
    "TcpExtListenOverflows": "the accept queue of a TCP socket was full",
    "TcpExtPruneCalled": "the receive buffer of a TCP socket was compacted, being full",
    # tcp_validate_incoming() counts a SYN-ACK that is repeated because its ACK was lost.
    "TcpInErrs": "TCP segments were damaged, or a SYN came again for a connection that is there",
    "TcpAttemptFails": "TCP connections were not established",
    "IpOutNoRoutes": "programs sent over IPv4 where there is no route, to a group for example",
    "UdpNoPorts": "UDP packets came for a port that nobody listened on",
    "Udp6NoPorts": "UDP packets came over IPv6 for a port that nobody listened on",
}
# Of the whole machine: the kernel counts these by processor, not by network namespace.
MACHINE: Mapping[str, str] = {
    "SoftnetDropped": "a processor's backlog was full (net.core.netdev_max_backlog)",
    "SoftnetTimeSqueezed": "a processor's time for packets was used up (net.core.netdev_budget)",
}
MEANINGS: Mapping[str, str] = {**DROPS, **BOUNDARY, **SIGNS, **MACHINE}
FILES = ("snmp", "netstat", "snmp6", "dev")  # of /proc/PID/net

_WANTED = frozenset({*DROPS, *SIGNS})
_SIX = re.compile(
    b"^(%b)[ \t]+([0-9]+)$"
    % b"|".join(sorted(name.encode() for name in _WANTED if name.startswith(("Udp6", "Ip6")))),
    re.MULTILINE,
)


@lru_cache(maxsize=64)
def _columns(titles: bytes) -> tuple[tuple[int, str], ...]:
    """Where a line of values has the wanted counters. Titles are the same in all namespaces."""
    group, *names = titles.decode("ascii", "replace").split()
    full = (group.removesuffix(":") + name for name in names)
    return tuple([(place, name) for place, name in enumerate(full, 1) if name in _WANTED])


def _paired(text: bytes) -> Iterator[tuple[str, int]]:
    """snmp and netstat: a line of titles, then one of values, for each group."""
    lines = text.split(b"\n")
    for titles, values in zip(lines[::2], lines[1::2], strict=False):
        words = values.split()
        for place, name in _columns(titles) if words else ():
            if place < len(words):
                yield name, int(words[place])


def parse(texts: Mapping[str, bytes]) -> dict[str, int]:
    """Counters that are not 0, of the files' texts. Those that this kernel lacks are not there."""
    found = dict(_paired(texts["snmp"]))
    found.update(_paired(texts["netstat"]))
    found.update((name.decode(), int(value)) for name, value in _SIX.findall(texts["snmp6"]))
    device = netdev.of_all(texts["dev"])
    if device is not None:
        found[f"{INTERFACE}_rx_dropped"] = device.rx_dropped
        found[TAKEN] = device.tx_dropped
    return {name: value for name, value in found.items() if value > 0}


def parse_softnet(text: bytes) -> dict[str, int]:
    """/proc/net/softnet_stat: a line a processor, in hexadecimal: processed, dropped, squeezed."""
    rows = [line.split() for line in text.split(b"\n") if line]
    return {
        "SoftnetDropped": sum(int(row[1], 16) for row in rows),
        "SoftnetTimeSqueezed": sum(int(row[2], 16) for row in rows),
    }
