"""How fast do two flows get their shares when one of them has just begun?

A round begins with the first datagram of the second flow that arrives after a pause. It is settled
from the first moment on from which no 50 ms of the next 150 bring either flow more than 110 % of
its share, and their median brings both at least 90 % (a packet is 1 % of it; a mean of 50 ms may be
that near up to 5 ms too early). Less for a moment is no fault of sharing: somebody else had the
processor. Times are when the kernel took datagrams in at the receivers, after the path's one-way
delay, which is the same for both flows. A round that does not settle counts with the whole pulse.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from bench.errors import BenchError
from bench.hosts import udp
from bench.hosts.carry_out import carry_out
from bench.hosts.udp import INTERVAL_NS, PERIOD_S, PULSE_S
from bench.tables import Record, Table

REACTION_ROUNDS = 100
REACTION_SHARE = 25_000_000  # of either of two flows with equal round trips over 50 Mb/s
BOUND_MS = 100
TOLERANCE = 0.1
WINDOW_NS = 50_000_000
STEADY_NS = 150_000_000  # of settled windows
WANTED = REACTION_SHARE / 8 * WINDOW_NS / 1e9  # bytes in a window
QUIET_NS = 200_000_000  # without datagrams: the next one begins a round
PULSE_NS = round(PULSE_S * 1e9)


def text(python: str, rounds: int = REACTION_ROUNDS) -> str:
    """One flow that stays and one that comes and goes, both above their share.

    Datagrams at a constant rate, so that nothing but the emulation decides who gets how much.
    """
    lines = ["seed 3", "bridges s1 s2", "link s1--s2 latency=10ms up=50Mb symmetric"]
    program = f"{python} {udp.__file__}"
    for number, how in ((1, "send sv1.0 60"), (2, f"pulse sv2.0 60 {rounds}")):
        lines += [
            f'service sv{number} img=x exec="{program} count"',
            f'service c{number} img=x exec="{program} {how}"',
            f"link c{number}--s1 latency=5ms up=100Mb symmetric",
            f"link sv{number}--s2 latency=5ms up=100Mb symmetric",
        ]
    lines += ["at 0s sv1 join", "at 0s sv2 join", "at 1s c1 join", "at 3s c2 join"]
    end = 6 + math.ceil(rounds * (2 * PULSE_S + PERIOD_S) * 1.1)  # a busy machine is slower
    return "\n".join([*lines, f"at {end}s quit", ""])


class Arrivals:
    """Of one flow: bytes that arrived by when."""

    def __init__(self, log: Path) -> None:
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
        self.times = [record["t_ns"] for record in lines]
        self._sums = [0, *accumulate(record["bytes"] for record in lines)]

    def window(self, begin: int) -> float:
        """What the window from `begin` on brings, as a part of what it should."""
        first, after = bisect_left(self.times, begin), bisect_left(self.times, begin + WINDOW_NS)
        return (self._sums[after] - self._sums[first]) / WANTED

    def steady(self, begin: int) -> bool:
        last = begin + STEADY_NS - WINDOW_NS
        found = [self.window(at) for at in range(begin, last + 1, WINDOW_NS // 5)]
        return max(found) <= 1 + TOLERANCE and statistics.median(found) >= 1 - TOLERANCE


TABLES = (
    Table(
        {
            "Reaction to a new flow": "{hosts} hosts",
            "settled": "{settled} of {rounds}",
            "median": "{median_ms} ms",
            "p99": "{p99_ms} ms",
            "max": "{max_ms} ms",
        }
    ),
)


def missed(rows: Sequence[Record]) -> list[str]:
    return [
        f"reaction over {row['hosts']} hosts: p99 {row['p99_ms']} ms"
        for row in rows
        if row["p99_ms"] > BOUND_MS
    ]


def measure(folder: Path) -> list[Record]:
    source = folder / "reaction.tdl"
    source.write_text(text(sys.executable))
    rows = []
    for hosts in (1, 2, 4):
        rows.append(
            {"hosts": hosts, **read(carry_out(source, folder / f"reaction-{hosts}", hosts))}
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def read(run: Path, rounds: int = REACTION_ROUNDS) -> Record:
    """Percentiles of the reaction in ms over all rounds. BenchError if rounds are missing."""
    first, second = (Arrivals(run / "logs" / f"sv{number}.0.log") for number in (1, 2))
    times = [_settled(start, first, second) for start in _rounds(second)]
    if len(times) < rounds:
        raise BenchError(f"{run.name}: {len(times)} of {rounds} rounds were seen")
    found = sorted(round((PULSE_NS if time is None else time) / 1e6) for time in times)
    return {
        "rounds": len(found),
        "settled": sum(time is not None for time in times),
        "median_ms": found[len(found) // 2],
        "p99_ms": found[len(found) * 99 // 100],
        "max_ms": found[-1],
    }


def _rounds(second: Arrivals) -> list[int]:
    """When the second flow began each time."""
    times = second.times
    return [at for before, at in zip([0, *times], times, strict=False) if at - before > QUIET_NS]


def _settled(start: int, first: Arrivals, second: Arrivals) -> int | None:
    """ns from `start` to the steady windows."""
    for begin in range(start, start + PULSE_NS - STEADY_NS, INTERVAL_NS):
        if first.steady(begin) and second.steady(begin):
            return begin - start
    return None
