"""`expect exit`: the program of each instance ended by itself with this status, at its last end.

What the timeline ended (leave, crash, kill) says nothing: nobody knows what the program would have
done. Neither does one that still ran when a run ended before its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.plan.event_kinds import PROGRAM_ENDINGS
from compiler.plan.parts.expectations import PlannedExpectation
from runtime.expectations.finding import (
    FAILED,
    PASSED,
    Finding,
    MatchedLine,
    MeasuredWindow,
    moment,
    not_measured,
    printable,
    worst,
)
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.verdict import UNKNOWN, VALID
from runtime.rundir.eventlog import how_ended
from runtime.rundir.runfiles import EXPECT_RUN
from runtime.say import number

_LIVES_BEGIN, _LIVES_END = ("join", "start"), PROGRAM_ENDINGS


def judge(expectation: PlannedExpectation, records: RunEvidence, _seen: MeasuredWindow) -> Finding:
    names = [records.name(node) for node in expectation.nodes]
    ends = _last_ends(names, records)
    found = [_of_instance(expectation, records, name, ends[name]) for name in names]
    return worst(found, expectation.op) if found else not_measured("it names no instance")


def _last_ends(names: list[str], records: RunEvidence) -> dict[str, Mapping[str, Any] | None]:
    """By instance: the record of its program's last end, of a life that the timeline ended, or of a
    start after which it still ran; None if it never ran."""
    found: dict[str, Mapping[str, Any] | None] = dict.fromkeys(names)
    for record in records.events:
        name, kind = str(record.get("target", "")), record.get("kind")
        if name not in found:
            continue
        before = found[name]
        if kind in _LIVES_BEGIN and "started_ns" in record:
            if before is None or before.get("applied_ns", 0) <= record["started_ns"]:
                found[name] = record
        elif _is_end(record, before):
            found[name] = record
    return found


def _is_end(record: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    if record.get("kind") in ("exit", "killed"):
        return not record.get("asked")
    ran = before is not None and before["kind"] in _LIVES_BEGIN
    return ran and record.get("kind") in _LIVES_END


def _of_instance(
    expectation: PlannedExpectation,
    records: RunEvidence,
    name: str,
    last: Mapping[str, Any] | None,
) -> Finding:
    wanted = f"status {expectation.value} is expected"
    if last is None:
        return not_measured(f"the program of {name} never ran", name)
    at_ns = records.clock.plan_time(max(int(last.get("applied_ns", 0)), 0))
    kind = last["kind"]
    if kind in _LIVES_END:
        return not_measured(f"the timeline ended {name} ({kind}) at {moment(at_ns)}", name)
    if kind in _LIVES_BEGIN:
        covered = records.covered
        if covered.to_ns < covered.plan_end_ns or not covered.ended_well:
            why = f"the run ended at {moment(covered.to_ns)}, before its plan"
            return not_measured(f"the program of {name} still ran: {why}", name)
        at_ns = records.covered.to_ns
        text = f"the program of {name} still ran at the end of the run, where {wanted}"
        return _failed(name, text, None, expectation.value, at_ns)
    if kind == "killed" or "error" in last:
        how = f"could not start: {last['error']}" if "error" in last else "was killed from outside"
        text = f"the program of {name} {how}, where {wanted}"
        return _failed(name, text, None, expectation.value, at_ns)
    return _ended(expectation, name, last, at_ns)


def _ended(
    expectation: PlannedExpectation, name: str, last: Mapping[str, Any], at_ns: int
) -> Finding:
    text = f"the program of {name} ended by itself with {how_ended(last)} at {moment(at_ns)}"
    status = None if last["signal"] else int(last["status"])
    if status == expectation.value:
        return Finding(PASSED, text, status, status, at_ns=at_ns, subject=name)
    text += f", where status {expectation.value} is expected"
    return _failed(name, text, status, expectation.value, at_ns)


def _failed(name: str, text: str, status: int | None, wanted: int, at_ns: int) -> Finding:
    return Finding(FAILED, text, status, wanted, at_ns=at_ns, subject=name)


# `expect run`: the command ended with 0, as the driver has recorded it.


def judge_run(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> Finding:
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
    how += f" ({printable(last['reason'], 400)})" if "reason" in last else ""
    said = f": {lines[-1].line}" if lines else ""
    text = f"{_command(expectation)} in {name} {how} at {moment(at_ns)}{tries}{said}"
    return Finding(FAILED, text, status, 0, at_ns=at_ns, subject=name, log=lines)


def _command(expectation: PlannedExpectation) -> str:
    return expectation.argv[0] if expectation.argv else "the command"


def judge_valid(
    _expectation: PlannedExpectation, records: RunEvidence, _seen: MeasuredWindow
) -> Finding:
    """`expect valid`: the verdict of the run is VALID."""
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
