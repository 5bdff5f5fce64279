"""`expect drivers`: each command of a test template that ended by itself ended with 0, and the
check that the run has drawn has run to its end (docs/drivers.md).

What a check or the end of an instance has ended says nothing, and neither does what the end of the
run has ended, but for a check and a `first_`: these had until then. Which commands ended with 0 in
this run, and which did not, is for whoever looks at many runs, as of assertions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.plan.parts.expectations import PlannedExpectation
from runtime import say
from runtime.expectations.finding import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    Finding,
    MatchedLine,
    MeasuredWindow,
    moment,
    not_measured,
    printable,
)
from runtime.expectations.run_evidence import RunEvidence
from runtime.rundir.runfiles import COMMAND_END, INSTANCE_ENDED, TEMPLATE

CHECKS = ("eventually_", "finally_")
_AWAITED = (*CHECKS, "first_")
_SHOWN = 4
_MOST_LINE = 400


@dataclass(frozen=True, slots=True)
class _Ends:
    """Of the commands of one template, in order: those that ended by themselves or could not run,
    and those that were ended."""

    template: Mapping[str, Any]
    own: Sequence[Mapping[str, Any]]
    lost: Sequence[Mapping[str, Any]]


def judge(wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    ends = _ends(wanted, records)
    if ends is None:
        return not_measured(seen.missing or "the run has no record of it")
    template = ends.template
    if "error" in template:
        state = NOT_MEASURED if template.get("unavailable") else FAILED
        return Finding(state, str(template["error"]))
    at_end = records.ended_well and records.covered.to_ns >= records.covered.plan_end_ns
    failed = [one for one in ends.own if one.get("status") != 0]
    late = [one for one in ends.lost if _was_awaited(one)] if at_end else []
    happened, never = _names(wanted, ends)
    if seen.missing:  # the rest of the run might have had them
        never = ()
    if failed or late:
        count, wrong = len(ends.own) + len(late), len(failed) + len(late)
        more = f" ({wrong} of {say.number(count, 'command')} failed)" if wrong > 1 else ""
        first = _failed((failed or late)[0], more, records)
        return replace(first, happened=happened, never=never)
    missing = _missing(ends)
    if missing:
        why = f"; {seen.missing}" if seen.missing else ""
        return Finding(NOT_MEASURED, missing + why, happened=happened, never=never)
    return Finding(PASSED, _summary(ends), happened=happened, never=never)


def _was_awaited(one: Mapping[str, Any]) -> bool:
    """Whether it had until the end of the run, of what was ended."""
    return str(one["command"]).startswith(_AWAITED) and str(one["lost"]) != INSTANCE_ENDED


def _ends(wanted: PlannedExpectation, records: RunEvidence) -> _Ends | None:
    """None where the run has not begun with it."""
    number = records.number(wanted)
    mine = [one for one in records.events if one.get("expectation") == number]
    template = next((one for one in mine if one["kind"] == TEMPLATE), None)
    if template is None:
        return None
    ends = [one for one in mine if one["kind"] == COMMAND_END]
    own = [one for one in ends if "lost" not in one]
    return _Ends(template, own, [one for one in ends if "lost" in one])


def _failed(one: Mapping[str, Any], more: str, records: RunEvidence) -> Finding:
    """`one`: the end of the first one that failed; `more`: how many did."""
    at_ns = records.clock.plan_time(max(int(one["applied_ns"]), 0))
    name, status = str(one["target"]), one.get("status")
    how = f"ended with status {status}" if status is not None else str(one.get("error", ""))
    how += f" ({printable(one['reason'], _MOST_LINE)})" if "reason" in one else ""
    how = how or "had not ended when the experiment did"
    lines = tuple(
        MatchedLine(name, at_ns, printable(line, _MOST_LINE)) for line in one.get("output", ())
    )
    said = f": {lines[-1].line}" if lines else ""
    text = f"{printable(one['command'], _MOST_LINE)} in {name} {how} at {moment(at_ns)}{said}{more}"
    figure, threshold = (None, None) if status is None else (int(status), 0)
    place: dict[str, Any] = {"at_ns": at_ns, "subject": name, "log": lines}
    return Finding(FAILED, text, figure, threshold, **place)


def _missing(ends: _Ends) -> str:
    """What has not run that had to, '' for nothing."""
    cut = next((one for one in ends.lost if one["command"].startswith("first_")), None)
    if cut is not None:
        return f"{cut['command']} has not run to its end: {cut['lost']}"
    commands = [str(one) for one in ends.template["commands"]]
    checks = [one for one in commands if one.startswith(CHECKS)]
    checked = any(one["command"].startswith(CHECKS) for one in ends.own)
    if checks and not checked:
        still = sorted({str(one["command"]) for one in ends.lost})
        why = f": {say.some(still, _SHOWN)} had not ended" if still else ""
        return f"no check has run to its end ({say.some(checks, _SHOWN)}){why}"
    return "" if ends.own else "no command has run to its end"


def _summary(ends: _Ends) -> str:
    counts = Counter(str(one["command"]) for one in ends.own)
    told = [f"{name} {count:,}" if count > 1 else name for name, count in sorted(counts.items())]
    count = say.number(len(ends.own), "command")
    shown = printable(say.some(told, _SHOWN), _MOST_LINE)
    return f"{count} of {printable(ends.template['template'], _MOST_LINE)} ended with 0: {shown}"


def _names(wanted: PlannedExpectation, ends: _Ends) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Commands that ended with 0 in this run, and those that did not."""
    well = {str(one["command"]) for one in ends.own if one.get("status") == 0}
    template = ends.template["template"]

    def named(names: Sequence[str]) -> tuple[str, ...]:
        told = (f"{template}/{one} ended with 0 ({wanted.text})" for one in names)
        return tuple(printable(one, _MOST_LINE) for one in told)

    commands = [str(one) for one in ends.template["commands"]]
    return named([one for one in commands if one in well]), named(
        [one for one in commands if one not in well]
    )
