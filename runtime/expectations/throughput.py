"""`expect throughput`: the mean rate at which IP bytes of the pair were delivered.

Over the interval, or with `within` over any WINDOW_NS of it: the best one is told. With `% of plan`
the bound is that part of the rate of the pair's planned path, on average over the same time; a path
without a rate has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.plan.format import PPB as WHOLE_PPB
from compiler.plan.parts.expectations import PlannedExpectation
from runtime.certify.planned_paths import Pair
from runtime.expectations.finding import (
    BPS,
    FAILED,
    PASSED,
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
from runtime.expectations.judge_pairs import over_pairs
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.verdict import milliseconds

WINDOW_NS = 500_000_000  # five samples
STEP_NS = 100_000_000


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    return over_pairs(expectation, records, seen, _of_pair)


def _of_pair(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, pair: Pair
) -> Finding:
    from_ns, to_ns = (records.clock.due(at_ns) for at_ns in (seen.from_ns, seen.to_ns))
    name = records.pair_name(pair)
    if to_ns - from_ns < WINDOW_NS:
        least, has = milliseconds(WINDOW_NS), milliseconds(max(to_ns - from_ns, 0))
        return not_measured(f"{name}: the interval has {has}, and a rate needs {least}")
    candidates = _windows(from_ns, to_ns) if expectation.eventually else iter([(from_ns, to_ns)])
    found, best = None, 0
    for low, high in candidates:
        one = _over(expectation, records, pair, low, high)
        if isinstance(one, str):
            found = found or not_measured(f"{name} {span(*_plan(records, low, high))}: {one}")
            continue
        margin = _margin(one, expectation.op)
        if found is None or found.figure is None or margin > best:
            found, best = one, margin
        if one.state == PASSED:
            return one
    assert found is not None  # there is a window
    return found


def _margin(finding: Finding, op: str) -> int:
    over = (finding.figure or 0) - (finding.threshold or 0)
    return over if op in (">", ">=") else -over


def _windows(from_ns: int, to_ns: int) -> Iterator[tuple[int, int]]:
    for low in range(from_ns, to_ns - WINDOW_NS + 1, STEP_NS):
        yield low, low + WINDOW_NS


def _plan(records: RunEvidence, low: int, high: int) -> tuple[int, int]:
    return records.clock.plan_time(low), records.clock.plan_time(high)


def _over(
    expectation: PlannedExpectation, records: RunEvidence, pair: Pair, low: int, high: int
) -> Finding | str:
    """Real ns. Or why there is nothing to compare with."""
    figure, bound = records.delivered(pair).bps(low, high), expectation.value
    of_plan = ""
    if expectation.of_plan:
        planned = _planned_bps(records, pair, low, high)
        if isinstance(planned, str):
            return planned
        bound = planned * expectation.value // WHOLE_PPB
        of_plan = f", {quantity(expectation.value, 'ppb')} of the planned {quantity(planned, BPS)},"
    passed = holds(figure, expectation.op, bound)
    from_ns, to_ns = _plan(records, low, high)
    had, wanted = compared(figure, bound, BPS)
    text = (
        f"{records.pair_name(pair)}: {had} were delivered {span(from_ns, to_ns)},"
        f" where {bounded(expectation.op)} {wanted}{of_plan} is expected"
    )
    at_ns = None if passed else from_ns
    return Finding(PASSED if passed else FAILED, text, figure, bound, BPS, at_ns)


def _planned_bps(records: RunEvidence, pair: Pair, low: int, high: int) -> int | str:
    """On average; while there is no path, 0. Or why there is none."""
    bits_ns, known_ns = 0, 0
    for stretch in records.stretches(pair):
        span_ns = min(stretch.end_ns, high) - max(stretch.begin_ns, low)
        if span_ns <= 0:
            continue
        known_ns += span_ns
        if stretch.there is None:
            continue
        if stretch.there.shared:
            return "it has several equal paths, so the plan has no one rate to compare with"
        if any(state.neck for state in stretch.there.states):
            return "it shares a bottleneck, so the plan has no one rate to compare with"
        if not stretch.there.totals.rate_bps:
            began = moment(records.clock.plan_time(stretch.begin_ns))
            return f"its path has no limit since {began}, so the plan has no rate to compare with"
        begin_ns = max(stretch.begin_ns, low)
        bits_ns += records.rate_bps(stretch.there, begin_ns, begin_ns + span_ns) * span_ns
    if not known_ns:
        return "its planned path is not known"
    return bits_ns // known_ns or "the plan has no path for it"
