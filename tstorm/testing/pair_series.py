"""What a pair of instances met over time, from the records of a finished run.

rtt          of each probe from the first to the second, and the probe the other way that was sent
             nearest to its arrival (runtime/probing/roundtrip.py): the sum of their delays, null if
             it was lost, or if nothing came the other way near to its arrival
delay        of each probe from the first to the second; null: lost
loss         lost probes of those that were sent in a second of plan time, null if nobody knows
             whether one of them was lost
throughput   IP bytes that the network has delivered from the first to the second since the value
             before, to the end of the run; 0 of a time without samples, in which nothing moved

Times are plan time in ns. Input: probes.jsonl (docs/probes.md) and samples.jsonl.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import mul, sub

from compiler.plan.reader import Plan
from runtime.nearest_rank import nearest_rank
from runtime.probing import probe_record
from runtime.probing.roundtrip import REACH, Sent, round_trip
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.sample_reader import PAIRS, CounterGrowth, CounterSample, read_samples
from tstorm.testing.experiment_errors import ExperimentError
from tstorm.testing.request import nanoseconds

__tracebackhide__ = True  # pytest shows the test, not how this was found out
Pair = tuple[str, str]
Point = tuple[int, int | None]
_SECOND = 10**9
_UNITS = {"rtt": "ns", "delay": "ns", "loss": "ppb", "throughput": "bps"}
WHATS = tuple(_UNITS)
_COUNTER = "delivered_bytes"


@dataclass(frozen=True, slots=True, repr=False)
class Series:
    """Values by time; `unit` is ns, bps or ppb. A value is None where a probe was lost, and of
    losses where nobody knows. A rate is that from its time in `begins_ns` on."""

    what: str
    pair: Pair
    unit: str
    times_ns: tuple[int, ...]
    values: tuple[int | None, ...]
    begins_ns: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """Short, since pytest shows it several times where an assertion fails."""
        found = self.measured
        span = f" from {min(found)} to {max(found)} {self.unit}" if found else ""
        lost = f", {len(self) - len(found)} {self._gone}" if len(found) < len(self) else ""
        return f"<Series {self.what} {_told(self.pair)}: {len(self)} values{span}{lost}>"

    def between(self, start: str | int, end: str | int) -> Series:
        """The part from `start` on and before `end`, such as "5s" and "10s"; of rates the first and
        the last one are cut to it."""
        low, high = nanoseconds(start), nanoseconds(end)
        if self.begins_ns:
            return self._cut(low, high)
        first, after = bisect_left(self.times_ns, low), bisect_left(self.times_ns, high)
        part = slice(first, after)
        return replace(self, times_ns=self.times_ns[part], values=self.values[part])

    def _cut(self, low: int, high: int) -> Series:
        first, after = bisect_right(self.times_ns, low), bisect_left(self.begins_ns, high)
        part = slice(first, after)
        begins = tuple(max(at, low) for at in self.begins_ns[part])
        times = tuple(min(at, high) for at in self.times_ns[part])
        return replace(self, times_ns=times, values=self.values[part], begins_ns=begins)

    @property
    def measured(self) -> tuple[int, ...]:
        """The values without those that are None."""
        return tuple(value for value in self.values if value is not None)

    @property
    def _gone(self) -> str:
        return "open" if self.what == "loss" else "lost"

    def least(self) -> int:
        return min(self._some())

    def most(self) -> int:
        return max(self._some())

    def median(self) -> int:
        return nearest_rank(sorted(self._some()))

    def mean(self) -> int:
        """Of rates over their time."""
        found = self._some()
        if not self.begins_ns:
            return sum(found) // len(found)
        spans: list[int] = list(map(sub, self.times_ns, self.begins_ns))
        whole: int = sum(map(mul, found, spans))
        return whole // sum(spans)

    def _some(self) -> tuple[int, ...]:
        found = self.measured
        if not found:
            lost = f", {len(self)} were {self._gone}" if len(self) else ""
            raise ExperimentError(f"nothing of {self.what} {_told(self.pair)} was measured{lost}")
        return found


def read(
    directory: HeldDirectory,
    plan: Plan,
    pair: Pair,
    what: str,
    pace: int = 1,
    end_ns: int | None = None,
) -> Series:
    """RunError for damaged files. `pace`: that of the run; it came to its end at `end_ns`, plan
    time, None if to none."""
    if what not in _UNITS:
        raise ValueError(f"there is no series {what!r}; there are {', '.join(WHATS)}")
    names = [node.name for node in plan.topology.nodes if node.service >= 0]
    for name in pair:
        if name not in names:
            there = ", ".join(names[:20])
            raise ExperimentError(f"the experiment has no instance {name!r}; it has {there}")
    if what == "throughput":
        return _throughput(directory, plan, pair, pace, end_ns)
    ordered = sorted(_of_probes(directory, pair, what, pace), key=lambda point: point[0])
    times, values = tuple(at for at, _ in ordered), tuple(value for _, value in ordered)
    return Series(what, pair, _UNITS[what], times, values)


def _told(pair: Pair) -> str:
    return f"{pair[0]} -> {pair[1]}"


# -- probes ----------------------------------------------------------------------------------------


def _of_probes(directory: HeldDirectory, pair: Pair, what: str, pace: int) -> Sequence[Point]:
    found = probe_record.read(directory)
    if found is None:
        raise ExperimentError(f"{directory.path} has no probes: run without --no-probes")
    header = found.header
    back = (pair[1], pair[0])
    there = {ends: number for number, ends in enumerate(header.pairs)}
    composed = what == "rtt" and header.measure == probe_record.ONE_WAY
    if what == "delay" and header.measure != probe_record.ONE_WAY:
        raise ExperimentError(f"{directory.path} has round trips only: ask for what='rtt'")
    for ends in (pair, back) if composed else (pair,):
        if ends not in there:
            raise ExperimentError(_unprobed(ends, header))
    wanted = {there[ends]: ends for ends in (pair, back) if ends in there}
    sent: dict[Pair, list[Point]] = {pair: [], back: []}
    for probe in found.probes:
        if probe.pair in wanted:
            sent[wanted[probe.pair]].append((probe.sent_at_ns, probe.delay_ns))
    ways = [sorted(sent[ends], key=lambda point: point[0]) for ends in (pair, back)]
    if what == "loss":
        open_ns = [probe.sent_at_ns for probe in found.open if probe.pair == there[pair]]
        return _shares(ways[0], open_ns, found.untold_ns)
    if not composed:
        return ways[0]
    reach_ns = REACH * max(header.intervals_ns[there[ends]] for ends in (pair, back))
    return _round_trips(ways[0], ways[1], reach_ns, pace)


def _unprobed(ends: Pair, header: probe_record.ProbesHeader) -> str:
    probed = ", ".join(map(_told, header.pairs[:10])) or "none"
    return (
        f"{_told(ends)} was not probed: {len(header.pairs)} of {header.of} pairs were ({probed});"
        " docs/probes.md says which"
    )


def _round_trips(
    there: Sequence[Point], back: Sequence[Point], reach_ns: int, pace: int
) -> list[Point]:
    came: list[Sent] = [(at, delay) for at, delay in back if delay is not None]
    return [
        (at, None if delay is None else round_trip((at, delay), came, reach_ns, pace))
        for at, delay in there
    ]


def _shares(
    sent: Sequence[Point], open_ns: Sequence[int], untold_ns: int | None
) -> list[tuple[int, int | None]]:
    """Lost ones of each second in which there were any, in parts per billion; None where some are
    open, or where lost ones are told nowhere, from `untold_ns` on."""
    counts: dict[int, list[int]] = {}
    for at, delay in sent:
        count = counts.setdefault(at // _SECOND, [0, 0])
        count[0] += 1
        count[1] += delay is None
    told_until = math.inf if untold_ns is None else untold_ns // _SECOND
    unsure = {at // _SECOND for at in open_ns} | {at for at in counts if at >= told_until}
    known = [(at, lost * 10**9 // all_) for at, (all_, lost) in counts.items() if at not in unsure]
    return [(at * _SECOND, share) for at, share in [*known, *((at, None) for at in unsure)]]


# -- counters --------------------------------------------------------------------------------------


def _throughput(
    directory: HeldDirectory, plan: Plan, pair: Pair, pace: int, end_ns: int | None
) -> Series:
    """At each sample of the host that counts the pair, and where a time without samples ends.
    RunError for a line without its times."""
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    ends = numbers[pair[0]], numbers[pair[1]]
    told: dict[str | None, list[CounterSample]] = {}
    counter, host = CounterGrowth(), None
    for sample in read_samples(directory, strict=True):
        told.setdefault(sample.host, []).append(sample)
        for _, row in sample.rows(PAIRS, {ends}):
            if _COUNTER in row and host in (None, sample.host):
                host = sample.host  # over hosts the sender's
                counter.add(sample.since_ns, sample.until_ns, row[_COUNTER])
    begins, times, values = [0], list[int](), list[int]()
    for sample in told.get(host, ()):
        since_ns = sample.plan_since_ns(pace)
        bps = counter.bps(sample.since_ns, sample.until_ns)
        for at_ns, value in ((since_ns, 0), (sample.at_ns, bps)):
            if at_ns > begins[-1]:
                times.append(at_ns)
                values.append(value)
                begins.append(at_ns)
    if times and end_ns is not None and end_ns > times[-1]:
        times.append(end_ns)
        values.append(0)
    begun = tuple(begins[: len(times)])
    return Series("throughput", pair, _UNITS["throughput"], tuple(times), tuple(values), begun)
