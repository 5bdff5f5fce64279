"""Filter scale: what 1 to 64 k destinations cost a packet, in latency and in throughput.

The papers' emulators find a packet's path by u32 filters, hashed in two levels by the destination's
last two bytes. Here pktd in path mode (what a host runs for its instances) has so many paths, and
tc has so many htb classes with such filters, built by hand; both stand between two namespaces, and
what is sent goes to the last destination declared. An experiment of this size is no TDL file: it
has one sender and 64 k receivers that need not be there.
"""

from __future__ import annotations

import json
import sys

from bench.errors import BenchError
from bench.papers.context import Context
from bench.papers.rows import LEAST, MOST, TOLD, goal, row
from bench.tables import Record

COUNTS = (1, 64, 1024, 16_384, 65_000)
LATENCY_US = 20.0  # more than with one destination
THROUGHPUT = 0.1
PKTD_S, PEER_S = 300.0, 60.0  # tc takes minutes to make 64 k classes


def measure(context: Context) -> list[Record]:
    """Against the figure with one destination, pktd's and the kernel's each."""
    if not context.places("engine"):
        return []
    counts = (1, 1024) if context.quick else COUNTS
    pktd = _measured(context, "pktd", counts)
    if not pktd:
        raise BenchError(context.cannot["pktd"])
    peers = _kernels(context, counts)
    rows: list[Record] = []
    for number, (count, one) in enumerate(zip(counts, pktd, strict=True)):
        for key, unit, kind, limit in (
            ("rtt_us", "µs", MOST, LATENCY_US),
            ("kpps", "kpps", LEAST, THROUGHPUT),
        ):
            rows.append(
                row(
                    f"{count:,} destinations, {'round trip' if unit == 'µs' else '64 B datagrams'}",
                    "engine",
                    unit,
                    one[key],
                    pktd[0][key],
                    goal=goal(kind, limit) if number else goal(TOLD),
                    peers={"u32 and htb": peers[count][key]} if count in peers else {},
                )
            )
    return rows


def _kernels(context: Context, counts: tuple[int, ...]) -> dict[int, Record]:
    """Each count by itself, so that one which takes too long takes no other with it."""
    found: dict[int, Record] = {}
    for count in counts:
        name = f"u32 and htb, {count:,} destinations"
        for one in _measured(context, "u32", (count,), name, PEER_S):
            found[count] = one
    return found


def _measured(
    context: Context, kind: str, counts: tuple[int, ...], name: str = "", longest_s: float = PKTD_S
) -> list[Record]:
    """{rtt_us, kpps} for each count, from destinations.py in namespaces of its own."""
    words = [kind, "quick" if context.quick else "whole", *map(str, counts)]
    argv = [sys.executable, "-m", "bench.papers.destinations", *words]

    return context.other(name or kind, argv, _read, longest_s) or []


def _read(said: list[str]) -> list[Record]:
    return [dict(json.loads(one)) for one in said]
