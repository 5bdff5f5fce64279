"""What judges of pairs share: every pair is judged for itself, and the worst one is told.

A pair of which too few probes are known says nothing, whatever these say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compiler.plan.parts.expectations import PlannedExpectation
from runtime.certify.planned_paths import Pair
from runtime.expectations.finding import (
    NOT_MEASURED,
    Finding,
    MeasuredWindow,
    not_measured,
    span,
    worst,
)
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.verdict import milliseconds
from runtime.say import number

FEWEST = 3  # probes, or round trips

OfPair = Callable[[PlannedExpectation, RunEvidence, MeasuredWindow, Pair], Finding]


def over_pairs(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow, of_pair: OfPair
) -> Finding:
    found = []
    for pair in expectation.pairs:
        one = replace(of_pair(expectation, records, seen, pair), subject=records.pair_name(pair))
        if one.state != NOT_MEASURED:
            one = one.saying(_doubt(records, one.subject))
        found.append(one)
    return worst(found, expectation.op) if found else not_measured("it names no pair")


def _doubt(records: RunEvidence, name: str) -> str:
    """What the verdict says against a measurement of this pair, else of the run; '' if nothing."""
    reasons = records.verdict.get("reasons", ())
    first, _, second = name.partition(" -> ")
    ends = f"{first} to {second}", f"{second} to {first}"  # as the verdict calls them
    own = [one for end in ends for one in reasons if one["subject"] == end] or list(reasons)
    state = str(records.verdict.get("state", "")).upper()
    return f"; the run is {state}: {own[0]['text']}" if own else ""


def too_few(
    known: int, what: str, pair: Pair, records: RunEvidence, seen: MeasuredWindow
) -> Finding:
    """`known` of them are not enough for a judgement."""
    name, when = records.pair_name(pair), span(seen.from_ns, seen.to_ns)
    some = f"only {number(known, what)}" if known else f"no {what}"
    text = f"{some} of {name} {'is' if known < 2 else 'are'} known {when}"
    interval_ns = records.interval_ns(pair)
    if interval_ns:
        text += f"; the pair is probed every {milliseconds(interval_ns)}"
    help_text = "a longer interval, or fewer pairs of instances, would help"
    return not_measured(f"{text}: {help_text}")
