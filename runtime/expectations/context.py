"""Lines of logs around a moment, for whoever wants to know why an expectation failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runtime.expectations.figure_words import printable
from runtime.expectations.finding import MOST_LINES, MatchedLine
from runtime.expectations.run_evidence import RunEvidence
from runtime.results.loglines import LogRecord

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
