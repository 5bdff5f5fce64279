"""An epoch that changes 10,000 routes: how long staging takes and how late it is in force.

100 end points and 100 bridges; each bridge has two links to go on by, and the epoch turns the route
for every end point at every bridge from one to the other.
"""

from __future__ import annotations

import time

from bench.pktd_client import Pktd, now_ns
from bench.probing import Record, program

ENDS = 100
BRIDGES = 100
_AHEAD_NS = 200_000_000


def measure(quick: bool) -> list[Record]:
    """One row of medians and maxima over several such epochs."""
    staged: list[int] = []
    late: list[int] = []
    with Pktd(program("pktd")) as pktd:
        pktd.ask_all(_network())
        pktd.ask_all(_turn(0))
        pktd.commit()
        for turn in range(1, 5 if quick else 21):
            began = time.monotonic_ns()
            pktd.ask_all(_turn(turn % 2))
            staged.append(time.monotonic_ns() - began)
            asked, applied = pktd.commit(now_ns() + _AHEAD_NS)
            late.append(applied - asked)
    return [
        {
            "route_changes": ENDS * BRIDGES,
            "stage_ms_median": _middle(staged) / 1e6,
            "stage_ms_max": max(staged) / 1e6,
            "applied_ms_median": _middle(late) / 1e6,
            "applied_ms_max": max(late) / 1e6,
        }
    ]


def _middle(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def _network() -> list[str]:
    lines = [f"node {end} ip=10.77.0.{end + 1}" for end in range(ENDS)]
    lines += [f"node {ENDS + bridge}" for bridge in range(BRIDGES)]
    for bridge in range(BRIDGES):
        for way in (0, 1):
            onward = ENDS + (bridge + 1 + way) % BRIDGES
            lines.append(
                f"link {2 * bridge + way} {ENDS + bridge} {onward} rate=1000000000 delay=1000000"
                f" jitter=0 loss=0 queue=1000000 dist=normal seed={bridge} up=1"
            )
    return lines


def _turn(way: int) -> list[str]:
    return [f"routes {ENDS + bridge} {2 * bridge + way} 0-{ENDS - 1}" for bridge in range(BRIDGES)]
