"""`expect log` and `expect no log`: whether some instance wrote a line that has a pattern in it.

When a line was written is known to within some 0.1 s (docs/run.md, Logs). One that may have been
written within the interval, or before or after it, proves nothing. Lines of the run's own do not
count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.plan.expectations import NO_LOG, Expectation
from runtime.errors import RunError
from runtime.expectations import context
from runtime.expectations.finding import FAILED, PASSED, Finding, not_measured
from runtime.expectations.matching import BATCH_SECONDS, TooLongError, matching
from runtime.expectations.records import Records
from runtime.expectations.window import Window
from runtime.expectations.words import moment, span
from runtime.options import LOCAL
from runtime.results.loglines import Line

EVER_NS = 1 << 62
NAMED = 3  # instances, in words


@dataclass(frozen=True, slots=True)
class _Within:
    """Real ns since the start; an end that is the run's own has no bound."""

    low_ns: int
    high_ns: int

    def surely(self, line: Line) -> bool:
        low = -EVER_NS if line.from_ns is None else line.from_ns
        high = EVER_NS if line.until_ns is None else line.until_ns
        return low >= self.low_ns and high <= self.high_ns

    def perhaps(self, line: Line) -> bool:
        return line.may_be_within(self.low_ns, self.high_ns)


@dataclass(frozen=True, slots=True)
class _Found:
    """The first of each; None if there is none."""

    within: Line | None
    perhaps: Line | None
    outside: Line | None


def judge(expectation: Expectation, records: Records, seen: Window) -> Finding:
    try:
        found = _look(expectation, records, _within(expectation, records, seen))
    except TooLongError:
        return not_measured(
            f"the pattern {expectation.pattern!r} took longer than {BATCH_SECONDS:g} s for some"
            " lines: a simpler one would help"
        )
    except RunError as error:
        return not_measured(error.message)
    if expectation.kind == NO_LOG:
        return _none_expected(expectation, records, seen, found)
    return _one_expected(expectation, records, seen, found)


def _within(expectation: Expectation, records: Records, seen: Window) -> _Within:
    from_start = expectation.from_ns <= records.covered.from_ns
    to_end = expectation.to_ns >= records.covered.plan_end_ns
    return _Within(
        -EVER_NS if from_start else records.clock.due(seen.from_ns),
        EVER_NS if to_end else records.clock.due(seen.to_ns),
    )


def _look(expectation: Expectation, records: Records, within: _Within) -> _Found:
    surely: list[Line] = []
    perhaps: list[Line] = []
    outside: list[Line] = []
    for node in expectation.nodes:
        first: dict[int, Line] = {}
        for line in _matches(expectation, records, node):
            kind = 0 if within.surely(line) else 1 if within.perhaps(line) else 2
            first.setdefault(kind, line)
            if kind == 0:
                break
        for kind, line in sorted(first.items()):
            (surely, perhaps, outside)[kind].append(line)
    earliest = [min(one, key=_place, default=None) for one in (surely, perhaps, outside)]
    return _Found(*earliest)


def _matches(expectation: Expectation, records: Records, node: int) -> Iterator[Line]:
    name = records.name(node)
    if records.timeline.options.backend != LOCAL and not records.has_log(name):
        raise RunError(f"there is no log of {name}")
    return matching(expectation.pattern, records.log(name))


def _place(line: Line) -> tuple[int, str]:
    return line.place_ns, line.instance


def _one_expected(
    expectation: Expectation, records: Records, seen: Window, found: _Found
) -> Finding:
    when, who = span(seen.from_ns, seen.to_ns), _names(expectation, records)
    if found.within is not None:
        log = context.shown(records, [found.within])
        text = f"{found.within.instance} wrote it{_at(records, found.within)}: {log[0].line}"
        return Finding(PASSED, text, at_ns=log[0].at_ns, subject=found.within.instance, log=log)
    if found.perhaps is not None:
        return _unsure(records, found.perhaps, when)
    text = f"no line of {who} has {expectation.pattern!r} in it {when}"
    if found.outside is not None:
        text += f"; {found.outside.instance} wrote one{_at(records, found.outside)}"
    names = [records.name(node) for node in expectation.nodes]
    log = context.last(records, names, seen.to_ns)
    return Finding(FAILED, text, at_ns=seen.to_ns, log=log)


def _none_expected(
    expectation: Expectation, records: Records, seen: Window, found: _Found
) -> Finding:
    when, who = span(seen.from_ns, seen.to_ns), _names(expectation, records)
    line = found.within
    if line is None and found.perhaps is not None:
        return _unsure(records, found.perhaps, when)
    if line is None:
        return Finding(PASSED, f"no line of {who} has {expectation.pattern!r} in it {when}")
    (own,) = context.shown(records, [line])
    log = () if own.at_ns is None else context.around(records, [line.instance], own.at_ns)
    text = f"{line.instance} wrote{_at(records, line)}: {own.line}"
    return Finding(FAILED, text, at_ns=own.at_ns, subject=line.instance, log=log or (own,))


def _unsure(records: Records, line: Line, when: str) -> Finding:
    times = [None if at is None else records.clock.plan_time(at) for at in _bounds(line)]
    low = "before the start" if times[0] is None else moment(times[0])
    high = "the end" if times[1] is None else moment(times[1])
    text = f"{line.instance} wrote such a line between {low} and {high}: perhaps {when}"
    return not_measured(text, line.instance)


def _bounds(line: Line) -> tuple[int | None, int | None]:
    return line.from_ns, line.until_ns


def _at(records: Records, line: Line) -> str:
    """When it was written, as well as that is known."""
    at_ns = line.until_ns if line.from_ns is None else line.from_ns
    return "" if at_ns is None else f" at {moment(records.clock.plan_time(at_ns))}"


def _names(expectation: Expectation, records: Records) -> str:
    names = [records.name(node) for node in expectation.nodes[:NAMED]]
    left = len(expectation.nodes) - NAMED
    return ", ".join(names) + (f" and {left} more" if left > 0 else "")
