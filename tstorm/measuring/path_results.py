"""What came of a measurement: each pair's round trip, and each direction's rates by flows.

A rate is the median of its repetitions; its spread is how far the largest is above the smallest, in
millionths of the median.

As JSON (PATHS.json; raise VERSION when a reader of the version before would misunderstand it):
    {"format": "tstorm-paths", "version": 1, "hosts": ["h0", …], "paths": [
      {"a": "h0", "b": "h1", "at": "2026-…Z", "rtt_ns": …, "rtt_p50_ns": …, "rtt_p99_ns": …,
       "pings": [sent, answered], "up": {"abw": [[flows, bps, spread_ppm], …], "at": "…Z",
       "unsteady": [flows, …]}, "down": …}, …]}
`up` is from a to b. `unsteady`: with so many flows slow start did not end within a minute.
Bottlenecks that paths share are not measured, so there is nothing about them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from tstorm.measuring.measure_state import MeasureRequest, MeasureState, PingResult

FORMAT, VERSION = "tstorm-paths", 1
_PPM = 1_000_000


class RateRow(NamedTuple):
    flows: int
    bps: int
    spread_ppm: int


class WayResults(NamedTuple):
    """Of one direction, of which the first test began at `at`."""

    rows: tuple[RateRow, ...]
    unsteady: tuple[int, ...]
    at: str


class PairResults(NamedTuple):
    ping: PingResult
    up: WayResults
    down: WayResults


def results(state: MeasureState) -> Iterator[PairResults]:
    """Of a measurement that is complete, in the order of the hosts."""
    names = [host.name for host in state.asked.hosts]
    for number, a in enumerate(names):
        for b in names[number + 1 :]:
            yield PairResults(state.pings[a, b], _way(state, a, b), _way(state, b, a))


def to_json(asked: MeasureRequest, pairs: list[PairResults]) -> dict[str, Any]:
    hosts = [host.name for host in asked.hosts]
    paths = [_pair_json(pair) for pair in pairs]
    return {"format": FORMAT, "version": VERSION, "hosts": hosts, "paths": paths}


def _pair_json(pair: PairResults) -> dict[str, Any]:
    ping = pair.ping
    return {
        "a": ping.a,
        "b": ping.b,
        "at": ping.at,
        "rtt_ns": ping.trips.min_ns,
        "rtt_p50_ns": ping.trips.p50_ns,
        "rtt_p99_ns": ping.trips.p99_ns,
        "pings": [ping.trips.sent, ping.trips.received],
        "up": _way_json(pair.up),
        "down": _way_json(pair.down),
    }


def _way_json(way: WayResults) -> dict[str, Any]:
    return {"abw": [list(row) for row in way.rows], "unsteady": list(way.unsteady), "at": way.at}


def _way(state: MeasureState, source: str, dest: str) -> WayResults:
    rows, unsteady, times = [], [], []
    for flows in state.asked.flow_counts:
        found = state.repeated(source, dest, flows)
        rates = [one.bps for one in found]
        middle = round(statistics.median(rates))
        rows.append(RateRow(flows, middle, (max(rates) - min(rates)) * _PPM // middle))
        unsteady += [flows] if not all(one.steady for one in found) else []
        times += [one.at for one in found]
    return WayResults(tuple(rows), tuple(unsteady), min(times))
