"""Who sent what to whom when, from the record of packets of a run (`--packets`, docs/run.md).

Input: the files of packets, which are foreign data, and the plan. Output: one SentPacket for each
packet (or segment) that an instance sent: when, to whom, and when it arrived or where it was lost.

The record has a packet once for each link, when it left that link or was lost on it. Records of one
packet have the same bytes but for TTL, TOS and the header's checksum; they are joined in order of
time from node to node. What one node sends on twice (duplicates, groups) is joined to the same
beginning. The moment of sending is in no file: it is that of leaving the first link without the
link's delay and the time that the packet takes at its rate. It is exact without jitter and without
a queue in the first link, else the packet was sent by as much earlier or later as these took.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from ipaddress import ip_address
from itertools import accumulate

from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from compiler.plan.types import owner_of
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.runfiles import PACKETS
from runtime.schedule import PlanClock

MOST_RECORDS = 400_000  # that are looked at: the first ones of the run
MOST_FILES = 4_000
MOST_FILE_BYTES = 1 << 40
_ETHERNET = 14
_TCP_FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"))
PROBE = "probe"
_OF_PROBES = (b"TPPE", b"EPPT")  # as the data of ICMP begin, 0x54505045 in either order of bytes
_NOT_SEEN = "not seen after"


@dataclass(frozen=True, slots=True)
class SentPacket:
    """Nodes are positions in the plan's topology, moments are plan time. `dst`: -1 for a group that
    it did not reach. `cause`: '' if it arrived, else why it did not, at `end_ns` on `link`."""

    sent_ns: int
    end_ns: int
    src: int
    dst: int
    link: int
    cause: str
    words: str
    size: int  # bytes at layer 3


@dataclass(frozen=True, slots=True)
class SentPackets:
    """`stray`: records whose beginning is not there; `until_ns`: later records were not read, since
    there are more than MOST_RECORDS; `missing`: packets that the files themselves lack."""

    packets: Sequence[SentPacket]
    stray: int
    missing: int
    until_ns: int | None

    def told(self) -> Iterator[str]:
        """What is not there, in words."""
        if self.until_ns is not None:
            yield f"packets are shown until {self.until_ns / 1e9:.3f} s: their record is longer"
        if self.missing:
            yield f"{self.missing} packets are missing in the record: they came too fast for it"
        if self.stray:
            yield f"{self.stray} records of packets are left out: nothing says where these began"


@dataclass(frozen=True, slots=True)
class _Record:
    at_ns: int  # since the start
    link: int
    key: bytes
    cause: str
    ends: tuple[str, str]  # addresses
    words: str
    size: int

    def __lt__(self, other: _Record) -> bool:
        return (self.at_ns, self.link) < (other.at_ns, other.link)


def recorded_packets(
    directory: HeldDirectory, plan: Plan, clock: PlanClock, start_unix_ns: int
) -> SentPackets | None:
    """None where the run has no such record. RunError for what is damaged."""
    if not directory.has(PACKETS):
        return None
    reading = _Reading(plan, start_unix_ns)
    reading.read(directory.enter(PACKETS))
    joined = _Joining(plan, clock)
    for group in _same_moment(sorted(reading.records)):
        joined.take(group)
    horizon = reading.horizon_ns
    until_ns = None if horizon is None else clock.plan_time(horizon)
    return SentPackets(joined.all(), joined.stray, reading.missing, until_ns)


class _Reading:
    """Keeps the first MOST_RECORDS records, whichever files they are in."""

    def __init__(self, plan: Plan, start_unix_ns: int) -> None:
        self._start_unix_ns = start_unix_ns
        self._links: dict[str, int] = {}
        for number, link in enumerate(plan.topology.links):
            self._links.setdefault(_as_interface(link.name), number)
        self.records: list[_Record] = []
        self.missing = 0
        self.horizon_ns: int | None = None

    def read(self, packets: HeldDirectory) -> None:
        for name in sorted(packets.names())[:MOST_FILES]:
            with packets.reading(name, MOST_FILE_BYTES) as file:
                for packet in read_packets(file, str(packets / name)):
                    at_ns = packet.at_ns - self._start_unix_ns
                    if self.horizon_ns is not None and at_ns >= self.horizon_ns:
                        break
                    self._take(packet, at_ns)

    def _take(self, packet: Packet, at_ns: int) -> None:
        self.missing += packet.missing
        link = self._links.get(packet.interface)
        content = packet.data[_ETHERNET:]
        if link is None or len(content) < 20:
            return
        self.records.append(_record(at_ns, link, packet.comment, content))
        if len(self.records) >= 2 * MOST_RECORDS:
            self.records = heapq.nsmallest(MOST_RECORDS, self.records)
            self.horizon_ns = self.records[-1].at_ns


def _as_interface(name: str) -> str:
    """As the file calls a link."""
    return "".join(one if "!" <= one <= "~" else "_" for one in name)[:200]


def _record(at_ns: int, link: int, comment: str, content: bytes) -> _Record:
    same = bytearray(content)
    if content[0] >> 4 == 4:
        same[1] = same[8] = same[10] = same[11] = 0
        ends, protocol = (content[12:16], content[16:20]), content[9]
        inner = content[4 * (content[0] & 15) :]
    else:
        same[0], same[1], same[7] = 0x60, 0, 0
        ends, protocol, inner = (content[8:24], content[24:40]), content[6], content[40:]
    return _Record(
        at_ns,
        link,
        blake2b(same, digest_size=12).digest(),
        comment.removeprefix("dropped: "),
        (_address(ends[0]), _address(ends[1])),
        _words(protocol, inner),
        len(content),
    )


def _address(data: bytes) -> str:
    return str(ip_address(data)) if len(data) in (4, 16) else ""


def _words(protocol: int, inner: bytes) -> str:
    """What it is, for people."""
    if protocol in (6, 17) and len(inner) >= 8:
        ports = "{} to {}".format(*struct.unpack("!HH", inner[:4]))
        if protocol == 17:
            return f"UDP {ports}"
        flags = inner[13] if len(inner) > 13 else 0
        return " ".join([f"TCP {ports}", *(word for bit, word in _TCP_FLAGS if flags & bit)])
    if protocol == 253 or (protocol in (1, 58) and inner[8:12] in _OF_PROBES):
        return PROBE
    if protocol in (1, 58) and inner:
        echo = (
            {8: "ping", 0: "ping's answer"}
            if protocol == 1
            else {128: "ping", 129: "ping's answer"}
        )
        return echo.get(inner[0], f"ICMP type {inner[0]}")
    return f"protocol {protocol}"


def _same_moment(records: Sequence[_Record]) -> Iterator[list[_Record]]:
    group: list[_Record] = []
    for record in records:
        if group and record.at_ns != group[0].at_ns:
            yield group
            group = []
        group.append(record)
    if group:
        yield group


_Place = tuple[bytes, int]  # a packet's key and a node


class _Joining:
    def __init__(self, plan: Plan, clock: PlanClock) -> None:
        self._plan, self._clock = plan, clock
        self._nodes = nodes = plan.topology.nodes
        self._by_address: dict[str, int] = {}
        for number, node in enumerate(nodes):
            if node.service >= 0:
                for address in (node.ipv4, node.ipv6):
                    self._by_address[address] = owner_of(nodes, number)
        self._states = _States(plan, clock)
        self._waiting: dict[_Place, deque[SentPacket]] = {}
        self._left: dict[_Place, SentPacket] = {}  # the last that went on from there
        self._ended: list[SentPacket] = []
        self.stray = 0

    def take(self, records: list[_Record]) -> None:
        """Of one moment: what waits for another of them comes after it."""
        while records:
            later = [record for record in records if not self._join(record)]
            if len(later) == len(records):
                self.stray += len(later)
                return
            records = later

    def _join(self, record: _Record) -> bool:
        link = self._plan.topology.links[record.link]
        place = (record.key, link.src)
        waiting = self._waiting.get(place)
        if waiting:
            before = waiting.popleft()
            self._left[place] = before
        elif self._nodes[link.src].service >= 0:
            before = self._begun(record, owner_of(self._nodes, link.src))
        elif place in self._left:
            before = self._left[place]
        else:
            return False
        self._go_on(record, before, link.dst)
        return True

    def _begun(self, record: _Record, src: int) -> SentPacket:
        at_ns = record.at_ns
        sent_ns = at_ns if record.cause else self._states.entered(record)
        dst = self._by_address.get(record.ends[1], -1)
        times = (self._clock.plan_time(max(sent_ns, 0)), self._clock.plan_time(at_ns))
        return SentPacket(*times, src, dst, record.link, "", record.words, record.size)

    def _go_on(self, record: _Record, before: SentPacket, node: int) -> None:
        at_ns = self._clock.plan_time(record.at_ns)
        now = replace(before, end_ns=at_ns, link=record.link, cause=record.cause)
        here = owner_of(self._nodes, node) if self._nodes[node].service >= 0 else -1
        if record.cause:
            self._ended.append(now)
        elif here >= 0 and before.dst in (-1, here):
            self._ended.append(replace(now, dst=here))
        else:
            self._waiting.setdefault((record.key, node), deque()).append(now)

    def all(self) -> list[SentPacket]:
        """In order of time, with those that were never seen again."""
        found = list(self._ended)
        for (_, node), packets in self._waiting.items():
            cause = f"{_NOT_SEEN} {self._nodes[node].name}"
            found += [replace(one, cause=cause) for one in packets]
        return sorted(
            found, key=lambda one: (one.sent_ns, one.end_ns, one.src, one.dst, one.link, one.words)
        )


class _States:
    """When a packet entered the first link that it left: records come in order of time."""

    def __init__(self, plan: Plan, clock: PlanClock) -> None:
        self._links, self._clock = plan.topology.links, clock
        self._epochs = iter(plan.epochs)
        self._next = next(self._epochs, None)
        self._known: dict[int, list[tuple[int, LinkState]]] = {}

    def entered(self, record: _Record) -> int:
        while self._next and self._clock.due(self._next.at_ns) <= record.at_ns:
            since_ns = self._clock.due(self._next.at_ns)
            for link, state in self._next.links:
                self._known.setdefault(link, []).append((since_ns, state))
            self._next = next(self._epochs, None)
        sent_ns = record.at_ns
        first = (-(1 << 62), self._links[record.link].state)
        for since_ns, state in reversed([first, *self._known.get(record.link, ())]):
            took_ns = state.delay_ns
            if state.rate_bps:
                took_ns += 8 * record.size * 10**9 // state.rate_bps
            sent_ns = record.at_ns - took_ns
            if sent_ns >= since_ns:
                break
        return sent_ns


def thinned(
    packets: Sequence[SentPacket], most: int, begin_ns: int, end_ns: int, slices: int
) -> tuple[list[SentPacket], list[int]]:
    """At most so many of them, spread over equal slices of time, in each lost ones first; and how
    many each slice lacks."""
    width = max((end_ns - begin_ns) // slices, 1)
    parts: list[list[SentPacket]] = [[] for _ in range(slices)]
    for one in packets:
        parts[min(max((one.sent_ns - begin_ns) // width, 0), slices - 1)].append(one)
    level = _level([len(part) for part in parts], most)
    kept: list[SentPacket] = []
    for part in parts:
        chosen = sorted(range(len(part)), key=lambda at: (not part[at].cause, at))[:level]
        kept += [part[at] for at in sorted(chosen)]
    return kept, [max(len(part) - level, 0) for part in parts]


def _level(counts: Sequence[int], most: int) -> int:
    """The largest number that each slice may keep so that no more than `most` are kept."""
    if sum(counts) <= most:
        return max(counts, default=0)
    ordered = sorted(counts)
    below = [0, *accumulate(ordered)]

    def kept(level: int) -> int:
        at = bisect_right(ordered, level)
        return below[at] + level * (len(ordered) - at)

    low, high = 0, ordered[-1]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if kept(middle) <= most else (low, middle - 1)
    return low
