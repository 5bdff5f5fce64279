"""Which part of an expectation's interval a run has covered.

An interval that ends with the plan ends with the run, if that came to an end as it should: by its
timeline, `--until` or `quit when`. A run that was interrupted or has failed leaves it open. Times
are plan time in ns.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.plan.expectations import PlannedExpectation
from runtime.expectations.figure_words import moment


@dataclass(frozen=True, slots=True)
class Covered:
    """What of the plan's time a run was there for. `ended_well`: it is completed."""

    from_ns: int
    to_ns: int
    plan_end_ns: int
    ended_well: bool


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """[from_ns, to_ns], empty if nothing is left. `missing`: why it is not the whole interval."""

    from_ns: int
    to_ns: int
    missing: str = ""

    @property
    def is_empty(self) -> bool:
        return self.from_ns > self.to_ns


def window(expectation: PlannedExpectation, covered: Covered) -> MeasuredWindow:
    from_ns = max(expectation.from_ns, covered.from_ns)
    to_ns = min(expectation.to_ns, covered.to_ns)
    return MeasuredWindow(from_ns, to_ns, _missing(expectation, covered))


def _missing(expectation: PlannedExpectation, covered: Covered) -> str:
    if 0 < expectation.from_ns < covered.from_ns:
        begin = moment(covered.from_ns)
        return f"the run began at {begin}, after {moment(expectation.from_ns)}"
    if expectation.to_ns <= covered.to_ns:
        return ""
    begun = expectation.from_ns <= covered.to_ns
    if begun and covered.ended_well and expectation.to_ns >= covered.plan_end_ns:
        return ""
    wanted = expectation.to_ns if begun else expectation.from_ns
    return f"the run ended at {moment(covered.to_ns)}, before {moment(wanted)}"
