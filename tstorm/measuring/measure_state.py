"""What has been measured so far: PATHS.state.json, from which --resume goes on.

It is written whole after each test, and on the disk before the next one begins. It says for which
hosts and options it is, and is of use for these alone. Raise VERSION when a reader of the version
before would misunderstand what is written.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from runtime.errors import RunError, unwritten
from runtime.json_schema import COUNT, Count, check, decoded, parse, shape_of
from runtime.rundir.held_directory import HeldDirectory
from tstorm.measuring.measured_hosts import MeasuredHost

# Round trips from what ping(8) of iputils or Busybox prints, and the words that have it measure.
#
# Single trips are printed with three digits, so that one of 210 ms is rounded to 1 ms; the smallest
# is taken from the last line, which has microseconds.

INTERVAL_S = 0.2  # the least that ordinary users may ask for everywhere
_TRIP = re.compile(r"time=(\d+(?:\.\d+)?) ms")
_LEAST = re.compile(r"min/avg/max\S* = (\d+(?:\.\d+)?)/")
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+)")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class RoundTrips:
    min_ns: Count
    p50_ns: Count
    p99_ns: Count
    sent: Count
    received: Count


def command(address: str, seconds: float) -> list[str]:
    return ["ping", "-n", "-i", str(INTERVAL_S), "-w", str(max(1, round(seconds))), address]


def read(text: str) -> RoundTrips | None:
    """None where nobody has answered, or it is no output of ping."""
    trips = sorted(float(found) for found in _TRIP.findall(text))
    least, counts = _LEAST.search(text), _COUNTS.search(text)
    if not trips or least is None or counts is None or float(least[1]) <= 0:
        return None
    half, most = (trips[min(len(trips) - 1, len(trips) * part // 100)] for part in (50, 99))
    # Rounded, the middle could be below the exact least.
    low = round(float(least[1]) * _NS_PER_MS)
    p50, p99 = (max(low, round(ms * _NS_PER_MS)) for ms in (half, most))
    return RoundTrips(low, p50, p99, int(counts[1]), int(counts[2]))


FORMAT, VERSION = "tstorm-measure-state", 2
MAX_BYTES = 1 << 26
REPETITIONS = 3
_REMEDY = "remove it, and measure anew without --resume"


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """What is to be measured. `flows`: up to so many at once; `bottlenecks`: which of the paths
    share one, too."""

    hosts: tuple[MeasuredHost, ...]
    rtt_ns: Count
    flows: Count
    seconds: Count
    bottlenecks: bool

    @property
    def flow_counts(self) -> range:
        return range(1, self.flows + 1)


@dataclass(frozen=True, slots=True)
class PingResult:
    """From `a` to `b` and back. `at`: when it began."""

    a: str
    b: str
    trips: RoundTrips
    at: str


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One test from `source` to `dest`; `took_s` is how long it had to be."""

    source: str
    dest: str
    flows: Count
    repetition: Count
    bps: Count
    steady: bool
    took_s: Count
    at: str

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.source, self.dest, self.flows, self.repetition


@dataclass(frozen=True, slots=True)
class SharedResult:
    """What so many flows on each of two directions got together, which are from `sources` to
    `dests`."""

    sources: tuple[str, ...]
    dests: tuple[str, ...]
    flows: Count
    repetition: Count
    bps: Count
    at: str

    @property
    def key(self) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        return self.sources, self.dests, self.repetition


@dataclass(slots=True)
class MeasureState:
    asked: MeasureRequest
    pings: dict[tuple[str, str], PingResult] = field(default_factory=dict)
    flows: dict[tuple[str, str, int, int], FlowResult] = field(default_factory=dict)
    shared: dict[tuple[tuple[str, ...], tuple[str, ...], int], SharedResult] = field(
        default_factory=dict
    )

    def repeated(self, source: str, dest: str, flows: int) -> Sequence[FlowResult]:
        keys = ((source, dest, flows, number) for number in range(REPETITIONS))
        return [self.flows[key] for key in keys if key in self.flows]

    def rate_bps(self, source: str, dest: str, flows: int) -> int:
        """The median of what so many flows got."""
        return round(statistics.median(one.bps for one in self.repeated(source, dest, flows)))

    def together(self, one: tuple[str, str], other: tuple[str, str]) -> Sequence[SharedResult]:
        """What flows from `one[0]` to `one[1]`, and of the other, got at the same time."""
        ends = tuple(zip(one, other, strict=True))
        keys = ((*ends, number) for number in range(REPETITIONS))
        return [self.shared[key] for key in keys if key in self.shared]

    def times(self) -> list[str]:
        """Of all tests, ascending: they are of one length."""
        every = (self.pings, self.flows, self.shared)
        return sorted(one.at for found in every for one in found.values())


@dataclass(frozen=True, slots=True)
class _Record:
    format: str
    version: Annotated[int, COUNT]
    asked: MeasureRequest
    pings: tuple[PingResult, ...]
    flows: tuple[FlowResult, ...]
    shared: tuple[SharedResult, ...]


class StateFile:
    def __init__(self, path: Path) -> None:
        """RunError."""
        self.path = path
        try:
            self._folder = HeldDirectory.hold(Path(os.path.realpath(path.parent)))
        except OSError as error:
            raise unwritten(error) from error

    def is_there(self) -> bool:
        return self._folder.has(self.path.name)

    def load(self, asked: MeasureRequest) -> MeasureState:
        """RunError if it is of another measurement."""
        place = str(self.path)
        value = parse(self._folder.read(self.path.name, MAX_BYTES), place)
        check(value, shape_of(_Record), place, _REMEDY)
        record = decoded(_Record, value, place, _REMEDY)
        if (record.format, record.version) != (FORMAT, VERSION):
            raise RunError(f"{place} has another format or version", _REMEDY)
        if others := list(_differences(record.asked, asked)):
            hint = "give what it began with, or remove it and measure anew without --resume"
            raise RunError(f"{place} was begun with another {' and '.join(others)}", hint)
        pings = {(one.a, one.b): one for one in record.pings}
        flows = {one.key: one for one in record.flows}
        return MeasureState(asked, pings, flows, {one.key: one for one in record.shared})

    def save(self, state: MeasureState) -> None:
        """RunError."""
        pings, flows = tuple(state.pings.values()), tuple(state.flows.values())
        shared = tuple(state.shared.values())
        record = _Record(FORMAT, VERSION, state.asked, pings, flows, shared)
        text = json.dumps(asdict(record), sort_keys=True, separators=(",", ":")) + "\n"
        try:
            self._folder.write(self.path.name, text.encode("ascii"), lasting=True)
        except OSError as error:
            raise unwritten(error) from error

    def remove(self) -> None:
        self._folder.remove(self.path.name)


def _differences(old: MeasureRequest, new: MeasureRequest) -> Iterator[str]:
    if old.hosts != new.hosts:
        yield "hosts file"
    for name, one, other in (
        ("--rtt", old.rtt_ns, new.rtt_ns),
        ("--flows", old.flows, new.flows),
        ("--seconds", old.seconds, new.seconds),
        ("--bottlenecks", old.bottlenecks, new.bottlenecks),
    ):
        if one != other:
            yield name
