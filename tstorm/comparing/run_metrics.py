"""What a run has measured that runs are compared by. Input: a run directory, as foreign data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.plan.reader import read_plan
from runtime.errors import RunError
from runtime.judge.verdict import UNKNOWN, VALID
from runtime.nearest_rank import MEDIAN, P99, nearest_rank
from runtime.options import COMPLETED, RunOptions, decode
from runtime.probing import probe_record
from runtime.probing.probe_record import ROUND_TRIP, Probe, ProbesHeader, RecordedProbes
from runtime.probing.roundtrip import REACH, Sent, round_trip
from runtime.rundir.eventlog import read_events
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import EVENTS, MANIFEST, PLAN
from runtime.schedule import PlanClock, Schedule
from tstorm.comparing.metrics import Metric, MetricKind

_UNITS = ("ns", "bps", "ppb", "")
_PASSED, _FAILED, _NOT_MEASURED = "passed", "failed", "not_measured"
_HAPPENED = ("log", "run")  # expectations that come true at a moment


@dataclass(slots=True)
class RunMetrics:
    """Of one run. `values` has a figure for each metric; of some there is more: `samples` are what
    a quantile is of, `counts` what a share is of (so many, of how many), and beside that are `open`
    ones, of which nobody knows whether they were lost. `ended_ns` is plan time:
    where its timeline ended, or how far it came; None: nobody knows. `settings`: by their sysctl
    names, what its instances took from the machine; nothing: it does not say."""

    verdict: str
    seed: int
    outcome: str = COMPLETED
    ended_ns: int | None = None
    values: dict[Metric, float] = field(default_factory=dict)
    samples: dict[Metric, list[int]] = field(default_factory=dict)
    counts: dict[Metric, tuple[int, int]] = field(default_factory=dict)
    open: dict[Metric, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end: else it has figures of a part of the timeline."""
        return self.outcome == COMPLETED


def of(directory: RunDirectory) -> RunMetrics:
    """RunError if it has no summary, or something is damaged; PlanError if its plan is."""
    manifest, summary = directory.manifest(), directory.summary()
    if not summary or "outcome" not in manifest:
        raise RunError(f"the run in {directory.path} has not ended", "run it again")
    verdict = summary.get("verdict", {}).get("state", UNKNOWN)
    found = RunMetrics(verdict, int(manifest["seed"]), manifest["outcome"])
    found.settings.update(_settings(manifest.get("instance_network")))
    options = decode(manifest["options"], f"{directory / MANIFEST}: options")
    found.values[Metric(MetricKind.VERDICT)] = float(verdict != VALID)
    for failure in summary.get("failures", ()):
        found.values[Metric(MetricKind.PROGRAM, failure["target"])] = 1.0
    found.values.update(_expectations(summary))
    for one in summary.get("figures", ()):
        if one["value"] is not None:
            own = Metric(MetricKind.OWN, f"{one['name']} of {one['instance']}")
            found.values[own] = float(one["value"])
    last_ns = _probes(directory, found, options.pace)
    clock = PlanClock(options.start_at_ns, options.pace)
    lasted_ns = _lasted_ns(directory, options, clock.due(last_ns), whole=found.is_whole)
    if lasted_ns > 0:
        found.ended_ns = clock.plan_time(lasted_ns)
        found.values.update(_throughput(summary, lasted_ns))
    return found


# What a machine can do and how much memory it has: nothing that packets meet.
_OF_THE_MACHINE = {
    *("net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"),
    *("net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.ipv4.ipfrag_high_thresh"),
}


def _settings(recorded: object) -> dict[str, str]:
    if not isinstance(recorded, dict):
        return {}
    return {str(k): str(v) for k, v in recorded.items() if k not in _OF_THE_MACHINE}


def _expectations(summary: Mapping[str, Any]) -> Iterator[tuple[Metric, float]]:
    """A text that stands twice, or for several pairs, failed if one of them did."""
    rows = summary.get("expectations", [])
    failed: dict[str, bool] = {}
    for row in rows:
        if row["state"] != _NOT_MEASURED:
            failed[row["text"]] = failed.get(row["text"], False) or row["state"] == _FAILED
        if row["figure"] is not None and row["unit"] in _UNITS:
            yield Metric(MetricKind.FIGURE, row["text"], row["unit"]), float(row["figure"])
        if row["kind"] in _HAPPENED and row["state"] == _PASSED and row["at_ns"] is not None:
            yield Metric(MetricKind.MOMENT, row["text"], "ns"), float(row["at_ns"])
    yield from ((Metric(MetricKind.EXPECTATION, text), float(bad)) for text, bad in failed.items())


def _lasted_ns(directory: RunDirectory, options: RunOptions, last_ns: int, *, whole: bool) -> int:
    """How long its timeline went on, of the run's own time: to the `quit` of the plan or of its
    programs (`quit when`), else to the planned end. Of a run that did not come to that, to what it
    has recorded last before its programs were ended, or to `last_ns`."""
    for row in read_events(directory) if directory.has(EVENTS) else ():
        if row.get("kind") == "quit":
            return int(row["applied_ns"])
        if not row.get("asked"):
            last_ns = max(last_ns, row.get("applied_ns", 0))
    if not whole:
        return last_ns
    return Schedule(read_plan(directory.path / PLAN, lazy=True), options).end_due_ns


