"""The size of a link's queue when `queue=` is not given: 50 ms of the link's rate."""

from __future__ import annotations

TIME_MS = 50
LEAST_BYTES = 30_000  # twenty full-size packets, so that slow links still carry bursts
MOST_BYTES = 16 * 1024 * 1024


def default_bytes(rate_bps: int) -> int:
    """Bytes for a rate in bits per second (0 = unlimited, whose queue is never used)."""
    if rate_bps == 0:
        return MOST_BYTES
    return min(max(rate_bps * TIME_MS // 8000, LEAST_BYTES), MOST_BYTES)
