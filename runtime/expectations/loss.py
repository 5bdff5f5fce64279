"""`expect loss`: which share of the probes that were sent within the interval was lost.

Probes take what programs' packets take, so what full queues drop counts as loss, and so do probes
on a path that is cut. `within D`: the share holds for all probes from some moment of the interval
to its end, of which there are at least three. Of round trips no more than what is lost there and
back is known: that is a bound of the loss of one way, and no more. Where losses come in bursts
(`burst=`), a burst takes several probes that follow each other, which are far apart: what so few
bursts cannot tell apart from what is expected is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from compiler.plan.format import PPB as WHOLE_PPB
from compiler.plan.parts.expectations import PlannedExpectation
from runtime.certify import expected_delay
from runtime.certify.judged_probes import JudgedProbe, Visit
from runtime.certify.planned_paths import Pair
from runtime.certify.probing_ends import WAIT_NS
from runtime.expectations.finding import (
    FAILED,
    PASSED,
    PPB,
    Finding,
    MeasuredWindow,
    bounded,
    holds,
    moment,
    not_measured,
    quantity,
    span,
)
from runtime.expectations.judge_pairs import FEWEST, over_pairs, too_few
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.verdict import milliseconds
from runtime.say import number

_UNTOLD = (
    "; of the last probes before the run or an instance ends, or a full queue goes with its link,"
    " only those are told that arrived"
)


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    return over_pairs(expectation, records, seen, _of_pair)


def _of_pair(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, pair: Pair
) -> Finding:
    why = records.why_no_probes(pair)
    if why:
        return not_measured(why)
    met = records.probes(pair, seen.from_ns, seen.to_ns)
    told = [(visit, probe) for visit, probe in met if probe.tells_loss]
    sent = [probe for _, probe in told]
    if len(sent) < FEWEST:
        found = too_few(len(sent), "probe", pair, records, seen)
        return found.saying(_UNTOLD) if len(met) > len(sent) else found
    shares = _from_each(sent)
    ends = range(len(sent) - FEWEST + 1) if expectation.eventually else range(1)
    good = (at for at in ends if holds(shares[at], expectation.op, expectation.value))
    first = next(good, None)
    at, state = first or 0, FAILED if first is None else PASSED
    lost = [probe for probe in sent[at:] if probe.delay_ns is None]
    if records.round_trips and not (state == PASSED and expectation.op in ("<", "<=")):
        share = f"{quantity(shares[at], PPB)} of {number(len(sent) - at, 'round trip')} were lost"
        return not_measured(f"{records.pair_name(pair)}: {share}, which may be on the way back")
    unsure = _unsure([visit for visit, _ in told[at:]], both=records.round_trips)
    if unsure and abs(shares[at] - expectation.value) <= unsure:
        return not_measured(
            f"{records.pair_name(pair)}: losses of this path come in bursts, and of"
            f" {number(len(sent) - at, 'probe')} {quantity(shares[at], PPB)} were lost, which tells"
            f" its loss give or take {quantity(unsure, PPB)}, and not whether it is"
            f" {bounded(expectation.op)} {quantity(expectation.value, PPB)}: a longer interval"
            " would help, or a figure of the programs' own"
        )
    text = (
        f"{records.pair_name(pair)}: {len(lost):,} of {number(len(sent) - at, 'probe')} were lost,"
        f" {quantity(shares[at], PPB)}, full queues included, where"
        f" {bounded(expectation.op)} {quantity(expectation.value, PPB)} is expected"
    )
    decisive = lost[0] if lost else sent[at]
    at_ns = records.clock.plan_time(decisive.sent_ns) if state == FAILED else None
    return Finding(state, text, shares[at], expectation.value, PPB, at_ns)


_ERRORS = 3  # standard ones: beyond them chance is one of 400


def _unsure(met: Sequence[Visit], *, both: bool) -> int:
    """By how much, in ppb, the share of these probes that was lost may be off what the plan means,
    by chance; 0 where no loss comes in bursts. By the variance of the mean, as in certificates."""
    variance, bursts = 0.0, False
    for visit, same in groupby(met):
        crossed = expected_delay.ways(visit.stretch, both=both)
        if not crossed:
            continue
        planned = expected_delay.expected(crossed)
        variance += planned.loss_variance * len(list(same))
        bursts |= planned.clump > 1
    return round(_ERRORS * math.sqrt(variance) / len(met) * WHOLE_PPB) if bursts else 0


def _from_each(sent: Sequence[JudgedProbe]) -> list[int]:
    """The share, in ppb, of the probes from each position on to the end."""
    lost, found = 0, []
    for whole, probe in enumerate(reversed(sent), 1):
        lost += probe.delay_ns is None
        found.append(lost * WHOLE_PPB // whole)
    return found[::-1]


# `expect unreachable`: no probe of the pair comes through.
#
# Without `within`, none that was sent in the whole interval. With it, from some moment of the
# interval on, none until the plan changes something for the pair the next time, or the run ends: an
# interval of some milliseconds may have no probe of its own. Probes that were under way when
# something changed say nothing. Of round trips a lost one tells nothing where the plan has a path
# there: the way back may be the one that is cut.

SEVERAL = 3  # intervals between probes


def judge_unreachable(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> Finding:
    return over_pairs(expectation, records, seen, _nothing_through)


def _nothing_through(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, pair: Pair
) -> Finding:
    why = records.why_no_probes(pair)
    if why:
        return not_measured(why)
    until_ns = _until_ns(records, pair, seen) if expectation.eventually else seen.to_ns
    met = records.probes(pair, seen.from_ns, until_ns)
    sent = [probe for _, probe in met]
    looked = MeasuredWindow(seen.from_ns, until_ns)
    if not sent:
        return too_few(0, "probe", pair, records, looked)
    latest_ns = records.clock.due(seen.to_ns) if expectation.eventually else -1
    counted = [one for one in sent if one.sent_ns > latest_ns]
    wrong = [one for one in counted if one.delay_ns is not None]
    if wrong:
        return _reached(records, pair, wrong, counted)
    if sent[-1].delay_ns is not None:  # and it was sent before the end: nobody knows of later ones
        return too_few(0, "later probe", pair, records, looked)
    if _stopped(records, pair, lost := _lost(sent), seen.from_ns, until_ns):
        return _unknown(records, pair, lost[-1], until_ns)
    name, since_ns = records.pair_name(pair), seen.from_ns
    if len(lost) < len(sent):
        since_ns = records.clock.plan_time(sent[-len(lost) - 1].sent_ns)
    text = f"{name}: none of {number(len(lost), 'probe')} came through {span(since_ns, until_ns)}"
    if records.round_trips and any(visit.stretch.there for visit, _ in met[-len(lost) :]):
        return not_measured(f"{text}, which may be on the way back: there the plan has a path")
    return Finding(PASSED, text, 0, 0)


def _lost(sent: Sequence[JudgedProbe]) -> Sequence[JudgedProbe]:
    """Those after the last one that arrived."""
    last = max((at for at, one in enumerate(sent) if one.delay_ns is not None), default=-1)
    return sent[last + 1 :]


def _stopped(
    records: RunEvidence, pair: Pair, lost: Sequence[JudgedProbe], from_ns: int, until_ns: int
) -> bool:
    """Whether the last one was sent long before the last moment at which both instances were there:
    whatever came through later nobody would have seen. Near the end of the run a lost one is told
    nowhere."""
    low, high = records.clock.due(from_ns), records.clock.due(until_ns)
    there = [
        min(visit.stretch.end_ns, high)
        for visit in records.visits(pair)
        if visit.stretch.ends_up and visit.stretch.begin_ns <= high and visit.stretch.end_ns > low
    ]
    long_ns = WAIT_NS + SEVERAL * records.interval_ns(pair)
    return bool(there) and there[-1] - lost[-1].sent_ns > long_ns


def _unknown(records: RunEvidence, pair: Pair, last: JudgedProbe, until_ns: int) -> Finding:
    at_ns = records.clock.plan_time(last.sent_ns)
    text = f"of {records.pair_name(pair)} no probe is known {span(at_ns, until_ns)}"
    return not_measured(f"{text}: nobody would have seen what came through")


def _until_ns(records: RunEvidence, pair: Pair, seen: MeasuredWindow) -> int:
    """Until when nothing changes for the pair that is planned after the interval."""
    last_ns = records.clock.due(seen.to_ns)
    ends = [
        visit.stretch.end_ns
        for visit in records.visits(pair)
        if visit.stretch.begin_ns <= last_ns < visit.stretch.end_ns
    ]
    return records.clock.plan_time(ends[0]) if ends else seen.to_ns


def _reached(
    records: RunEvidence, pair: Pair, wrong: Sequence[JudgedProbe], sent: Sequence[JudgedProbe]
) -> Finding:
    first = wrong[0]
    at_ns = records.clock.plan_time(first.sent_ns)
    text = (
        f"{records.pair_name(pair)}: {len(wrong):,} of {number(len(sent), 'probe')} came through,"
        f" the first one at {moment(at_ns)} after {milliseconds(first.delay_ns or 0)}"
    )
    return Finding(FAILED, text, len(wrong), 0, at_ns=at_ns)
