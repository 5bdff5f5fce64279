"""What a finished run says: planned properties over time, and what tprobe measured in it.

Plan time is seconds since the start of the timeline. tprobe's lines carry monotonic times; the
manifest of the run says at which monotonic time it started.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan.paths.path import PathProperties, path
from compiler.plan.reader import Plan

NS_PER_S = 1_000_000_000
_START = "start_monotonic_ns"


class IncompleteRunError(Exception):
    """A run's record lacks what is asked of it; the text says what."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Planned properties of one pair, constant over [start_s, end_s)."""

    start_s: float
    end_s: float
    reachable: bool
    rtt_ms: float
    rate_bps: int


class Planned:
    """The planned properties of a pair of instances over the whole timeline."""

    def __init__(self, plan: Plan, src: str, dst: str) -> None:
        names = [node.name for node in plan.topology.nodes]
        ends = names.index(src), names.index(dst)
        self.stretches: list[Stretch] = []
        for epoch in plan.epochs:
            found = path(plan.state_at(epoch.at_ns), *ends)
            self._add(epoch.at_ns / NS_PER_S, found)
        self._close(plan.end_ns / NS_PER_S)
        self._starts = [stretch.start_s for stretch in self.stretches]

    def _add(self, at_s: float, found: PathProperties) -> None:
        back = found.rtt_ns is not None
        new = Stretch(
            at_s,
            at_s,
            back,
            (found.rtt_ns or 0) / 1e6,
            found.totals.rate_bps if found.totals else 0,
        )
        if self.stretches:
            last = self.stretches[-1]
            if (last.reachable, last.rtt_ms, last.rate_bps) == (back, new.rtt_ms, new.rate_bps):
                return
            self._close(at_s)
        self.stretches.append(new)

    def _close(self, at_s: float) -> None:
        last = self.stretches[-1]
        self.stretches[-1] = Stretch(last.start_s, at_s, last.reachable, last.rtt_ms, last.rate_bps)

    def within(self, start_s: float, end_s: float) -> Iterator[Stretch]:
        """The stretches that meet [start_s, end_s), cut to it."""
        first = max(bisect.bisect_right(self._starts, start_s) - 1, 0)
        for stretch in self.stretches[first:]:
            low, high = max(stretch.start_s, start_s), min(stretch.end_s, end_s)
            if low < high:
                yield Stretch(low, high, stretch.reachable, stretch.rtt_ms, stretch.rate_bps)

    def at(self, at_s: float) -> Stretch:
        return self.stretches[max(bisect.bisect_right(self._starts, at_s) - 1, 0)]


@dataclass(frozen=True, slots=True)
class Probe:
    """One round trip: when it was sent, and how long it took (None = lost)."""

    sent_s: float
    rtt_ms: float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes that one line of `tprobe stream` accounts for, as IP packets of 1500 bytes."""

    start_s: float
    end_s: float
    ip_bps: float


class RunLog:
    """The logs of one run directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        manifest = json.loads((directory / "manifest.json").read_text())
        self._start_ns = _find(manifest, _START)

    def reports(self, instance: str) -> Iterator[dict[str, Any]]:
        """Every whole JSON line; a program that is killed may leave a torn one behind."""
        for line in (self.directory / "logs" / f"{instance}.log").read_text().splitlines():
            if not line.startswith("{"):
                continue
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if "t_ns" in record:
                record["t_s"] = (record["t_ns"] - self._start_ns) / NS_PER_S
                yield record

    def probes(self, instance: str) -> list[Probe]:
        return [
            Probe(line["t_s"], None if line.get("lost") else line["rtt_us"] / 1e3)
            for line in self.reports(instance)
        ]

    def intervals(self, instance: str, mtu_bytes: int = 1500) -> list[Interval]:
        found: list[Interval] = []
        for line in self.reports(instance):
            factor = mtu_bytes / line["mss"] if line["mss"] > 1000 else 1.0
            end = line["t_s"]
            found.append(Interval(end - line["seconds"], end, line["bps"] * factor))
        return found


def _find(manifest: dict[str, Any], key: str) -> int:
    """The value of `key` at any depth."""
    for name, value in manifest.items():
        if name == key:
            return int(value)
        if isinstance(value, dict):
            try:
                return _find(value, key)
            except IncompleteRunError:
                continue
    raise IncompleteRunError(f"the run's manifest.json has no {key}")
