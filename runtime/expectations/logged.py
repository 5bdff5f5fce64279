"""`expect log` and `expect no log`: one of the instances, or none, wrote a line with the pattern.

When a line was written is known to within some 0.1 s (docs/run.md, Logs). One that may have been
written within the interval, or before or after it, proves nothing. Lines of the run's own do not
count. A log of which lines may be missing, or a line was not looked at to its end, proves nothing
by what it has not; and one that its program has not ended nothing by what it has, but for a plain
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compiler.plan.parts.expectations import NO_LOG, PlannedExpectation
from runtime.errors import RunError
from runtime.expectations.finding import (
    FAILED,
    MOST_LINES,
    NOT_MEASURED,
    PASSED,
    Finding,
    MatchedLine,
    MeasuredWindow,
    moment,
    not_measured,
    printable,
    span,
    worst,
)
from runtime.expectations.line_matching import BATCH_SECONDS, TooLongError, matched
from runtime.expectations.run_evidence import RunEvidence
from runtime.results.loglines import LINE_BYTES, LogRecord

# Lines of logs around a moment, for whoever wants to know why an expectation failed.

NEAR_NS = 1_000_000_000  # real time
MOST_INSTANCES = 8
LINE_CHARACTERS = 400


def around(records: RunEvidence, instances: Iterable[str], at_ns: int) -> tuple[MatchedLine, ...]:
    """The nearest ones of these instances, by time; `at_ns` is plan time. RunError."""
    middle_ns = records.clock.due(at_ns)
    low_ns, high_ns = middle_ns - NEAR_NS, middle_ns + NEAR_NS
    found = _merged(records, instances, low_ns, high_ns)
    place = sum(line.place_ns <= middle_ns for line in found)
    begin = max(min(place - MOST_LINES // 2, len(found) - MOST_LINES), 0)
    return shown(records, found[begin : begin + MOST_LINES])


def last(records: RunEvidence, instances: Iterable[str], until_ns: int) -> tuple[MatchedLine, ...]:
    """The last ones of these instances by then; plan time. RunError."""
    high_ns = records.clock.due(until_ns)
    found = _merged(records, instances, high_ns - 10 * NEAR_NS, high_ns)
    return shown(records, found[-MOST_LINES:])


def _merged(
    records: RunEvidence, instances: Iterable[str], low_ns: int, high_ns: int
) -> list[LogRecord]:
    """Only such as have a time: where none is known, none is near."""
    found = [
        (line.place_ns, line)
        for name in list(dict.fromkeys(instances))[:MOST_INSTANCES]
        for line in records.log(name)
        if line.until_ns is not None and line.may_be_within(low_ns, high_ns)
    ]
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def shown(records: RunEvidence, lines: Sequence[LogRecord]) -> tuple[MatchedLine, ...]:
    return tuple(_shown(records, line) for line in lines)


def _shown(records: RunEvidence, line: LogRecord) -> MatchedLine:
    at_ns = line.until_ns if line.from_ns is None else line.from_ns
    when = None if at_ns is None else records.clock.plan_time(at_ns)
    return MatchedLine(line.instance, when, printable(line.text, LINE_CHARACTERS))


EVER_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class LogInterval:
    """Real ns since the start; an end that is the run's own has no bound."""

    low_ns: int
    high_ns: int

    def surely(self, line: LogRecord) -> bool:
        low = -EVER_NS if line.from_ns is None else line.from_ns
        high = EVER_NS if line.until_ns is None else line.until_ns
        return low >= self.low_ns and high <= self.high_ns

    def perhaps(self, line: LogRecord) -> bool:
        return line.may_be_within(self.low_ns, self.high_ns)


@dataclass(frozen=True, slots=True)
class _Found:
    """The first line of each sort; None if there is none."""

    surely: LogRecord | None = None
    perhaps: LogRecord | None = None
    outside: LogRecord | None = None
    missing: str = ""  # why there may be others
    torn: LogRecord | None = None  # surely or perhaps within


def judge(expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow) -> Finding:
    of_instance = _none_expected if expectation.kind == NO_LOG else _one_expected
    within, found = within_of(expectation, records, seen), []
    for node in expectation.nodes:
        name = records.name(node)
        try:
            lines = _look(expectation, records, within, name)
        except TooLongError:
            found.append(too_slow(expectation, name))
            break  # the next one may take as long
        except RunError as error:
            found.append(not_measured(error.message, name))
            break
        found.append(of_instance(expectation, records, seen, name, lines))
    found.sort(key=lambda one: one.at_ns or 0)
    if expectation.kind != NO_LOG:
        found = _enough(found)
    return worst(found, expectation.op) if found else not_measured("it names no instance")


def too_slow(expectation: PlannedExpectation, name: str) -> Finding:
    text = f"{expectation.pattern!r} took longer than {BATCH_SECONDS:g} s for some lines of"
    return not_measured(f"{text} {name}: a simpler pattern would help", name)


