"""Metadata messages as bytes: docs/metadata.md, the layout.

Input: a header and flows (path id, value), or the bytes of a datagram. Output: the other. No I/O,
no clock, no keys (runtime/agent/metadata/auth.py has those). The decoder is strict: whatever an
encoder would not have written is a CodecError.

Flows come by the thousand, so both directions work on whole datagrams: varints are cut out by one
regular expression and looked up in a table; no object is made for a flow.

VERSION is raised whenever a receiver of the old one would misread a message.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

MAGIC = b"TM"
VERSION = 2
MAX_DATAGRAM = 1400  # bytes of UDP payload, the tag included
TAG_BYTES = 16
RUN_TAG_BYTES = 4
_HEAD = struct.Struct("<2sB4sHHQQ")  # magic, version, run tag, sender, receiver, boot, for boot
MIN_DATAGRAM = _HEAD.size + 3 + TAG_BYTES
MAX_HOSTS = 1 << 16
MAX_BOOT = (1 << 64) - 1
MAX_SEQUENCE = (1 << 62) - 1
MAX_EPOCH = (1 << 32) - 1
_NUMBERS_BYTES = 9 + 5 + 2  # at most: sequence, epoch, count
ROOM = MAX_DATAGRAM - _HEAD.size - _NUMBERS_BYTES - TAG_BYTES  # bytes of flows that always fit

_MANTISSA_BITS = 7
_ONE = 1 << _MANTISSA_BITS
MAX_CODE = (56 << _MANTISSA_BITS) | (_ONE - 1)
MAX_VALUE = MAX_CODE << 1 | 1
WAIT_UNIT_NS = 100_000
ENDED = 0  # the value of a flow that is no more


class CodecError(ValueError):
    """A message that breaks a rule of docs/metadata.md; says which."""


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """Who tells whom. `boot` and `for_boot` name the starts of sender and receiver."""

    run_tag: bytes
    sender: int  # host
    receiver: int  # host
    boot: int
    for_boot: int  # 0: the sender does not know the receiver's
    sequence: int  # from 1, counted for this receiver since the sender's start
    epoch: int


@dataclass(frozen=True, slots=True)
class Message:
    """`paths` ascend and are parallel to `values`: a rate's code << 1, or for a greedy flow that of
    the wait << 1 | 1."""

    sequence: int
    epoch: int
    paths: Sequence[int]
    values: Sequence[int]


# --- rates -----------------------------------------------------------------------------------


def code_of(rate_bps: int) -> int:
    """The code of a rate: 8 significant bits, rounded half up (error at most 1/256)."""
    if rate_bps < 2 * _ONE:
        return rate_bps
    shift = rate_bps.bit_length() - (_MANTISSA_BITS + 1)
    mantissa = (rate_bps + (1 << (shift - 1))) >> shift
    return min((shift << _MANTISSA_BITS) + mantissa, MAX_CODE)


def rate_of(code: int) -> int:
    """The rate in b/s that a code from 0 to MAX_CODE stands for."""
    if code < 2 * _ONE:
        return code
    return (_ONE | (code & (_ONE - 1))) << ((code >> _MANTISSA_BITS) - 1)


def value_of(amount: int, greedy: bool) -> int:
    """Of a flow that wants so many b/s, or of a greedy one with so many units of wait."""
    return code_of(amount) << 1 | greedy


def wait_value(wait_ns: int) -> int:
    """Of a greedy flow."""
    return value_of((wait_ns + WAIT_UNIT_NS // 2) // WAIT_UNIT_NS, greedy=True)


# --- varints ---------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    """LEB128 in as few bytes as it takes."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_LONGEST = 9  # bytes: 63 bits
_SMALL = tuple(varint(number) for number in range(1 << 14))


class _Decoded(dict[bytes, int]):
    """Every varint of one or two bytes; longer ones are computed, wrong ones are a CodecError."""

    def __missing__(self, token: bytes) -> int:
        if len(token) > _LONGEST:
            raise CodecError("a number of more than 63 bits")
        if token[-1] == 0:
            raise CodecError("a number that is longer than it need be")
        return sum((byte & 127) << 7 * place for place, byte in enumerate(token))


