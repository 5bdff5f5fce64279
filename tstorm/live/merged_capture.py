"""Packets of several engines that are captured at once, as one stream in the order of time.

Input: pipes, of which nobody knows whether an earlier packet is still to come. Each has a thread
that reads it; a packet is kept for HELD_SECONDS after it was read, in which those of the other
engines come, and goes on before all with a later time. What comes later than that all the same
goes on when it is there. A reader that is behind waits, and its engine counts what it loses.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, Queue
from typing import BinaryIO

from runtime.errors import RunError
from runtime.rundir.pcapng import Packet, read_packets

HELD_SECONDS = 0.5  # an engine writes each 10 ms, where it has a processor
_ROOM = 10_000  # packets that wait for whoever writes them

Ended = Callable[[str, int], None]


class MergedCapture:
    """`since_ns` is added to the times of packets."""

    def __init__(self, pipes: Sequence[BinaryIO], since_ns: int) -> None:
        self._pipes = pipes
        self._since_ns = since_ns
        # A packet, what is wrong, or None at the end of a pipe; each with the time of reading.
        self._read: Queue[tuple[float, Packet | RunError | None]] = Queue(_ROOM)
        self._held: list[tuple[int, int, float, Packet]] = []
        self._count = 0
        self._ends: list[tuple[str, int]] = []

    def packets(self, ended: Ended) -> Iterator[Packet]:
        """Until all pipes have ended. RunError for one that is damaged."""
        for number, pipe in enumerate(self._pipes):
            work = (pipe, f"packets of engine {number}")
            threading.Thread(target=self._read_all, args=work, daemon=True).start()
        left = len(self._pipes)
        while left:
            with suppress(Empty):
                left -= self._take(self._seconds())
            while self._held and self._held[0][2] + HELD_SECONDS <= time.monotonic():
                yield heapq.heappop(self._held)[3]
        yield from self.rest()
        for name, missing in self._ends:
            ended(name, missing)

    def rest(self) -> Iterator[Packet]:
        """What was read and has not gone on, for who does not want to wait any longer."""
        with suppress(Empty):
            while True:
                self._take(0)
        while self._held:
            yield heapq.heappop(self._held)[3]

    def _read_all(self, pipe: BinaryIO, place: str) -> None:
        try:
            for packet in read_packets(pipe, place, self._end):
                self._read.put((time.monotonic(), packet))
        except RunError as error:
            self._read.put((time.monotonic(), error))
        self._read.put((time.monotonic(), None))

    def _end(self, interface: str, missing: int) -> None:
        self._ends.append((interface, missing))

    def _seconds(self) -> float | None:
        """Until the first one may go on; None where there is none."""
        if not self._held:
            return None
        return max(self._held[0][2] + HELD_SECONDS - time.monotonic(), 0.0)

    def _take(self, seconds: float | None) -> bool:
        """Waits so long for what was read next; true for the end of a pipe. Empty, RunError."""
        at, item = self._read.get(seconds != 0, seconds)
        if isinstance(item, RunError):
            raise item
        if item is None:
            return True
        packet = replace(item, at_ns=item.at_ns + self._since_ns)
        self._count += 1
        heapq.heappush(self._held, (packet.at_ns, self._count, at, packet))
        return False
