"""`expect run`: the command ended with 0, as the driver has recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.plan.expectations import PlannedExpectation
from runtime.expectations.figure_words import moment, printable
from runtime.expectations.finding import (
    FAILED,
    PASSED,
    Finding,
    MatchedLine,
    not_measured,
)
from runtime.expectations.run_evidence import RunEvidence
from runtime.expectations.window import MeasuredWindow
from runtime.rundir.runfiles import EXPECT_RUN
from runtime.say import number


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    name = records.name(expectation.nodes[0]) if expectation.nodes else ""
    number = records.number(expectation)
    found = [
        one
        for one in records.events
        if one.get("kind") == EXPECT_RUN and (one["expectation"], one["target"]) == (number, name)
    ]
    if not found:
        why = seen.missing or "the run has no record of it"
        return not_measured(f"{_command(expectation)} was not run: {why}", name)
    last = found[-1]
    if last.get("unavailable"):
        return not_measured(f"{_command(expectation)} was not run: {last.get('error', '')}", name)
    return _told(expectation, records, name, last)


def _told(
    expectation: PlannedExpectation, records: RunEvidence, name: str, last: Mapping[str, Any]
) -> Finding:
    at_ns = records.clock.plan_time(max(int(last["applied_ns"]), 0))
    status = last.get("status")
    tries = f" ({number(last['tries'], 'attempt')})"
    lines = tuple(MatchedLine(name, at_ns, printable(line, 400)) for line in last["output"])
    if status == 0:
        text = f"{_command(expectation)} in {name} ended with 0 at {moment(at_ns)}{tries}"
        return Finding(PASSED, text, 0, 0, at_ns=at_ns, subject=name)
    how = f"ended with status {status}" if status is not None else str(last.get("error", ""))
    said = f": {lines[-1].line}" if lines else ""
    text = f"{_command(expectation)} in {name} {how} at {moment(at_ns)}{tries}{said}"
    return Finding(FAILED, text, status, 0, at_ns=at_ns, subject=name, log=lines)


def _command(expectation: PlannedExpectation) -> str:
    return expectation.argv[0] if expectation.argv else "the command"
