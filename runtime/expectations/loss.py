"""`expect loss`: which share of the probes that were sent within the interval was lost.

Probes take what programs' packets take, so what full queues drop counts as loss, and so do probes
on a path that is cut. `within D`: the share holds for all probes from some moment of the interval
to its end, of which there are at least three. Of round trips no more than what is lost there and
back is known: that is a bound of the loss of one way, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.plan.expectations import PlannedExpectation
from compiler.plan.format import PPB as WHOLE_PPB
from runtime.certify.judged_probes import JudgedProbe
from runtime.certify.planned_paths import Pair
from runtime.expectations.figure_words import quantity
from runtime.expectations.finding import FAILED, PASSED, PPB, Finding, bounded, holds, not_measured
from runtime.expectations.judge_pairs import FEWEST, over_pairs, too_few
from runtime.expectations.run_evidence import RunEvidence
from runtime.expectations.window import MeasuredWindow
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
    met = [probe for _, probe in records.probes(pair, seen.from_ns, seen.to_ns)]
    sent = [probe for probe in met if probe.tells_loss]
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
    text = (
        f"{records.pair_name(pair)}: {len(lost):,} of {number(len(sent) - at, 'probe')} were lost,"
        f" {quantity(shares[at], PPB)}, full queues included, where"
        f" {bounded(expectation.op)} {quantity(expectation.value, PPB)} is expected"
    )
    decisive = lost[0] if lost else sent[at]
    at_ns = records.clock.plan_time(decisive.sent_ns) if state == FAILED else None
    return Finding(state, text, shares[at], expectation.value, PPB, at_ns)


def _from_each(sent: Sequence[JudgedProbe]) -> list[int]:
    """The share, in ppb, of the probes from each position on to the end."""
    lost, found = 0, []
    for whole, probe in enumerate(reversed(sent), 1):
        lost += probe.delay_ns is None
        found.append(lost * WHOLE_PPB // whole)
    return found[::-1]