_NUMBER = _Decoded({token: number for number, token in enumerate(_SMALL)}).__getitem__
_tokens = re.compile(rb"[\x80-\xff]*[\x00-\x7f]").findall


# --- messages --------------------------------------------------------------------------------


def flow_bodies(flows: Iterable[tuple[int, int]], room: int = ROOM) -> list[tuple[int, bytes]]:
    """(path, value) by ascending path as (count, bytes) pieces of at most `room` bytes each."""
    pieces: list[tuple[int, bytes]] = []
    parts: list[bytes] = []
    size, count, last = 0, 0, 0
    for path, value in flows:
        delta = path - last
        first = _SMALL[delta] if delta < 16384 else varint(delta)
        second = _SMALL[value]
        size += len(first) + len(second)
        if size > room:
            pieces.append((count, b"".join(parts)))
            first = varint(path)  # each piece stands for itself
            parts, size, count = [], len(first) + len(second), 0
        parts.append(first)
        parts.append(second)
        count += 1
        last = path
    if count:
        pieces.append((count, b"".join(parts)))
    return pieces


def encode(header: MessageHeader, count: int = 0, body: bytes = b"") -> bytes:
    """A message without its tag; `count` and `body` are a piece of flow_bodies()."""
    head = _HEAD.pack(
        MAGIC,
        VERSION,
        header.run_tag,
        header.sender,
        header.receiver,
        header.boot,
        header.for_boot,
    )
    return b"".join(
        (head, varint(header.sequence), varint(header.epoch), varint(count), body),
    )


def split_head(datagram: bytes) -> tuple[bytes, int, bytes, int, int, int, int]:
    """Magic, version, run tag, sender, receiver, boot, for boot: nothing is judged.

    The datagram has at least MIN_DATAGRAM bytes.
    """
    return _HEAD.unpack_from(datagram)


def decode_numbers(datagram: bytes) -> Message:
    """What follows the fixed part of a datagram that carries a tag. Raises CodecError."""
    body = datagram[_HEAD.size : -TAG_BYTES]
    if not body or body[-1] > 127:
        raise CodecError("it ends within a number")
    numbers = list(map(_NUMBER, _tokens(body)))
    if len(numbers) < 3:
        raise CodecError("sequence, epoch and count are not all there")
    sequence, epoch, count = numbers[:3]
    if not 0 < sequence <= MAX_SEQUENCE:
        raise CodecError("a sequence number out of range")
    if epoch > MAX_EPOCH:
        raise CodecError("an epoch out of range")
    if len(numbers) != 3 + 2 * count:
        raise CodecError(f"{count} flows are announced, and {len(numbers) - 3} numbers follow")
    deltas, values = numbers[3::2], numbers[4::2]
    if 0 in deltas[1:]:
        raise CodecError("a flow that is there twice")
    if count and max(values) > MAX_VALUE:
        raise CodecError("a value out of range")
    return Message(sequence, epoch, list(accumulate(deltas)), values)


def decode(datagram: bytes) -> tuple[MessageHeader, Message]:
    """A whole datagram with its tag, which is not looked at. Raises CodecError."""
    if len(datagram) > MAX_DATAGRAM:
        raise CodecError(f"longer than {MAX_DATAGRAM} bytes")
    if len(datagram) < MIN_DATAGRAM:
        raise CodecError(f"shorter than {MIN_DATAGRAM} bytes")
    magic, version, run_tag, sender, receiver, boot, for_boot = split_head(datagram)
    if magic != MAGIC:
        raise CodecError("not a metadata message")
    if version != VERSION:
        raise CodecError(f"version {version}, and this is {VERSION}")
    message = decode_numbers(datagram)
    header = MessageHeader(
        run_tag, sender, receiver, boot, for_boot, message.sequence, message.epoch
    )
    return header, message
