"""Reads the experiment of `hosts_scenes.reaction_text`: how fast do two flows get their shares?

A round begins with the first datagram of the second flow that arrives, and is settled from the
first interval of 10 ms on after which both flows are within 15 % of their share (a packet is 5 % of
what an interval holds) for 100 ms on end.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench.errors import BenchError
from bench.hosts_scenes import REACTION_ROUNDS, REACTION_SHARE
from bench.hosts_udp import INTERVAL_NS
from bench.probing import Record
from runtime.summary import percentile

TOLERANCE = 0.15
STEADY = 10  # intervals
WANTED = REACTION_SHARE / 8 * INTERVAL_NS / 1e9  # bytes in an interval
QUIET_NS = 200_000_000  # without datagrams: the next one begins a round

Arrivals = list[tuple[int, int]]


def read(run: Path) -> Record:
    """Percentiles of the reaction in ms over all rounds. BenchError if rounds are missing."""
    first, second = (_arrivals(run / "logs" / f"sv{number}.0.log") for number in (1, 2))
    times = [_settled(start, first, second) for start in _rounds(second)]
    found = sorted(round(time / 1e6) for time in times if time is not None)
    if len(found) < REACTION_ROUNDS * 0.9:
        raise BenchError(f"{run.name}: {len(found)} of {REACTION_ROUNDS} rounds settled")
    return {
        "rounds": REACTION_ROUNDS,
        "settled": len(found),
        "median_ms": percentile(found, 50),
        "p99_ms": percentile(found, 99),
        "max_ms": found[-1],
    }


def _arrivals(log: Path) -> Arrivals:
    """(start of the interval, bytes) of every interval in which something arrived."""
    records = (json.loads(line) for line in log.read_text().splitlines() if line.endswith("}"))
    return [(record["t_ns"] - INTERVAL_NS, record["bytes"]) for record in records]


def _rounds(second: Arrivals) -> list[int]:
    """When the second flow began each time."""
    times = [start for start, _ in second]
    return [at for before, at in zip([0, *times], times, strict=False) if at - before > QUIET_NS]


def _settled(start: int, first: Arrivals, second: Arrivals) -> int | None:
    """ns from `start` to the steady intervals."""
    good = {at for at, size in first if abs(size - WANTED) <= WANTED * TOLERANCE}
    also = [at for at, size in second if abs(size - WANTED) <= WANTED * TOLERANCE]
    # The two receivers' intervals do not begin at the same moments.
    both = [at for at in also if start <= at < start + 450_000_000 and _near(at, good)]
    for begin, end in zip(both, both[STEADY - 1 :], strict=False):
        if end - begin == (STEADY - 1) * INTERVAL_NS:
            return begin - start
    return None


def _near(at: int, good: set[int]) -> bool:
    return any(abs(other - at) < INTERVAL_NS for other in good)
