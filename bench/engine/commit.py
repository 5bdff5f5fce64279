"""An epoch that changes 10,000 routes: time to stage it, how late it is in force, what it costs.

100 end points and 100 bridges; at each bridge every other end point is reached by one link and the
rest by another, and each epoch swaps the two. Beside that probes cross the same engine every 2 ms,
so that a pause of the engine would show in their delay.
"""

from __future__ import annotations

import subprocess
import time

from bench.engine.probing import finish, program, start
from bench.engine.wiring import Ends, Pipe, address, engine
from bench.tables import Record, Table
from tests.datapath.client import Client

ENDS = 100
BRIDGES = 100
DELAY_MS = 5
_FIRST_END, _FIRST_LINK = 2, 2  # after the pair that the probes use
_AHEAD_NS = 100_000_000

TABLES = (
    Table(
        {
            "Epoch": "{route_changes} route changes",
            "staged: median / max": "{stage_ms_median:.2f} / {stage_ms_max:.2f} ms",
            "in force late by": "{applied_ms_median:.3f} / {applied_ms_max:.3f} ms",
            "probes beside: p50 / p99 / max": (
                "{beside_p50_us:.1f} / {beside_p99_us:.1f} / {beside_max_us:.1f} µs"
            ),
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """One row: medians and maxima over several such epochs, and the probes' error meanwhile."""
    turns = 5 if quick else 30
    staged: list[int] = []
    late: list[int] = []
    with Client.start(program("pktd")) as pktd:
        ends = engine(pktd, 1, Pipe(delay_ns=DELAY_MS * 1_000_000))
        pktd.all(_network())
        pktd.all(_turn(0))
        pktd.commit()
        probes = _probes(ends, turns)
        for turn in range(1, turns + 1):
            began = time.monotonic_ns()
            pktd.all(_turn(turn % 2))
            staged.append(time.monotonic_ns() - began)
            _, asked, applied = pktd.commit(time.monotonic_ns() + _AHEAD_NS)
            late.append(applied - asked)
        error = finish(probes)
        ends.close()
    return [
        {
            "route_changes": ENDS * BRIDGES,
            "epochs": turns,
            "stage_ms_median": _middle(staged) / 1e6,
            "stage_ms_max": max(staged) / 1e6,
            "applied_ms_median": _middle(late) / 1e6,
            "applied_ms_max": max(late) / 1e6,
            "beside_p50_us": error["p50_us"],
            "beside_p99_us": error["p99_us"],
            "beside_max_us": error["max_us"],
            "beside_lost": error["lost"],
        }
    ]


def _middle(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def _probes(ends: Ends, turns: int) -> subprocess.Popen[str]:
    """One-way delay probes for as long as the epochs take."""
    count = turns * _AHEAD_NS // 2_000_000
    sender, receiver = ends.spaces[0], ends.spaces[1]
    words = ["owd", address(1), "--count", str(count), "--interval", "2ms"]
    words += ["--delay", f"{DELAY_MS}ms"]
    return start(sender, [*words, "--rx-netns", str(receiver.path), "--tx-netns", str(sender.path)])


def _network() -> list[str]:
    first_bridge = _FIRST_END + ENDS
    lines = [f"node {_FIRST_END + end} ip=10.78.0.{end + 1}" for end in range(ENDS)]
    lines += [f"node {first_bridge + bridge}" for bridge in range(BRIDGES)]
    for bridge in range(BRIDGES):
        for way in (0, 1):
            onward = first_bridge + (bridge + 1 + way) % BRIDGES
            lines.append(
                f"link {_FIRST_LINK + 2 * bridge + way} {first_bridge + bridge} {onward}"
                f" rate=1000000000 delay=1000000 jitter=0 loss=0 queue=1000000 dist=normal"
                f" seed={bridge} up=1"
            )
    return lines


def _turn(way: int) -> list[str]:
    """Even end points by one link and odd ones by the other, or the other way round."""
    lines: list[str] = []
    for bridge in range(BRIDGES):
        for parity in (0, 1):
            link = _FIRST_LINK + 2 * bridge + (parity ^ way)
            ends = range(_FIRST_END + parity, _FIRST_END + ENDS, 2)
            words = " ".join(f"{end}-{end}" for end in ends)
            lines.append(f"routes {_FIRST_END + ENDS + bridge} {link} {words}")
    return lines
