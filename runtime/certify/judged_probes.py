"""Probes of probes.jsonl, each in the stretch of its pair in which it was under way.

One that was under way when something changed for its pair says nothing of either side and is left
out. Probes that met the same planned network are a group, in whatever stretch they were sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.certify.expected_delay import (
    ExpectedDelay,
    Queue,
    Wait,
    expected,
    queues,
    wait,
    ways,
)
from runtime.certify.planned_paths import Pair, Planned, PlannedStretch
from runtime.certify.probing_ends import ProbingEnds
from runtime.certify.traced_way import RunTraces, TracedWay, of_run, traced
from runtime.certify.traffic import Traffic
from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.probing.probe_record import LOST_NS
from runtime.rundir.runfiles import PROBES
from runtime.schedule import PlanClock

GUARD_NS = 30_000_000  # from a change until everything is taken to be in force
LATE_NS = 100_000_000  # beyond what is planned, after which one that is not there counts as open
ROUND_TRIP = "round-trip"


@dataclass(frozen=True, slots=True)
class JudgedProbe:
    """`tells_loss`: it would have been told of, whether it had arrived or not."""

    sent_ns: int
    delay_ns: int | None  # None: lost
    wait: Wait
    tells_loss: bool


@dataclass(slots=True)
class Visit:
    """A stretch of a pair and the probes that were under way in it alone.

    `open_ns`: when probes were sent of which nobody knows whether they were lost: an end came, or
    a queue may have held them up until something changed. `untold_ns`: since when lost ones may be
    told nowhere; None: all that was sent is here."""

    pair: int  # position in the header
    stretch: PlannedStretch
    expected: ExpectedDelay | None  # None: no path
    queues: tuple[Queue, ...]  # on its way
    longest_ns: int = 0  # that this way is planned to take
    traced: TracedWay | None = None  # that way, where links of it follow traces
    probes: list[JudgedProbe] = field(default_factory=list)
    open_ns: list[int] = field(default_factory=list)
    untold_ns: int | None = None

    @property
    def settled_ns(self) -> int:
        """Until when what was sent could arrive within the stretch, without waiting in queues:
        later ones tell more of those that were fast."""
        there = self.expected
        longest_ns = self.longest_ns
        if there is not None:
            longest_ns = max(longest_ns, there.delay_ns) + there.apart_ns
        return self.stretch.end_ns - longest_ns - LATE_NS

    def unknown(self, from_ns: int, to_ns: int, interval_ns: int) -> list[int]:
        """When those were sent within of which nobody knows whether they were lost. What is told
        nowhere is reckoned by the interval of the pair, as if it had been sent last."""
        found = [at for at in self.open_ns if from_ns <= at <= to_ns]
        if self.untold_ns is None or interval_ns <= 0 or not self.stretch.ends_up:
            return found
        begin_ns = max(self.untold_ns, from_ns, self.stretch.begin_ns)
        end_ns = min(to_ns, self.settled_ns)
        told = [*found, *(probe.sent_ns for probe in self.probes)]
        known = sum(begin_ns <= at <= end_ns for at in told)
        return found + [end_ns] * max((end_ns - begin_ns) // interval_ns - known, 0)


@dataclass(frozen=True, slots=True)
class Met:
    """`visits` by pair and time. `sent_ns`: of each pair all probes that were told of, ascending,
    also those that were under way at a change."""

    visits: list[Visit]
    sent_ns: list[list[int]]
    large: list[Visit]  # the same stretches, with the probes that were as large as packets can be
    large_sent: list[int]  # how many of these were told of each pair
    most_ns: list[int]  # of each pair, what its way is planned to take at most


class JudgedHeader:
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
        self.large = [number for number in record.get("large", ()) if number < len(self.pairs)]
        self.comparable = self.both or record["clock"] == "one"

    def interval_ns(self, pair: int) -> int:
        """Between two probes of it, of the run's own time; 0 if that is not known."""
        return self.intervals_ns[pair] if pair < len(self.intervals_ns) else 0

    def name(self, pair: int) -> str:
        return "{} to {}".format(*self.names[pair])


def meet(
    header: JudgedHeader,
    records: Iterable[Mapping[str, Any]],
    planned: Planned,
    traffic: Traffic,
    clock: PlanClock,
    lives: ProbingEnds,
    *,
    draws: bool,
) -> Met:
    """`draws`: see queues. RunError for a pair that the header does not have."""
    stretches = [planned.stretches[pair] for pair in header.pairs]
    most_ns = [_longest_ns(one, both=header.both) for one in stretches]
    known = of_run(planned)
    visits = [_visits(n, one, header, known, draws) for n, one in enumerate(stretches)]
    small = _Placing(header.pairs, visits, most_ns, traffic, lives)
    large = _Placing(header.pairs, _without_probes(visits), most_ns, traffic, lives)
    last: Mapping[str, Any] = {}
    for record in records:
        last = record
        for row in record["probes"]:
            small.place(row, clock)
        for pair, sent in record.get("open", ()):
            small.leave_open(pair, clock.due(sent))
        for row in record.get("large", ()):
            large.place(row, clock)
    if not last.get("last"):  # nobody reported at the end
        reported_ns = None if header.both or not last else clock.due(last["at_ns"])
        small.doubt(reported_ns)
    return Met(small.done(), small.sent_ns, large.done(), [*map(len, large.sent_ns)], most_ns)


