"""Digests of links as docs/pktd.md defines them, from the packets in a file: a second writing of
what tcal_c/pktd/record does, for comparison. Slow."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from runtime.rundir.pcapng import Packet

ETHERNET_BYTES = 14
FATES = (
    "",
    "dropped: no room in the queue",
    "dropped: lost by the draw",
    "dropped: the link was down",
)

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _round(acc: int, word: int) -> int:
    return _rotate((acc + word * _P2) & _MASK, 31) * _P1 & _MASK


def _stripes(data: bytes, seed: int) -> int:
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for words in struct.iter_unpack("<4Q", data[: len(data) // 32 * 32]):
        lanes = [_round(lane & _MASK, word) for lane, word in zip(lanes, words, strict=True)]
    turned = zip(lanes, (1, 7, 12, 18), strict=True)
    total = sum(_rotate(lane, bits) for lane, bits in turned) & _MASK
    for lane in lanes:
        total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return total


def xxh64(data: bytes, seed: int = 0) -> int:
    total = _stripes(data, seed) if len(data) >= 32 else seed + _P5
    total = (total + len(data)) & _MASK
    rest = data[len(data) // 32 * 32 :]
    whole = len(rest) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", rest[:whole]):
        total = (_rotate(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    rest = rest[whole:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little")
        total = (_rotate(total ^ word * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        total = _rotate(total ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    for shift, prime in ((33, _P2), (29, _P3)):
        total = (total ^ total >> shift) * prime & _MASK
    return total ^ total >> 32


def _as_it_entered(ip: bytes, hops: int) -> bytes:
    """With what so many bridges have taken from its TTL."""
    found = bytearray(ip)
    if found[0] >> 4 == 6:
        found[7] += hops
        return bytes(found)
    found[8] += hops
    found[10:12] = bytes(2)
    total = sum(struct.unpack_from(f"!{(found[0] & 15) * 2}H", found))
    total = (total & 0xFFFF) + (total >> 16)
    found[10:12] = struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
    return bytes(found)


def digest(packets: Iterable[Packet], epoch_unix_ns: int | None, hops: int = 0) -> str:
    """Of one direction of a link, with times since then, or (None) without, behind so many bridges.
    Super-packets are not in a file as they entered: only packets that came one by one have the
    digest of pktd."""
    value = 0
    for packet in packets:
        at_ns = 0 if epoch_unix_ns is None else (packet.at_ns - epoch_unix_ns) & _MASK
        fate = FATES.index(packet.comment) << 32 | 1
        entered = _as_it_entered(packet.data[ETHERNET_BYTES:], hops)
        words = (at_ns, fate, xxh64(entered))
        value = xxh64(struct.pack("<3Q", *words), value)
    return f"{value:016x}"
