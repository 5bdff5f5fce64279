"""Judges all expectations of a plan from the records of its run, in the order of their statements.

Each kind has its judge. What they share is here: an interval that the run did not reach is not
measured, and one that it has reached in part only where that part decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from compiler.plan.parts.expectations import (
    ALWAYS,
    ASSERTIONS,
    DRIVERS,
    EVENTUALLY,
    EXIT,
    LINEARIZABLE,
    LOG,
    LOSS,
    NO_LOG,
    OF_PAIRS,
    RTT,
    RUN,
    SERIALIZABLE,
    SOMETIMES,
    THROUGHPUT,
    UNREACHABLE,
    VALID,
    PlannedExpectation,
)
from compiler.plan.reader import Plan
from runtime.certify.certificate import Evidence
from runtime.errors import RunError
from runtime.expectations import (
    expect_exit,
    judge_lines,
    judge_templates,
    logged,
    loss,
    rtt,
    throughput,
)
from runtime.expectations.assertions import judge_assertions
from runtime.expectations.finding import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    Finding,
    MeasuredWindow,
    not_measured,
    window,
)
from runtime.expectations.history import judge_history
from runtime.expectations.kept_files import Unkept
from runtime.expectations.run_evidence import RunEvidence
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import Schedule

Judge = Callable[[PlannedExpectation, RunEvidence, MeasuredWindow], Finding]
_JUDGES: Mapping[str, Judge] = {
    RTT: rtt.judge,
    THROUGHPUT: throughput.judge,
    LOSS: loss.judge,
    UNREACHABLE: loss.judge_unreachable,
    LOG: logged.judge,
    NO_LOG: logged.judge,
    EXIT: expect_exit.judge,
    RUN: expect_exit.judge_run,
    VALID: expect_exit.judge_valid,
    LINEARIZABLE: judge_history.judge,
    SERIALIZABLE: judge_history.judge,
    ALWAYS: judge_lines.judge_always,
    SOMETIMES: judge_lines.judge_sometimes,
    EVENTUALLY: judge_lines.judge_eventually,
    ASSERTIONS: judge_assertions.judge,
    DRIVERS: judge_templates.judge,
}
_OF_NO_INTERVAL = (EXIT, VALID)


def judged(
    directory: HeldDirectory,
    plan: Plan,
    schedule: Schedule,
    evidence: Evidence,
    summary: Mapping[str, Any],
    unkept: Unkept = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """As summary.json has them. `unkept`: as of `kept_files.keep`. RunError for records that are
    damaged."""
    records = RunEvidence(directory, plan, schedule, evidence, summary, unkept)
    return [_judge(one, records).to_record(one) for one in plan.expectations]


def _judge(expectation: PlannedExpectation, records: RunEvidence) -> Finding:
    return _with_log(_found(expectation, records), expectation, records)


def _found(expectation: PlannedExpectation, records: RunEvidence) -> Finding:
    seen = window(expectation, records.covered)
    kind = expectation.kind
    if kind in _OF_NO_INTERVAL:
        return _JUDGES[kind](expectation, records, seen)
    if seen.is_empty:
        return not_measured(seen.missing or "its interval is empty")
    found = _JUDGES[kind](expectation, records, seen)
    if seen.missing and found.state != NOT_MEASURED and not _decides(expectation, found.state):
        return not_measured(f"{seen.missing}; until then: {found.message}", found.subject)
    return found


def _decides(expectation: PlannedExpectation, state: str) -> bool:
    """Whether nothing that comes after a part of the interval could change this."""
    kind = expectation.kind
    if kind == RUN:
        return state == PASSED or not expectation.eventually
    if kind in (LOG, SOMETIMES) or (kind == THROUGHPUT and expectation.eventually):
        return state == PASSED
    if kind in (NO_LOG, LINEARIZABLE, SERIALIZABLE, ALWAYS, ASSERTIONS, DRIVERS) or (
        kind == UNREACHABLE and not expectation.eventually
    ):
        return state == FAILED
    return False


def _with_log(found: Finding, expectation: PlannedExpectation, records: RunEvidence) -> Finding:
    """What a program, or those of a pair, wrote around the moment at which it failed."""
    has_log = expectation.kind in (*OF_PAIRS, EXIT) and found.state == FAILED
    if found.at_ns is None or not has_log:
        return found
    try:
        return replace(found, log=logged.around(records, found.subject.split(" -> "), found.at_ns))
    except RunError:
        return found  # a damaged log does not undo what probes have told