def _enough(found: list[Finding]) -> list[Finding]:
    """One instance that wrote it is enough, and one that may have may be enough."""
    for state in (PASSED, NOT_MEASURED):
        for one in found:
            if one.state == state:
                return [one]
    return found


def within_of(
    expectation: PlannedExpectation, records: RunEvidence, seen: MeasuredWindow
) -> LogInterval:
    from_start = expectation.from_ns <= records.covered.from_ns
    to_end = expectation.to_ns >= records.covered.plan_end_ns
    return LogInterval(
        -EVER_NS if from_start else records.clock.due(seen.from_ns),
        EVER_NS if to_end else records.clock.due(seen.to_ns),
    )


def _look(
    expectation: PlannedExpectation, records: RunEvidence, within: LogInterval, name: str
) -> _Found:
    perhaps: LogRecord | None = None
    outside: LogRecord | None = None
    torn: LogRecord | None = None
    missing = records.why_log_incomplete(name)

    def looked_at() -> Iterator[LogRecord]:
        nonlocal missing
        for line in records.log(name):
            if line.cut and within.perhaps(line):
                missing = missing or cut_words(records, line)
            yield line

    for line, _, _, doubt in matched(expectation.pattern, looked_at()):
        if doubt:
            torn = torn or (line if within.perhaps(line) else None)
        elif within.surely(line):
            return _Found(line)
        elif within.perhaps(line):
            perhaps = perhaps or line
        else:
            outside = outside or line
    return _Found(None, perhaps, outside, missing, torn)


def torn_words(records: RunEvidence, line: LogRecord) -> str:
    (own,) = shown(records, [line])
    begun = "the line was cut, nobody knows what the whole one would have been"
    return f"{line.instance} had not ended{at_words(records, line)}: {own.line} ({begun})"


def cut_words(records: RunEvidence, line: LogRecord) -> str:
    own = f"a line of {line.instance}{at_words(records, line)}"
    rest = f"the {line.cut:,} that follow were not looked at"
    return f"{own} has more than {LINE_BYTES:,} bytes: {rest}"


def _one_expected(
    expectation: PlannedExpectation,
    records: RunEvidence,
    seen: MeasuredWindow,
    name: str,
    found: _Found,
) -> Finding:
    when = span(seen.from_ns, seen.to_ns)
    if found.surely is not None:
        (own,) = shown(records, [found.surely])
        text = f"{name} wrote{at_words(records, found.surely)}: {own.line}"
        return Finding(PASSED, text, at_ns=own.at_ns, subject=name, log=(own,))
    if found.perhaps is not None:
        return unsure(records, found.perhaps, when)
    if found.torn is not None:
        return not_measured(torn_words(records, found.torn), name)
    if found.missing:
        return not_measured(found.missing, name)
    text = f"no line of {name} has {expectation.pattern!r} in it {when}"
    if found.outside is not None:
        text += f"; it wrote one{at_words(records, found.outside)}"
    log = last(records, [name], seen.to_ns)
    return Finding(FAILED, text, at_ns=seen.to_ns, subject=name, log=log)


def _none_expected(
    expectation: PlannedExpectation,
    records: RunEvidence,
    seen: MeasuredWindow,
    name: str,
    found: _Found,
) -> Finding:
    when, line = span(seen.from_ns, seen.to_ns), found.surely
    if line is None and found.perhaps is not None:
        return unsure(records, found.perhaps, when)
    if line is None and found.torn is not None:
        return not_measured(torn_words(records, found.torn), name)
    if line is None and found.missing:
        return not_measured(found.missing, name)
    if line is None:
        text = f"no line of {name} has {expectation.pattern!r} in it {when}"
        return Finding(PASSED, text, subject=name)
    (own,) = shown(records, [line])
    log = () if own.at_ns is None else around(records, [name], own.at_ns)
    text = f"{name} wrote{at_words(records, line)}: {own.line}"
    return Finding(FAILED, text, at_ns=own.at_ns, subject=name, log=log or (own,))


def unsure(records: RunEvidence, line: LogRecord, when: str) -> Finding:
    times = [None if at is None else records.clock.plan_time(at) for at in _bounds(line)]
    low = "" if times[0] is None else f"after {moment(times[0])} and "
    high = "the end" if times[1] is None else moment(times[1])
    text = f"{line.instance} wrote such a line {low}before {high}: perhaps {when}"
    return not_measured(text, line.instance)


def _bounds(line: LogRecord) -> tuple[int | None, int | None]:
    return line.from_ns, line.until_ns


def at_words(records: RunEvidence, line: LogRecord) -> str:
    """When it was written, as well as that is known."""
    at_ns = line.until_ns if line.from_ns is None else line.from_ns
    return "" if at_ns is None else f" at {moment(records.clock.plan_time(at_ns))}"
