"""`expect valid`: the verdict of the run is VALID."""

from __future__ import annotations

from compiler.plan.parts.expectations import PlannedExpectation
from runtime.expectations.finding import FAILED, PASSED, Finding, MeasuredWindow, not_measured
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.verdict import UNKNOWN, VALID


def judge(_expectation: PlannedExpectation, records: RunEvidence, _seen: MeasuredWindow) -> Finding:
    verdict = records.verdict
    state = str(verdict.get("state", UNKNOWN))
    if state == VALID:
        return Finding(PASSED, "the run is VALID")
    if state == UNKNOWN:
        why = verdict.get("unmeasured") or "nothing was checked"
        return not_measured(f"the run is UNKNOWN: {why}")
    reasons = verdict.get("reasons") or [{}]
    text = f"the run is {state.upper()}: {reasons[0].get('text', '')}"
    at_ns = reasons[0].get("at_ns")
    return Finding(FAILED, text, at_ns=None if at_ns is None else records.clock.plan_time(at_ns))
