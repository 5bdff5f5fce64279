"""Round trips out of probes: how long a packet and its answer would have been under way.

Input: the probes of a run (runtime/probing/probe_record.py). Output: for each two instances the
round trips, and for each ordered pair how many of its probes were lost.
Where probes go one way, round trips are composed (runtime/probing/roundtrip.py). Moments are plan
time, which goes by `pace` times as fast as delays and intervals.
Where probes measure round trips themselves, these are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from runtime.probing.probe_record import (
    ROUND_TRIP,
    Probe,
    ProbesHeader,
    RecordedProbes,
)
from runtime.probing.roundtrip import REACH, Sent, round_trip

Pair = tuple[str, str]
_Arrived = list[Sent]


@dataclass(slots=True)
class Probed:
    """`round_trips` by two instances in the order of their names; `lost` is (lost, of how many);
    `last_ns`: when the last probe was sent, plan time."""

    round_trips: dict[Pair, list[int]] = field(default_factory=dict)
    lost: dict[Pair, tuple[int, int]] = field(default_factory=dict)
    last_ns: int = 0


def gather(recorded: RecordedProbes, pace: int) -> Probed:
    header = recorded.header
    arrived: dict[int, _Arrived] = {number: [] for number in range(len(header.pairs))}
    found = Probed()
    for probe in recorded.probes:
        _count(found, header.pairs[probe.pair], probe)
        found.last_ns = max(found.last_ns, probe.sent_at_ns)
        if probe.delay_ns is not None:
            arrived[probe.pair].append((probe.sent_at_ns, probe.delay_ns))
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
