"""`expect loss`: which share of the probes that were sent within the interval was lost.

Probes take what programs' packets take, so what full queues drop counts as loss, and so do probes
on a path that is cut. Of some that were sent nobody knows whether they were lost: what holds has to
hold if all of them were, and if none was. `within D`: the share holds for all probes from some
moment of the interval to its end, of which there are at least three. Of round trips no more than
what is lost there and back is known: that is a bound of the loss of one way, and no more. Where
losses come in bursts (`burst=`), a burst takes several probes that follow each other, which are far
apart: what so few bursts cannot tell apart from what is expected is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from compiler.plan.format import PPB as WHOLE_PPB
from compiler.plan.parts.expectations import PlannedExpectation
from runtime.certify import expected_delay
from runtime.certify.judged_probes import JudgedProbe, Visit
from runtime.certify.planned_paths import Pair
from runtime.certify.probing_ends import WAIT_NS
from runtime.expectations.finding import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    PPB,
    Finding,
    MeasuredWindow,
    bounded,
    compared,
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

_OPEN = (
    "nobody knows, since the run or an instance ended too soon after them, or they waited in a"
    " queue until something changed"
)


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    return over_pairs(expectation, records, seen, _of_pair)


def _of_pair(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, pair: Pair
) -> Finding:
    why = records.why_no_probes(pair)
    if why:
        return not_measured(why)
    sent = _sent(records, pair, seen)
    shares = _Shares(sent)
    if shares.known[0] < FEWEST:
        found = too_few(shares.known[0], "probe", pair, records, seen)
        return found.saying(f"; of {shares.open[0]:,} others {_OPEN}") if shares.open[0] else found
    op, bound = expectation.op, expectation.value
    ends = shares.ends if expectation.eventually else range(1)
    state, at = NOT_MEASURED, 0
    first = next((at for at in ends if shares.surely(at, op, bound)), None)
    if first is not None:
        state, at = PASSED, first
    elif not any(shares.maybe(at, op, bound) for at in ends):
        state = FAILED
    whole, lost, open_ = len(sent) - at, shares.lost[at], shares.open[at]
    name = records.pair_name(pair)
    if records.round_trips and not (state == PASSED and op in ("<", "<=")):
        share = f"{quantity(shares.least(at), PPB)} of {number(whole, 'round trip')} were lost"
        return not_measured(f"{name}: {share}, which may be on the way back")
    text = f"{name}: {lost:,} of {number(whole, 'probe')} were lost"
    if state == NOT_MEASURED:
        return not_measured(
            f"{text}, and of {open_:,} of them {_OPEN}: it was {quantity(shares.least(at), PPB)} to"
            f" {quantity(shares.most(at), PPB)}, where {bounded(op)} {quantity(bound, PPB)} is"
            " expected; an interval that ends some seconds earlier would help"
        )
    figure = shares.most(at) if (op in ("<", "<=")) == (state == PASSED) else shares.least(at)
    unsure = _unsure([one.visit for one in sent[at:]], both=records.round_trips)
    if unsure and abs(figure - bound) <= unsure:
        return not_measured(
            f"{name}: losses of this path come in bursts, and of"
            f" {number(whole, 'probe')} {quantity(figure, PPB)} were lost, which tells"
            f" its loss give or take {quantity(unsure, PPB)}, and not whether it is"
            f" {bounded(op)} {quantity(bound, PPB)}: a longer interval"
            " would help, or a figure of the programs' own"
        )
    share, expected = compared(figure, bound, PPB)
    if open_:
        side = "at most" if figure == shares.most(at) else "at least"
        text, share = f"{text}, and of {open_:,} of them {_OPEN}", f"{side} {share}"
    text += f", {share}, full queues included, where {bounded(op)} {expected} is expected"
    decisive = next((one for one in sent[at:] if one.lost), sent[at])
    at_ns = records.clock.plan_time(decisive.sent_ns) if state == FAILED else None
    return Finding(state, text, figure, bound, PPB, at_ns)


class _Sent(NamedTuple):
    """A probe; `lost` is None where nobody knows."""

    sent_ns: int
    lost: bool | None
    visit: Visit


def _sent(records: RunEvidence, pair: Pair, seen: MeasuredWindow) -> list[_Sent]:
    """What was sent within, in order, without what was under way when something changed."""
    low, high = records.clock.due(seen.from_ns), records.clock.due(seen.to_ns)
    interval_ns = records.interval_ns(pair)
    found = []
    for visit in records.visits(pair):
        if visit.stretch.end_ns > low and visit.stretch.begin_ns <= high:
            last = min(high, visit.settled_ns)
            found += [
                _Sent(one.sent_ns, one.delay_ns is None, visit)
                for one in visit.probes
                if low <= one.sent_ns <= last
            ]
            found += [_Sent(at, None, visit) for at in visit.unknown(low, last, interval_ns)]
    return sorted(found, key=lambda one: one.sent_ns)


class _Shares:
    """Counts of the probes from each position on to the end, and the least and the greatest share
    of them, in ppb, that may have been lost."""

    def __init__(self, sent: Sequence[_Sent]) -> None:
        last_first = sent[::-1]
        self.lost = _from_each(one.lost is True for one in last_first)
        self.open = _from_each(one.lost is None for one in last_first)
        self.known = _from_each(one.lost is not None for one in last_first)

    @property
    def ends(self) -> range:
        """Positions from which on enough is known."""
        return range(sum(count >= FEWEST for count in self.known))

    def least(self, at: int) -> int:
        return self.lost[at] * WHOLE_PPB // (self.known[at] + self.open[at])

    def most(self, at: int) -> int:
        return (self.lost[at] + self.open[at]) * WHOLE_PPB // (self.known[at] + self.open[at])

    def surely(self, at: int, op: str, bound: int) -> bool:
        return holds(self.least(at), op, bound) and holds(self.most(at), op, bound)

    def maybe(self, at: int, op: str, bound: int) -> bool:
        return holds(self.least(at), op, bound) or holds(self.most(at), op, bound)


def _from_each(ones: Iterable[bool]) -> list[int]:
    """How many there are from each position on; `ones` from the last one to the first."""
    return [*accumulate(map(int, ones), initial=0)][:0:-1] or [0]


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
