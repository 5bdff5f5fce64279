"""The size of a link's queue: as it is given, else 50 ms of the rate, or what tc(8) gives the
discipline that manages it."""

from __future__ import annotations

from tdl import aqm
from tdl.ast import QueueSize

TIME_MS = 50
LEAST_BYTES = 30_000  # twenty full-size packets, so that slow links still carry bursts
MOST_BYTES = 16 * 1024 * 1024
PACKET_BYTES = 1500  # the largest that instances send


def default_bytes(rate_bps: int) -> int:
    """Bytes for a rate in bits per second (0 = unlimited, whose queue is never used)."""
    if rate_bps == 0:
        return MOST_BYTES
    return min(max(rate_bps * TIME_MS // 8000, LEAST_BYTES), MOST_BYTES)


def sized(queue: QueueSize | None, rate_bps: int, managed: str) -> tuple[int, int]:
    """Bytes and packets (0: only bytes count) of a queue that is given, or is not (None), with its
    aqm. Where packets count, so many bytes that these are never what is full."""
    if queue is None and (packets := aqm.room(managed)):
        queue = QueueSize(packets, "packets")
    if queue is None:
        return default_bytes(rate_bps), 0
    if queue.unit == "packets":
        return queue.value * PACKET_BYTES, queue.value
    if queue.unit == "bytes":
        return queue.value, 0
    if rate_bps == 0:
        return MOST_BYTES, 0
    return max(rate_bps * queue.value // (8 * 10**9), 1), 0
