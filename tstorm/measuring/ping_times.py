"""Round trips from what ping(8) of iputils or Busybox prints, and the words that have it measure.

Single trips are printed with three digits, so that one of 210 ms is rounded to 1 ms; the smallest
is taken from the last line, which has microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from runtime.json_schema import Count

INTERVAL_S = 0.2  # the least that ordinary users may ask for everywhere
_TRIP = re.compile(r"time=(\d+(?:\.\d+)?) ms")
_LEAST = re.compile(r"min/avg/max\S* = (\d+(?:\.\d+)?)/")
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+)")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class RoundTrips:
    min_ns: Count
    p50_ns: Count
    p99_ns: Count
    sent: Count
    received: Count


def command(address: str, seconds: float) -> list[str]:
    return ["ping", "-n", "-i", str(INTERVAL_S), "-w", str(max(1, round(seconds))), address]


def read(text: str) -> RoundTrips | None:
    """None where nobody has answered, or it is no output of ping."""
    trips = sorted(float(found) for found in _TRIP.findall(text))
    least, counts = _LEAST.search(text), _COUNTS.search(text)
    if not trips or least is None or counts is None or float(least[1]) <= 0:
        return None
    half, most = (trips[min(len(trips) - 1, len(trips) * part // 100)] for part in (50, 99))
    # Rounded, the middle could be below the exact least.
    low = round(float(least[1]) * _NS_PER_MS)
    p50, p99 = (max(low, round(ms * _NS_PER_MS)) for ms in (half, most))
    return RoundTrips(low, p50, p99, int(counts[1]), int(counts[2]))
