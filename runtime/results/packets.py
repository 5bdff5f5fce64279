"""Where the packets of two runs part: the first one of a link that is not the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO

from runtime.errors import RunError
from runtime.results.difference import RunDifference
from runtime.rundir.pcapng import Packet, read_packets

BYTES_SHOWN = 16


def first_packet(
    first: BinaryIO, second: BinaryIO, path: str, start_unix_ns: int
) -> RunDifference | None:
    """The first packet that differs; None where the files do not tell (one is no such file)."""
    found: tuple[Packet | None, Packet | None] | None = None
    more = 0
    try:
        for mine, theirs in zip_longest(read_packets(first, path), read_packets(second, path)):
            if mine == theirs:
                continue
            if found is None:
                found = (mine, theirs)
            else:
                more += 1
    except RunError:
        return None
    if found is None:
        return None
    one = min((packet for packet in found if packet), key=lambda packet: packet.at_ns)
    mine_said, theirs_said = (_said(*pair, start_unix_ns) for pair in (found, found[::-1]))
    return RunDifference(
        "packet", one.interface, one.at_ns - start_unix_ns, mine_said, theirs_said, more
    )


def _said(packet: Packet | None, other: Packet | None, start_unix_ns: int) -> str:
    return "" if packet is None else " ".join(_words(packet, other, start_unix_ns))


def _words(packet: Packet, other: Packet | None, start_unix_ns: int) -> Iterator[str]:
    yield f"{(packet.at_ns - start_unix_ns) / 1e9:.9f} s {packet.interface},"
    yield f"{len(packet.data)} bytes"
    if packet.comment:
        yield f"({packet.comment})"
    if packet.missing:
        yield f"({packet.missing} missing before it)"
    if other is not None and packet.data != other.data:
        shorter = min(len(packet.data), len(other.data))
        at = next((i for i in range(shorter) if packet.data[i] != other.data[i]), shorter)
        yield f"from byte {at} on: {packet.data[at : at + BYTES_SHOWN].hex(' ') or 'nothing'}"