class _Placing:
    """Puts probes of one size into the stretches in which they were under way. `visits`, without
    probes so far, and `most_ns` are of each pair."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        visits: Sequence[Sequence[Visit]],
        most_ns: Sequence[int],
        traffic: Traffic,
        lives: ProbingEnds,
    ) -> None:
        self._pairs, self._traffic, self._lives = pairs, traffic, lives
        self._visits, self._most_ns = visits, most_ns
        self._begins = [[visit.stretch.begin_ns for visit in rows] for rows in visits]
        self.sent_ns: list[list[int]] = [[] for _ in pairs]

    def place(self, row: Sequence[Any], clock: PlanClock) -> None:
        number, sent, delay = row
        if number >= len(self._pairs):
            raise RunError(f"{PROBES} has a probe that is none: {row!r:.80}", REMEDY)
        at_ns = clock.due(sent)
        self.sent_ns[number].append(at_ns)
        position = bisect_right(self._begins[number], at_ns) - 1
        if position >= 0:
            known = self._lives.knows_loss(self._pairs[number], at_ns, self._most_ns[number])
            _place(self._visits[number][position], at_ns, delay, self._traffic, known)

    def leave_open(self, number: int, at_ns: int) -> None:
        if number >= len(self._pairs):
            raise RunError(f"{PROBES} has an open probe of no pair: {number}", REMEDY)
        position = bisect_right(self._begins[number], at_ns) - 1
        if position >= 0:
            visit = self._visits[number][position]
            planned_ns = visit.expected.delay_ns if visit.expected else 0
            is_within = _is_within(visit.stretch, at_ns, at_ns + planned_ns)
            if is_within and visit.stretch.ends_up:  # else it was sent to nobody
                visit.open_ns.append(at_ns)

    def doubt(self, reported_ns: int | None) -> None:
        """Lost ones are told nowhere from some time before each end on, and before the last report,
        which is at `reported_ns`."""
        for pair, rows, most_ns in zip(self._pairs, self._visits, self._most_ns, strict=True):
            reached_ns = self._lives.reached_ns
            told_ns = reached_ns if reported_ns is None else reported_ns - LOST_NS - most_ns
            for visit in rows:
                known_ns = self._lives.known_until(
                    pair, visit.stretch.begin_ns, reached_ns, most_ns
                )
                known_ns = min(known_ns, told_ns)
                if known_ns < visit.stretch.end_ns:
                    visit.untold_ns = known_ns

    def done(self) -> list[Visit]:
        whole = [visit for rows in self._visits for visit in rows]
        for visit in whole:  # the lost ones are told last
            visit.probes.sort(key=lambda probe: probe.sent_ns)
            visit.open_ns.sort()
        for times in self.sent_ns:
            times.sort()
        return whole


def _without_probes(visits: Sequence[Sequence[Visit]]) -> list[list[Visit]]:
    return [[replace(visit, probes=[], open_ns=[]) for visit in rows] for rows in visits]


def _longest_ns(stretches: Iterable[PlannedStretch], *, both: bool) -> int:
    """What the way of a pair is planned to take at most: of all links that it ever has, the sum
    (docs/probes.md, How exact)."""
    most_ns: dict[int, int] = {}
    for stretch in stretches:
        for way in ways(stretch, both=both):
            for link, state in zip(way.links, way.states, strict=True):
                slowest_ns = state.delay_ns + 4 * state.jitter_ns
                most_ns[link] = max(most_ns.get(link, 0), slowest_ns)
    return sum(most_ns.values())


def _visits(
    number: int,
    stretches: Sequence[PlannedStretch],
    header: JudgedHeader,
    known: RunTraces | None,
    draws: bool,
) -> list[Visit]:
    found = []
    for stretch in stretches:
        crossed = ways(stretch, both=header.both)
        there = expected(crossed) if crossed else None
        way = traced(crossed, known)
        there = way.expected(there) if way is not None and there is not None else there
        longest_ns = _longest_ns((stretch,), both=header.both)
        found.append(Visit(number, stretch, there, queues(crossed, draws=draws), longest_ns, way))
    return found


def _place(
    visit: Visit, sent_ns: int, delay_ns: int | None, traffic: Traffic, knows_loss: bool
) -> None:
    """A probe that a queue may have held up until something changed says nothing of loss: with a
    link that goes down goes what waits there, and it is told as lost after LOST_NS whatever it
    waits for. One that was lost is open then."""
    stretch, there = visit.stretch, visit.expected
    planned_ns = there.delay_ns if there else 0
    until_ns = sent_ns + (planned_ns if delay_ns is None else delay_ns)
    if not _is_within(stretch, sent_ns, until_ns):
        return
    if visit.traced is not None:
        met = visit.traced.wait(traffic, sent_ns, until_ns)
    else:
        met = wait(traffic, visit.queues, sent_ns, until_ns)
    latest_ns = sent_ns + planned_ns + met.most_ns + GUARD_NS
    in_time = latest_ns <= stretch.end_ns and met.most_ns < LOST_NS
    if in_time or delay_ns is not None:
        visit.probes.append(JudgedProbe(sent_ns, delay_ns, met, knows_loss and in_time))
    else:
        visit.open_ns.append(sent_ns)


def _is_within(stretch: PlannedStretch, sent_ns: int, until_ns: int) -> bool:
    """Whether nothing changed while it was under way."""
    return stretch.begin_ns + GUARD_NS <= sent_ns and until_ns + GUARD_NS <= stretch.end_ns


def grouped(found: Sequence[Visit]) -> list[list[Visit]]:
    """Of one pair each, with the same planned network."""
    groups: dict[tuple[int, ExpectedDelay | None, bool], list[Visit]] = {}
    for visit in found:
        key = visit.pair, visit.expected, visit.stretch.ends_up
        groups.setdefault(key, []).append(visit)
    return list(groups.values())
