"""`expect rtt`: a statistic of the round trips of probes that were sent within the interval.

Where probes go one way, a round trip is composed (runtime/probing/roundtrip.py). Probes that are
lost, or were under way when something changed, have no round trip; but where every probe of three
or more was lost, nothing holds.

`within D`: the statistic holds for all round trips from some moment of the interval to its end, of
which there are at least three. With `% of plan` the bound is that part of the same statistic of the
planned round trips of the same moments.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.plan.format import PPB as WHOLE_PPB
from compiler.plan.parts.expectations import PlannedExpectation
from runtime.certify.judged_probes import JudgedProbe, Visit
from runtime.certify.planned_paths import Pair, PlannedStretch
from runtime.expectations.finding import (
    FAILED,
    NS,
    PASSED,
    Finding,
    MeasuredWindow,
    bounded,
    compared,
    holds,
    not_measured,
    span,
)
from runtime.expectations.judge_pairs import FEWEST, over_pairs, too_few
from runtime.expectations.run_evidence import RunEvidence
from runtime.nearest_rank import nearest_rank
from runtime.probing.roundtrip import REACH, Sent, round_trip
from runtime.say import number

_PERCENT = {"median": 50, "p90": 90, "p99": 99, "max": 100, "min": 0}
Delays = tuple[tuple[int, int] | None, ...]
_COMPOSED = " (one-way probes there and back)"


@dataclass(frozen=True, slots=True)
class Trip:
    sent_ns: int  # real ns since the start
    rtt_ns: int
    planned_ns: int


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    return over_pairs(expectation, records, seen, _of_pair)


def _of_pair(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, pair: Pair
) -> Finding:
    composed = not records.round_trips
    for way in (pair, pair[::-1]) if composed else (pair,):
        why = records.why_no_probes(way)
        if why:
            return not_measured(why)
    sent = records.probes(pair, seen.from_ns, seen.to_ns)
    trips = _composed(sent, records, pair) if composed else _whole(sent)
    if len(sent) >= FEWEST and all(probe.delay_ns is None for _, probe in sent):
        return _all_lost(expectation, records, seen, pair, sent)
    if len(trips) < FEWEST:
        return too_few(len(trips), "round trip", pair, records, seen)
    return _judged(expectation, records, pair, trips, _COMPOSED if composed else "")


def _all_lost(
    expectation: PlannedExpectation,
    records: RunEvidence,
    seen: MeasuredWindow,
    pair: Pair,
    sent: Sequence[tuple[Visit, JudgedProbe]],
) -> Finding:
    when = span(seen.from_ns, seen.to_ns)
    text = f"{records.pair_name(pair)}: none of {number(len(sent), 'probe')} came through {when}"
    threshold = None if expectation.of_plan else expectation.value
    at_ns = records.clock.plan_time(sent[0][1].sent_ns)
    return Finding(FAILED, text, None, threshold, NS, at_ns)


def _whole(sent: Sequence[tuple[Visit, JudgedProbe]]) -> list[Trip]:
    """Of probes that go there and back."""
    return [
        Trip(probe.sent_ns, probe.delay_ns, visit.expected.delay_ns if visit.expected else 0)
        for visit, probe in sent
        if probe.delay_ns is not None
    ]


def _composed(
    sent: Sequence[tuple[Visit, JudgedProbe]], records: RunEvidence, pair: Pair
) -> list[Trip]:
    """Each with the probe back that was sent nearest to its arrival, also after the interval, but
    while the plan had the same network there: an answer would have met that one."""
    back: dict[Delays, list[Sent]] = defaultdict(list)
    for visit in records.visits(pair[::-1]):
        back[_delays(visit.stretch)[::-1]] += [
            (probe.sent_ns, probe.delay_ns) for probe in visit.probes if probe.delay_ns is not None
        ]
    reach_ns = REACH * max(records.interval_ns(pair), records.interval_ns(pair[::-1]))
    trips = []
    for visit, probe in sent:
        if probe.delay_ns is None:
            continue
        same = back.get(_delays(visit.stretch), ())
        rtt_ns = round_trip((probe.sent_ns, probe.delay_ns), same, reach_ns)
        if rtt_ns is not None:
            trips.append(Trip(probe.sent_ns, rtt_ns, _planned_ns(visit.stretch)))
    return trips


def _delays(stretch: PlannedStretch) -> Delays:
    """There and back, with their jitters."""
    ways = (stretch.there, stretch.back)
    return tuple(
        None if way is None else (way.totals.delay_ns, way.totals.jitter_ns) for way in ways
    )


def _planned_ns(stretch: PlannedStretch) -> int:
    ways = (stretch.there, stretch.back)
    return sum(way.totals.delay_ns for way in ways if way is not None)


def _judged(
    expectation: PlannedExpectation,
    records: RunEvidence,
    pair: Pair,
    trips: Sequence[Trip],
    how: str,
) -> Finding:
    ends = range(len(trips) - FEWEST + 1) if expectation.eventually else range(1)
    figures = _from_each(expectation.statistic, [trip.rtt_ns for trip in trips], len(ends))
    bounds = [expectation.value] * len(ends)
    if expectation.of_plan:
        planned = [trip.planned_ns for trip in trips]
        found = _from_each(expectation.statistic, planned, len(ends))
        bounds = [one * expectation.value // WHOLE_PPB for one in found]
    good = (at for at in ends if holds(figures[at], expectation.op, bounds[at]))
    first = next(good, None)
    at = 0 if first is None else first
    state = FAILED if first is None else PASSED
    figure, bound = compared(figures[at], bounds[at], NS)
    text = (
        f"{records.pair_name(pair)}: the {expectation.statistic} of"
        f" {number(len(trips) - at, 'round trip')}{how} is {figure}, where"
        f" {_wanted(expectation, bound)} is expected"
    )
    decisive = _farthest(trips[at:], expectation.op)
    at_ns = records.clock.plan_time(decisive.sent_ns) if state == FAILED else None
    return Finding(state, text, figures[at], bounds[at], NS, at_ns)


def _wanted(expectation: PlannedExpectation, bound: str) -> str:
    of_plan = " by the plan" if expectation.of_plan else ""
    return f"{bounded(expectation.op)} {bound}{of_plan}"


def _farthest(trips: Sequence[Trip], op: str) -> Trip:
    """The one that is farthest from what is expected."""
    choose = max if op in ("<", "<=") else min
    return choose(trips, key=lambda one: one.rtt_ns)


def _from_each(statistic: str, values: Sequence[int], number: int) -> list[int]:
    """Of the values from each of the first positions on to the end."""
    ordered, total = sorted(values[number:]), sum(values[number:])
    found = []
    for value in reversed(values[:number]):
        insort(ordered, value)
        total += value
        found.append(_rank(statistic, ordered, total))
    return found[::-1]


def _rank(statistic: str, ordered: Sequence[int], total: int) -> int:
    """Of sorted values."""
    if statistic == "mean":
        return total // len(ordered)
    return nearest_rank(ordered, _PERCENT[statistic])
