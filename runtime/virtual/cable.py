"""Cables between guests: a serial line of each, over which its pktd sends and hears frames.

A frame goes with the time at which it arrives (struct line_record of tcal_c/pktd/ports/port.h), so
whatever carries it takes none of the guests' time, as long as it is there before. Each direction of
a line is a pipe. Where the guest writes, the kernel itself waits for room, and its time stands
still meanwhile; where it reads, it is given no more at once than its serial line holds.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from runtime.errors import RunError
from runtime.virtual.line import AHEAD_BYTES

READ_BYTES = 1 << 16  # what a pipe holds
_RECORD = struct.Struct("=QQ")  # when the frame arrives, in ns, and its bytes


class CableEnd:
    """A guest's end of a cable: what its kernel is started with, and what the host does there."""

    def __init__(self) -> None:
        self._heard_here, self._said_there = os.pipe()
        self._heard_there, self._said_here = os.pipe()
        self._sent = bytearray()  # by the guest; records, the last perhaps incomplete
        self._waiting = bytearray()  # for the guest
        self.is_open = False  # in the guest: it hears what is handed over
        os.set_blocking(self._heard_here, False)

    @property
    def descriptors(self) -> tuple[int, int]:
        """The kernel's, to read and to write."""
        return self._heard_there, self._said_there

    @property
    def word(self) -> str:
        """What its serial line is connected to, on the kernel's command line."""
        return "fd:{},fd:{}".format(*self.descriptors)

    def collect(self) -> None:
        """Takes what the guest has sent by now, while it runs or waits."""
        with suppress(BlockingIOError):
            while data := os.read(self._heard_here, READ_BYTES):
                self._sent += data

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """What was collected of a guest that waits: when each frame arrives, and the record."""
        at = 0
        while at < len(self._sent):
            size = 0
            if at + _RECORD.size <= len(self._sent):
                due_ns, size = _RECORD.unpack_from(self._sent, at)
            end = at + _RECORD.size + size
            if end > len(self._sent):
                raise RunError("what came over a guest's line is no frame of pktd's")
            if size:
                yield due_ns, bytes(self._sent[at:end])
            else:
                self._opened()
            at = end
        self._sent.clear()

    def _opened(self) -> None:
        """Opening a line has made its descriptors such that they do not wait."""
        self.is_open = True
        os.set_blocking(self._said_there, True)

    def put(self, record: bytes) -> None:
        self._waiting += record

    @property
    def has_news(self) -> bool:
        return bool(self._waiting)

    def hand_over(self) -> None:
        """As much as the guest takes at once. It wakes up, whether anybody reads there or not."""
        os.write(self._said_here, self._waiting[:AHEAD_BYTES])
        del self._waiting[:AHEAD_BYTES]

    def close(self) -> None:
        for descriptor in (self._heard_here, self._said_here, *self.descriptors):
            os.close(descriptor)

    def __enter__(self) -> CableEnd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Cable:
    """Between two guests, by their numbers."""

    members: tuple[int, int]
    ends: tuple[CableEnd, CableEnd]
    delay_ns: int  # that every frame takes at least, either way
