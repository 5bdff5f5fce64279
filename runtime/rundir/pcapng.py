"""Reads the files of packets that pktd and `PacketWriter` write: pcapng with the blocks and options
of docs/pktd.md.

The files are foreign data. Nothing but what these write is accepted: other block types, options,
link types or resolutions are errors with the place in the file. A last block that a crash has cut
is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from runtime.errors import RunError
from runtime.json_schema import REMEDY

MAX_BLOCK_BYTES = 1 << 18  # a packet has at most 64 KiB, and a few options
MAX_INTERFACES = 16

_SECTION, _INTERFACE, _PACKET, _STATISTICS = 0x0A0D0D0A, 1, 6, 5
_MAGIC = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_ETHERNET, _NANOSECONDS = 1, b"\x09"
_END, _COMMENT, _PROGRAM, _NAME, _RESOLUTION, _DROPCOUNT = 0, 1, 4, 2, 9, 4
_RECEIVED, _DROPPED, _ACCEPTED = 4, 5, 6
_NAMES = {_SECTION: "section", _INTERFACE: "interface", _PACKET: "packet", _STATISTICS: "end"}


@dataclass(frozen=True, slots=True)
class Packet:
    """One that has left a link or was lost on it."""

    interface: str  # the link's name
    at_ns: int  # since 1970
    data: bytes  # the Ethernet frame
    comment: str  # why it was dropped, '' if it was not
    missing: int  # packets of the interface before it that are not in the file


Ended = Callable[[str, int], None]  # an interface: how many of its packets are missing in all


def _unheard(interface: str, missing: int) -> None:
    del interface, missing


class _FaultError(Exception):
    """What is wrong with a block."""


class _Reader:
    def __init__(self, file: BinaryIO, ended: Ended) -> None:
        self._file = file
        self._tell_end = ended
        self.place = 0  # of the block that is read
        self._order = "<"
        self._interfaces: list[str] = []
        self._ended: set[int] = set()

    def packets(self) -> Iterator[Packet]:
        first = True
        while (block := self._block(first=first)) is not None:
            kind, body = block
            if first != (kind == _SECTION):
                raise _FaultError("a file begins with its one section header")
            first = False
            if kind == _INTERFACE:
                self._add_interface(body)
            elif kind == _PACKET:
                yield self._packet(body)
            elif kind == _STATISTICS:
                self._end(body)
        if first:
            raise _FaultError("there is nothing in it")

    def _block(self, *, first: bool) -> tuple[int, bytes] | None:
        head = self._file.read(12)  # the least that a block has
        if first and len(head) >= 8:
            if head[:4] != b"\n\r\r\n" or head[8:] not in _MAGIC:
                raise _FaultError("it is no pcapng file")
            self._order = _MAGIC[head[8:]]
        if len(head) < 8:
            return None
        kind, length = self._unpack("II", head[:8])
        if kind not in _NAMES:
            raise _FaultError(f"a block has the unknown type {kind:#x}")
        if not 12 <= length <= MAX_BLOCK_BYTES or length % 4:
            raise _FaultError(f"a block has the length {length}")
        rest = head[8:] + self._file.read(length - 12)
        if len(rest) < length - 8:
            return None
        if self._unpack("I", rest[-4:]) != (length,):
            raise _FaultError("a block has two lengths")
        self.place += length
        return kind, rest[:-4]

    def _unpack(self, form: str, data: bytes) -> tuple[int, ...]:
        return struct.unpack(self._order + form, data)

    def _fields(self, form: str, body: bytes) -> tuple[tuple[int, ...], bytes]:
        size = struct.calcsize(self._order + form)
        if len(body) < size:
            raise _FaultError("a block is too short")
        return self._unpack(form, body[:size]), body[size:]

    def _options(self, data: bytes, known: dict[int, int]) -> dict[int, bytes]:
        """`known`: the length of each, -1 for a text of any."""
        found: dict[int, bytes] = {}
        ended = not data
        while data:
            (code, length), data = self._fields("HH", data)
            if ended or (code == _END and length):
                raise _FaultError("options go on behind their end")
            ended = code == _END
            if ended:
                continue
            if code not in known or code in found or known[code] not in (length, -1):
                raise _FaultError(f"a block has the option {code} of {length} bytes")
            padded = -length % 4
            if len(data) < length + padded or any(data[length : length + padded]):
                raise _FaultError(f"the option {code} is cut or not padded with zeros")
            found[code], data = data[:length], data[length + padded :]
        if not ended:
            raise _FaultError("options have no end")
        return found

    def _add_interface(self, body: bytes) -> None:
        (link_type, reserved, limit), rest = self._fields("HHI", body)
        options = self._options(rest, {_NAME: -1, _RESOLUTION: 1})
        if (link_type, reserved, limit) != (_ETHERNET, 0, 0) or _NAME not in options:
            raise _FaultError("an interface is not as pktd describes one")
        if options.get(_RESOLUTION) != _NANOSECONDS:
            raise _FaultError("an interface does not count in nanoseconds")
        if len(self._interfaces) == MAX_INTERFACES:
            raise _FaultError(f"there are more than {MAX_INTERFACES} interfaces")
        self._interfaces.append(_text(options[_NAME]))

    def _packet(self, body: bytes) -> Packet:
        (number, high, low, length, whole), rest = self._fields("IIIII", body)
        name = self._interface(number)
        padded = -length % 4
        if length != whole or len(rest) < length + padded or any(rest[length : length + padded]):
            raise _FaultError("a packet is cut or not padded with zeros")
        options = self._options(rest[length + padded :], {_COMMENT: -1, _DROPCOUNT: 8})
        missing = options.get(_DROPCOUNT)
        return Packet(
            interface=name,
            at_ns=high << 32 | low,
            data=rest[:length],
            comment=_text(options.get(_COMMENT, b"")),
            missing=self._unpack("Q", missing)[0] if missing else 0,
        )

    def _interface(self, number: int) -> str:
        if number >= len(self._interfaces):
            raise _FaultError(f"there is no interface {number}")
        if number in self._ended:
            raise _FaultError(f"interface {number} goes on behind its end")
        return self._interfaces[number]

    def _end(self, body: bytes) -> None:
        (number, _, _), rest = self._fields("III", body)
        name = self._interface(number)
        options = self._options(rest, {_RECEIVED: 8, _DROPPED: 8, _ACCEPTED: 8})
        missing = options.get(_DROPPED)
        self._tell_end(name, self._unpack("Q", missing)[0] if missing else 0)
        self._ended.add(number)


def _text(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise _FaultError("a text is not ASCII") from error


def read_packets(file: BinaryIO, place: str, ended: Ended = _unheard) -> Iterator[Packet]:
    """Packets in the order of the file, which may be a pipe. RunError begins with `place`."""
    reader = _Reader(file, ended)
    try:
        yield from reader.packets()
    except _FaultError as fault:
        raise RunError(f"{place}: at byte {reader.place}: {fault}", REMEDY) from None
