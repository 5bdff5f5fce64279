"""What a run delivered from instance to instance over time, from the counters in samples.jsonl.

Rates are of IP bytes that left the emulation, so they do not depend on what a program prints when.
"""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

from compiler.plan.reader import read_plan
from tests.runs.runlog import NS_PER_S, IncompleteRunError

WINDOW_S = 0.5  # some round trips, and several of the samples of 100 ms

Ends = tuple[str, str]


class Delivered:
    """Counters of all pairs of a run, by the names of source and destination. Times in s since its
    start, on its own clock (a paced run is shorter than its plan)."""

    def __init__(self, run: Path, counter: str = "delivered_bytes") -> None:
        """`counter`: another column that counts bytes (`offered_bytes`)."""
        self.run = run
        nodes = [node.name for node in read_plan(run / "plan").topology.nodes]
        self._times: dict[Ends, list[float]] = {}
        self._bytes: dict[Ends, list[int]] = {}
        with (run / "samples.jsonl").open() as lines:
            header, *samples = map(json.loads, lines)
        column = header["columns"]["pairs"].index(counter)
        for sample in samples:
            for row in sample["pairs"]:
                ends = nodes[row[0]], nodes[row[1]]
                self._times.setdefault(ends, []).append(sample["elapsed_ns"] / NS_PER_S)
                self._bytes.setdefault(ends, []).append(row[column])

    def pairs(self) -> list[Ends]:
        """All that ever sent something."""
        return sorted(self._times)

    def mean_bps(self, ends: Ends, low_s: float, high_s: float) -> float:
        """Over the samples within. IncompleteRunError if they do not cover four fifths of it."""
        times, counts = self._times.get(ends, []), self._bytes.get(ends, [])
        first, after = bisect_left(times, low_s), bisect_left(times, high_s)
        covered = times[after - 1] - times[first] if after - first > 1 else 0.0
        if covered < 0.8 * (high_s - low_s):
            raise IncompleteRunError(
                f"{self.run.name}: {ends[0]} to {ends[1]} was counted for {covered:.1f} s only"
            )
        return (counts[after - 1] - counts[first]) * 8 / covered

    def slope_bps(self, ends: Ends, low_s: float, high_s: float) -> float:
        """Of the straight line through the samples within (least squares): at rates of some packets
        a second it does not matter whether the first and the last one have just come."""
        times, counts = self._times.get(ends, []), self._bytes.get(ends, [])
        first, after = bisect_left(times, low_s), bisect_left(times, high_s)
        if after - first < 3 or times[after - 1] - times[first] < 0.8 * (high_s - low_s):
            raise IncompleteRunError(f"{self.run.name}: {ends[0]} to {ends[1]} has too few samples")
        return 8 * statistics.linear_regression(times[first:after], counts[first:after]).slope

    def median_bps(self, ends: Ends, low_s: float, high_s: float) -> float:
        """Of the rates over windows of half a second: moments in which the machine did something
        else do not count. A window in which nothing was counted has the rate 0."""
        times, counts = self._times.get(ends, []), self._bytes.get(ends, [])
        marks = [low_s + WINDOW_S * n for n in range(int((high_s - low_s) / WINDOW_S) + 1)]
        if len(marks) < 3:
            raise IncompleteRunError(f"{high_s - low_s:.1f} s are too short for a median")
        found = [bisect_left(times, mark) for mark in marks]
        rates = [
            (counts[after] - counts[first]) * 8 / (times[after] - times[first])
            if first < after < len(times)
            else 0.0
            for first, after in pairwise(found)
        ]
        return statistics.median(rates)
