"""`expect always`, `sometimes` and `eventually`: what lines of programs are, that have a pattern.

Input: an expectation and the logs of its instances. A line *fits* if the number in it compares as
stated, if a second pattern is in it, or, where nothing is stated, by having the pattern.

- `always`: each such line fits. Where there is none, nothing was judged.
- `sometimes`: one of them does, of any instance. One run does not decide that: the names of what
  happened and of what did not are for whoever looks at many (tstorm/campaign).
- `eventually`: of each instance the last one within the interval fits.

A line that its program has not ended may be one that fits or one that does not. When lines were
written, and which may be missing, is as in `logged.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from compiler.plan.parts.expectations import PlannedExpectation
from runtime import say
from runtime.errors import RunError
from runtime.expectations import logged
from runtime.expectations.finding import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    Finding,
    MeasuredWindow,
    not_measured,
    span,
    worst,
)
from runtime.expectations.line_matching import MatchedRecord, TooLongError, matched
from runtime.expectations.logged import LogInterval
from runtime.expectations.run_evidence import RunEvidence
from runtime.json_schema import MAX_DIGITS, is_decimal
from runtime.results.loglines import LogRecord

_COMPARES: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def why_not(wanted: PlannedExpectation, found: MatchedRecord) -> str:
    """Why a line with the pattern does not fit; '' if it does."""
    if wanted.key and found.taken is None:
        return f"there is no {wanted.key} in it, or it is null"
    if wanted.op:
        if not is_decimal(found.taken):
            long = len(found.taken or "") > MAX_DIGITS
            why = f"has more than {MAX_DIGITS} characters" if long else "is no number"
            return f"{found.taken!r} {why}"
        if not _COMPARES[wanted.op](Decimal(found.taken), Decimal(wanted.number)):
            return f"{found.taken} is not {wanted.op} {wanted.number}"
    if wanted.has and not found.has:
        return f"{wanted.has!r} is not in {f'its {wanted.key}' if wanted.key else 'it'}"
    return ""


def _condition(wanted: PlannedExpectation) -> str:
    """Of what fits, in words."""
    what = f"{wanted.key} " if wanted.key else ""
    if wanted.op:
        return f"{what}{wanted.op} {wanted.number}"
    return f"{what}has {wanted.has!r}" if wanted.has else what.rstrip()


@dataclass(frozen=True, slots=True)
class _Judged:
    """A line with the pattern; `why`: why it does not fit."""

    line: LogRecord
    why: str


@dataclass(slots=True)
class _Looked:
    """What came of one log: the first line of each sort, of those that were surely within the
    interval, perhaps, or outside. `last` is the last one surely within; `behind` are perhaps within
    and come after it: the first that fits, and the first that does not. `torn`: the first of which
    nobody knows whether it fits, and `behind_torn` one after `last`."""

    missing: str  # why there may be other lines
    lines: int = 0
    wrong: int = 0
    first_wrong: _Judged | None = None
    first_fit: _Judged | None = None
    perhaps_wrong: _Judged | None = None
    perhaps_fit: _Judged | None = None
    last: _Judged | None = None
    behind_fit: _Judged | None = None
    behind_wrong: _Judged | None = None
    outside: LogRecord | None = None
    torn: LogRecord | None = None
    behind_torn: LogRecord | None = None

    def add_sure(self, one: _Judged) -> None:
        self.lines += 1
        self.last, self.behind_fit, self.behind_wrong, self.behind_torn = one, None, None, None
        if one.why:
            self.wrong += 1
            self.first_wrong = self.first_wrong or one
        else:
            self.first_fit = self.first_fit or one

    def add_perhaps(self, one: _Judged) -> None:
        if one.why:
            self.perhaps_wrong = self.perhaps_wrong or one
            self.behind_wrong = self.behind_wrong or one
        else:
            self.perhaps_fit = self.perhaps_fit or one
            self.behind_fit = self.behind_fit or one

    def add_torn(self, line: LogRecord) -> None:
        self.torn, self.behind_torn = self.torn or line, self.behind_torn or line


def _look(
    wanted: PlannedExpectation, records: RunEvidence, within: LogInterval, name: str
) -> _Looked:
    """TooLongError, RunError."""
    found = _Looked(records.why_log_incomplete(name))

    def whole_ones() -> Iterator[LogRecord]:
        for line in records.log(name):
            if not line.cut:
                yield line
            elif within.perhaps(line):
                found.missing = found.missing or logged.cut_words(records, line)

    for one in matched(wanted.pattern, whole_ones(), wanted.key, wanted.has):
        if one.doubt:
            if within.perhaps(one.line):
                found.add_torn(one.line)
        elif within.surely(one.line):
            found.add_sure(_Judged(one.line, why_not(wanted, one)))
        elif within.perhaps(one.line):
            found.add_perhaps(_Judged(one.line, why_not(wanted, one)))
        elif found.outside is None and not why_not(wanted, one):
            found.outside = one.line
    return found


def _looked_at(
    wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> Iterator[tuple[str, _Looked | Finding]]:
    """By instance. Nothing comes after one that could not be looked at: the next may take as
    long."""
    within = logged.within_of(wanted, records, seen)
    for node in wanted.nodes:
        name = records.name(node)
        try:
            yield name, _look(wanted, records, within, name)
        except TooLongError:
            yield name, logged.too_slow(wanted, name)
            return
        except RunError as error:
            yield name, not_measured(error.message, name)
            return


def _told(records: RunEvidence, one: _Judged) -> tuple[str, int | None]:
    """The line with its moment, and why it does not fit; and the moment."""
    (own,) = logged.shown(records, [one.line])
    why = f" ({one.why})" if one.why else ""
    return f"{own.instance} wrote{logged.at_words(records, one.line)}: {own.line}{why}", own.at_ns


def _undecided(
    records: RunEvidence, name: str, looked: _Looked, perhaps: _Judged | None, when: str
) -> Finding | None:
    """Why a log without a line that decides does not decide either; None if nothing is open."""
    if perhaps is not None:
        return logged.unsure(records, perhaps.line, when)
    if looked.torn is not None:
        return not_measured(logged.torn_words(records, looked.torn), name)
    return not_measured(looked.missing, name) if looked.missing else None


def judge_always(wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    failed: list[tuple[int, str, _Judged]] = []
    open_: list[Finding] = []
    lines = wrong = 0
    when = span(seen.from_ns, seen.to_ns)
    for name, looked in _looked_at(wanted, records, seen):
        if isinstance(looked, Finding):
            open_.append(looked)
            continue
        lines, wrong = lines + looked.lines, wrong + looked.wrong
        if looked.first_wrong is not None:
            failed.append((looked.first_wrong.line.place_ns, name, looked.first_wrong))
        elif undecided := _undecided(records, name, looked, looked.perhaps_wrong, when):
            open_.append(undecided)
    if failed:
        _, name, first = min(failed, key=lambda one: one[:2])
        text, at_ns = _told(records, first)
        log = () if at_ns is None else logged.around(records, [name], at_ns)
        log = log or logged.shown(records, [first.line])
        more = f"; {wrong:,} of {say.number(lines, 'such line')} do not fit" if wrong > 1 else ""
        return Finding(FAILED, text + more, at_ns=at_ns, subject=name, log=log)
    if open_:
        return open_[0]
    if not lines:
        return not_measured(f"no line has {wanted.pattern!r} in it {when}: nothing was judged")
    text = f"{say.number(lines, 'line')} {when} with {wanted.pattern!r}, each: {_condition(wanted)}"
    return Finding(PASSED, text)


def judge_sometimes(
    wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> Finding:
    open_: list[Finding] = []
    when = span(seen.from_ns, seen.to_ns)
    for name, looked in _looked_at(wanted, records, seen):
        if isinstance(looked, Finding):
            open_.append(looked)
        elif looked.first_fit is not None:
            text, at_ns = _told(records, looked.first_fit)
            log = logged.shown(records, [looked.first_fit.line])
            return Finding(
                PASSED, text, at_ns=at_ns, subject=name, log=log, happened=(wanted.text,)
            )
        elif undecided := _undecided(records, name, looked, looked.perhaps_fit, when):
            open_.append(undecided)
    if open_:
        return open_[0]
    text = f"it did not happen in this run {when}, which does not decide it: a campaign does"
    return Finding(NOT_MEASURED, text, never=() if seen.missing else (wanted.text,))


def judge_eventually(
    wanted: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> Finding:
    found = [
        looked if isinstance(looked, Finding) else _at_last(wanted, records, seen, name, looked)
        for name, looked in _looked_at(wanted, records, seen)
    ]
    return worst(found, "")


def _at_last(
    wanted: PlannedExpectation,
    records: RunEvidence,
    seen: MeasuredWindow,
    name: str,
    looked: _Looked,
) -> Finding:
    when, last = span(seen.from_ns, seen.to_ns), looked.last
    if looked.missing:
        return not_measured(looked.missing, name)
    if looked.behind_torn is not None:
        return not_measured(logged.torn_words(records, looked.behind_torn), name)
    unsure = looked.behind_wrong
    if last is None or last.why:
        unsure = looked.behind_fit
    if unsure is not None:
        return logged.unsure(records, unsure.line, when)
    if last is not None and not last.why:
        text, at_ns = _told(records, last)
        log = logged.shown(records, [last.line])
        return Finding(PASSED, f"at last {text}", at_ns=at_ns, subject=name, log=log)
    if last is None:
        text = f"no line of {name} has {wanted.pattern!r} in it {when}"
        if looked.outside is not None:
            text += f"; it wrote one{logged.at_words(records, looked.outside)}"
    else:
        text = f"at last {_told(records, last)[0]}"
    lines = logged.last(records, [name], seen.to_ns)
    return Finding(FAILED, text, at_ns=seen.to_ns, subject=name, log=lines)
