"""Files of packets as pktd would write them, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from runtime.rundir.pcapng import Packet


def _options(order: str, options: Sequence[tuple[int, bytes]]) -> bytes:
    if not options:
        return b""
    parts = [
        struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
    ]
    return b"".join(parts) + bytes(4)


def block(order: str, kind: int, body: bytes) -> bytes:
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def head(order: str, names: Sequence[str]) -> bytes:
    section = struct.pack(order + "IHHQ", 0x1A2B3C4D, 1, 0, 2**64 - 1)
    found = block(order, 0x0A0D0D0A, section + _options(order, [(4, b"pktd 0")]))
    for name in names:
        options = _options(order, [(2, name.encode()), (9, b"\x09")])
        found += block(order, 1, struct.pack(order + "HHI", 1, 0, 0) + options)
    return found


def file(packets: Sequence[Packet], names: Sequence[str], *, order: str = "<") -> bytes:
    found = head(order, names)
    for packet in packets:
        words = (names.index(packet.interface), packet.at_ns >> 32, packet.at_ns & 0xFFFFFFFF)
        size = len(packet.data)
        body = struct.pack(order + "5I", *words, size, size) + packet.data + bytes(-size % 4)
        options = [(1, packet.comment.encode())] if packet.comment else []
        if packet.missing:
            options.append((4, struct.pack(order + "Q", packet.missing)))
        found += block(order, 6, body + _options(order, options))
    for number in range(len(names)):
        counts = [(4, struct.pack(order + "Q", 7)), (5, struct.pack(order + "Q", 0))]
        found += block(order, 5, struct.pack(order + "III", number, 0, 0) + _options(order, counts))
    return found
