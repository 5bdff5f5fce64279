"""Writes pcapng with the blocks and options that `read_packets` reads (docs/pktd.md), and how many
packets a filter has let through.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO

from runtime.rundir.pcapng import Packet

_ENDLESS = 2**64 - 1  # how long the section is stays open


class PacketWriter:
    """Writes a file, or to a pipe. Each call writes whole blocks, at once. OSError."""

    def __init__(self, file: BinaryIO, interfaces: Sequence[str], program: str) -> None:
        self._file = file
        self._numbers = {name: number for number, name in enumerate(interfaces)}
        self._seen: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()  # missing, since the last packet in the file
        self._missing: Counter[str] = Counter()
        self._unended = dict.fromkeys(interfaces)
        self._last_ns = 0
        section = struct.pack("<IHHQ", 0x1A2B3C4D, 1, 0, _ENDLESS)
        head = _block(0x0A0D0D0A, section + _options((4, program.encode())))
        for name in interfaces:
            options = _options((2, name.encode()), (9, b"\x09"))
            head += _block(1, struct.pack("<HHI", 1, 0, 0) + options)
        self._put(head)

    @property
    def written(self) -> int:
        """Packets in the file."""
        return self._written.total()

    @property
    def missing(self) -> int:
        """Packets that could not be kept, before the filter."""
        return self._missing.total()

    @property
    def unended(self) -> list[str]:
        """Interfaces whose end is not known: later packets of theirs may be missing."""
        return list(self._unended)

    def skip(self, packet: Packet) -> None:
        """Counts a packet that the filter does not want."""
        self._count(packet)

    def add(self, packet: Packet) -> None:
        """Writes a packet."""
        name = packet.interface
        self._count(packet)
        self._written[name] += 1
        options = [(1, packet.comment.encode())] if packet.comment else []
        if untold := self._untold.pop(name, 0):
            options.append((4, struct.pack("<Q", untold)))
        size = len(packet.data)
        words = (self._numbers[name], packet.at_ns >> 32, packet.at_ns & 0xFFFFFFFF, size, size)
        body = struct.pack("<5I", *words) + packet.data + bytes(-size % 4)
        self._put(_block(6, body + (_options(*options) if options else b"")))

    def _count(self, packet: Packet) -> None:
        self._seen[packet.interface] += 1
        self._untold[packet.interface] += packet.missing
        self._missing[packet.interface] += packet.missing
        self._last_ns = max(self._last_ns, packet.at_ns)

    def ended(self, interface: str, missing: int) -> None:
        """How many packets of an interface are missing in all, those behind the last included."""
        self._missing[interface] = max(self._missing[interface], missing)
        self._unended.pop(interface, None)

    def close(self) -> None:
        """Writes what came and what is missing, of each interface."""
        for name, number in self._numbers.items():
            missing = self._missing[name]
            counts = ((4, self._seen[name] + missing), (5, missing), (6, self._written[name]))
            options = _options(*((code, struct.pack("<Q", count)) for code, count in counts))
            at = (self._last_ns >> 32, self._last_ns & 0xFFFFFFFF)
            self._put(_block(5, struct.pack("<III", number, *at) + options))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()


def _options(*options: tuple[int, bytes]) -> bytes:
    parts = [
        struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
    ]
    return b"".join(parts) + bytes(4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
