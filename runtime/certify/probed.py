"""Probes of probes.jsonl, each in the stretch of its pair in which it was under way.

One that was under way when something changed for its pair says nothing of either side and is left
out. Probes that met the same planned network are a group, in whatever stretch they were sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.certify.expected import Expected, Queue, Wait, expected, queues, wait, ways
from runtime.certify.planned import Pair, Planned, Stretch
from runtime.certify.traffic import Traffic
from runtime.errors import RunError
from runtime.foreign import REMEDY
from runtime.rundir.runfiles import PROBES
from runtime.schedule import PlanClock

GUARD_NS = 30_000_000  # from a change until everything is taken to be in force
ROUND_TRIP = "round-trip"


@dataclass(frozen=True, slots=True)
class Probe:
    sent_ns: int
    delay_ns: int | None  # None: lost
    wait: Wait


@dataclass(slots=True)
class Visit:
    """A stretch of a pair and the probes that were under way in it alone."""

    pair: int  # position in the header
    stretch: Stretch
    expected: Expected | None  # None: no path
    queues: tuple[Queue, ...]  # on its way
    probes: list[Probe] = field(default_factory=list)


class Header:
    """The first line of probes.jsonl. RunError for instances that are none of the plan's."""

    def __init__(self, record: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
        self.names: list[tuple[str, str]] = []
        self.pairs: list[Pair] = []
        for ends in record["pairs"]:
            if len(ends) != 2 or ends[0] == ends[1] or not set(ends) <= numbers.keys():
                raise RunError(
                    f"{PROBES} has a pair that is none of this plan: {ends!r:.80}", REMEDY
                )
            self.names.append((ends[0], ends[1]))
            self.pairs.append((numbers[ends[0]], numbers[ends[1]]))
        self.measure = str(record["measure"])
        self.both = self.measure == ROUND_TRIP
        self.of = int(record["of"])  # pairs of instances of the run
        self.not_probed = {(ends[0], ends[1]) for ends in record.get("not_probed", ())}
        self.intervals_ns: list[int] = list(record["intervals_ns"])
        self.comparable = self.both or record["clock"] == "one"

    def name(self, pair: int) -> str:
        return "{} to {}".format(*self.names[pair])


def visits(
    header: Header,
    records: Iterable[Mapping[str, Any]],
    planned: Planned,
    traffic: Traffic,
    clock: PlanClock,
) -> list[Visit]:
    """By pair and time. RunError for a pair that the header does not have."""
    found: list[list[Visit]] = []
    for number, pair in enumerate(header.pairs):
        rows = []
        for stretch in planned.stretches[pair]:
            crossed = ways(stretch, both=header.both)
            there = expected(crossed) if crossed else None
            rows.append(Visit(number, stretch, there, queues(crossed)))
        found.append(rows)
    begins = [[visit.stretch.begin_ns for visit in rows] for rows in found]
    for number, sent, delay in _rows(records, len(header.pairs)):
        sent_ns = clock.due(sent)
        position = bisect_right(begins[number], sent_ns) - 1
        if position >= 0:
            _place(found[number][position], sent_ns, delay, traffic)
    whole = [visit for rows in found for visit in rows]
    for visit in whole:  # the lost ones are told last
        visit.probes.sort(key=lambda probe: probe.sent_ns)
    return whole


def _rows(
    records: Iterable[Mapping[str, Any]], pairs: int
) -> Iterator[tuple[int, int, int | None]]:
    for record in records:
        for row in record["probes"]:
            if row[0] >= pairs:
                raise RunError(f"{PROBES} has a probe that is none: {row!r:.80}", REMEDY)
            yield row[0], row[1], row[2]


def _place(visit: Visit, sent_ns: int, delay_ns: int | None, traffic: Traffic) -> None:
    stretch, there = visit.stretch, visit.expected
    planned_ns = there.delay_ns if there else 0
    until_ns = sent_ns + (planned_ns if delay_ns is None else delay_ns)
    if sent_ns < stretch.begin_ns + GUARD_NS or until_ns + GUARD_NS > stretch.end_ns:
        return
    visit.probes.append(Probe(sent_ns, delay_ns, wait(traffic, visit.queues, sent_ns, until_ns)))


def grouped(found: Sequence[Visit]) -> list[list[Visit]]:
    """Of one pair each, with the same planned network."""
    groups: dict[tuple[int, Expected | None, bool], list[Visit]] = {}
    for visit in found:
        key = visit.pair, visit.expected, visit.stretch.ends_up
        groups.setdefault(key, []).append(visit)
    return list(groups.values())
