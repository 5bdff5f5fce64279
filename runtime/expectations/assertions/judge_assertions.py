"""`expect assertions`: whether what programs assert of themselves holds (docs/assertions.md).

The files of all instances that are named are judged together. An `always` that was false and an
`unreachable` that was reached have failed. What some run has to come to (`sometimes`, `reachable`,
an `always` that must be hit) one run does not decide: the names of what happened and of what did
not are for whoever looks at many (tstorm/campaign). No record says when it was written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from compiler.plan.parts.expectations import PlannedExpectation
from runtime import say
from runtime.errors import RunError
from runtime.expectations import kept_files
from runtime.expectations.assertions.sdk_records import SdkAssertion, SdkRecord, SdkRecords
from runtime.expectations.finding import (
    FAILED,
    MOST_LINES,
    NOT_MEASURED,
    PASSED,
    Finding,
    MatchedLine,
    MeasuredWindow,
    printable,
)
from runtime.expectations.run_evidence import RunEvidence

MOST_NAME = 200  # characters of an assertion's
_SHOWN = 4  # names in a message


def judge(wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    told, names = SdkRecords(), [records.name(node) for node in wanted.nodes]
    for name in names:
        try:
            kept_files.read_assertions(records.directory, name, records.unkept, told)
        except RunError as error:
            told.problems.append(error.message)
    found = list(told.found.values())
    notes = "".join(f"; {printable(note, 2 * MOST_NAME)}" for note in told.notes[:_SHOWN])
    happened = tuple(_name(one, wanted) for one in found if one.waits_for and one.happened)
    missed = [one for one in found if one.waits_for and not one.happened]
    # What is missing in a run that was cut short, or of which files are, may have happened.
    known = not seen.missing and not told.problems
    never = tuple(_name(one, wanted) for one in missed) if known else ()
    violated = [(one, record) for one in found if (record := one.violated) is not None]
    if violated:
        return replace(_failed(violated, found, notes), happened=happened, never=never)
    if told.problems:
        more = f" (and {len(told.problems) - 1} more)" if len(told.problems) > 1 else ""
        text = printable(told.problems[0], 2 * MOST_NAME) + more
        return Finding(NOT_MEASURED, text + notes, happened=happened)
    if not found:
        text = f"no assertion was written by {say.some(names, _SHOWN)}"
        return Finding(NOT_MEASURED, text + notes)
    count = say.number(len(found), "assertion")
    if not missed:
        verb = "holds" if len(found) == 1 else "hold"
        return Finding(PASSED, f"{count} {verb}{notes}", happened=happened)
    shown = say.some([printable(one.name, MOST_NAME) for one in missed], _SHOWN)
    text = f"of {count} none is violated; in this run never happened: {shown}"
    text += "; one run does not decide that, a campaign does"
    return Finding(NOT_MEASURED, text + notes, happened=happened, never=never)


def _failed(
    violated: Sequence[tuple[SdkAssertion, SdkRecord]],
    found: Sequence[SdkAssertion],
    notes: str,
) -> Finding:
    lines = [
        MatchedLine(record.instance, None, printable(_words(one, record), 4 * MOST_NAME))
        for one, record in violated[:MOST_LINES]
    ]
    count = say.number(len(found), "assertion")
    more = f" ({len(violated)} of {count} failed)" if len(violated) > 1 else ""
    return Finding(
        FAILED,
        lines[0].line + more + notes,
        subject=lines[0].instance,
        log=tuple(lines),
    )


def _words(one: SdkAssertion, record: SdkRecord) -> str:
    what = "was false" if one.false is record and one.kind == "always" else "was reached"
    where = f" at {record.source}" if record.source else ""
    details = f" with {record.details}" if record.details else ""
    return f"{one.name[:MOST_NAME]} {what}{where}{details} ({record.place})"


def _name(one: SdkAssertion, wanted: PlannedExpectation) -> str:
    """The same in all runs, and of no other one."""
    whole = f"{one.name} ({wanted.text})"
    short = printable(whole, len(whole))
    if short == whole and len(whole) <= MOST_NAME:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{short[:MOST_NAME]}… {digest}"