def _throughput(summary: Mapping[str, Any], lasted_ns: int) -> Iterator[tuple[Metric, float]]:
    """What arrived of each pair, over the whole run."""
    for row in summary["pairs"]:
        if "delivered_bytes" in row:
            metric = Metric(MetricKind.THROUGHPUT, f"{row['src']} -> {row['dst']}", "bps")
            yield metric, row["delivered_bytes"] * 8 * 10**9 / lasted_ns


def _probes(directory: RunDirectory, found: RunMetrics, pace: int) -> int:
    """When the last one was sent, plan time; 0 if there is none."""
    recorded = probe_record.read(directory)
    if recorded is None:
        return 0
    probed = gather(recorded, pace)
    for (one, other), trips in probed.round_trips.items():
        ordered = sorted(trips)
        for kind, rank in ((MetricKind.RTT_MEDIAN, MEDIAN), (MetricKind.RTT_P99, P99)):
            metric = Metric(kind, f"{one} <-> {other}", "ns")
            found.values[metric] = nearest_rank(ordered, rank)
            found.samples[metric] = ordered
    for (source, target), (lost, whole) in probed.lost.items():
        metric = Metric(MetricKind.LOSS, f"{source} -> {target}", "ppb")
        found.values[metric] = lost * 10**9 / whole
        found.counts[metric] = (lost, whole)
        if open_ := probed.open[source, target]:
            found.open[metric] = open_
    return probed.last_ns


# Round trips out of probes: how long a packet and its answer would have been under way.
#
# Input: the probes of a run (runtime/probing/probe_record.py). Output: for each two instances the
# round trips, and for each ordered pair how many of its probes were lost.
# Where probes go one way, round trips are composed (runtime/probing/roundtrip.py). Moments are plan
# time, which goes by `pace` times as fast as delays and intervals.
# Where probes measure round trips themselves, these are taken as they are.

Pair = tuple[str, str]
_Arrived = list[Sent]


@dataclass(slots=True)
class Probed:
    """`round_trips` by two instances in the order of their names; `lost` is (lost, of how many),
    beside which are `open` ones; `last_ns`: when the last probe was sent, plan time."""

    round_trips: dict[Pair, list[int]] = field(default_factory=dict)
    lost: dict[Pair, tuple[int, int]] = field(default_factory=dict)
    open: Counter[Pair] = field(default_factory=Counter)
    last_ns: int = 0


def gather(recorded: RecordedProbes, pace: int) -> Probed:
    header = recorded.header
    arrived: dict[int, _Arrived] = {number: [] for number in range(len(header.pairs))}
    found, sent_ns = Probed(), {number: list[int]() for number in arrived}
    for probe in recorded.probes:
        sent_ns[probe.pair].append(probe.sent_at_ns)
        _count(found, header.pairs[probe.pair], probe)
        found.last_ns = max(found.last_ns, probe.sent_at_ns)
        if probe.delay_ns is not None:
            arrived[probe.pair].append((probe.sent_at_ns, probe.delay_ns))
    _count_open(found, recorded, sent_ns, pace)
    for sent in arrived.values():
        sent.sort()
    if header.measure == ROUND_TRIP:
        for number, pair in enumerate(header.pairs):
            mine = found.round_trips.setdefault(_key(pair), [])
            mine += [delay_ns for _, delay_ns in arrived[number]]
    else:
        found.round_trips.update(_joined(header, arrived, pace))
    found.round_trips = {pair: trips for pair, trips in found.round_trips.items() if trips}
    return found


def _count(found: Probed, pair: Pair, probe: Probe) -> None:
    lost, whole = found.lost.get(pair, (0, 0))
    found.lost[pair] = lost + (probe.delay_ns is None), whole + 1


def _count_open(
    found: Probed, recorded: RecordedProbes, sent_ns: Mapping[int, Sequence[int]], pace: int
) -> None:
    """Where lost ones are told nowhere, how many are missing is reckoned by the interval."""
    header = recorded.header
    found.open.update(header.pairs[one.pair] for one in recorded.open)
    if recorded.untold_ns is None:
        return
    since_ns = recorded.untold_ns
    for number, pair in enumerate(header.pairs):
        known = sum(at > since_ns for at in sent_ns[number])
        due = max(found.last_ns - since_ns, 0) // max(header.intervals_ns[number] * pace, 1)
        found.open[pair] = max(found.open[pair], due - known)


def _key(pair: Pair) -> Pair:
    return (pair[0], pair[1]) if pair[0] <= pair[1] else (pair[1], pair[0])


def _joined(
    header: ProbesHeader, arrived: Mapping[int, _Arrived], pace: int
) -> Iterable[tuple[Pair, list[int]]]:
    numbers = {pair: number for number, pair in enumerate(header.pairs)}
    for pair, number in numbers.items():
        back = numbers.get((pair[1], pair[0]))
        if back is not None and pair == _key(pair):
            reach_ns = REACH * max(header.intervals_ns[number], header.intervals_ns[back])
            yield pair, list(_trips(arrived[number], arrived[back], reach_ns, pace))


def _trips(there: _Arrived, back: _Arrived, reach_ns: int, pace: int) -> Iterator[int]:
    found = (round_trip(sent, back, reach_ns, pace) for sent in there)
    return (one for one in found if one is not None)
