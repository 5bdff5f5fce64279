"""`expect linearizable` and `expect serializable`: whether the histories that clients have written
down can be explained (docs/histories.md).

The files of all instances that are named are one history. One that cannot be read, is damaged, is
about nothing or is too long proves nothing. Times of a history are of a clock that all clients
share: CLOCK_MONOTONIC, or ns since 1970 where the experiment sets the clock of none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.plan.parts.expectations import LINEARIZABLE, PlannedExpectation
from runtime.errors import RunError
from runtime.expectations import kept_files
from runtime.expectations.finding import (
    FAILED,
    PASSED,
    Finding,
    MatchedLine,
    MeasuredWindow,
    ShownOperation,
    moment,
    not_measured,
    printable,
)
from runtime.expectations.history import linearizable, serializable
from runtime.expectations.history.operations import (
    MONOTONIC_BELOW,
    OK,
    HistoryError,
    Operation,
    read,
    words_of,
)
from runtime.expectations.run_evidence import RunEvidence
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import EVENTS, HEADER

MOST_WORDS = 200  # characters of an operation
MOST_DRAWN = 400  # operations
# Before the program of an instance was started, and after the last that is known of the run: what
# two clocks of a machine may differ by, and less than any time in another unit is off.
BESIDE_NS = 5_000_000_000
WHOLE_NS = 1_000_000_000
_CLOCKS = "ns of CLOCK_MONOTONIC (time.monotonic_ns) are wanted, or since 1970"
_Moment = Callable[[int], int]  # of a time of the history, in plan time


def judge(expectation: PlannedExpectation, records: RunEvidence, _seen: MeasuredWindow) -> Finding:
    names = [records.name(node) for node in expectation.nodes]
    try:
        files = {
            name: kept_files.read(records.directory, name, expectation.path, records.unkept)
            for name in names
        }
        operations = read(files, expectation.path)
        if not operations:
            return not_measured(f"there is no operation in {expectation.path}")
        when = _clock(operations, names, records)
        if expectation.kind == LINEARIZABLE:
            return _linearizable(expectation, operations, when)
        return _serializable(operations, when)
    except HistoryError as error:
        return not_measured(printable(str(error), 2 * MOST_WORDS))
    except RunError as error:
        return not_measured(error.message)


def _clock(operations: Sequence[Operation], names: Sequence[str], records: RunEvidence) -> _Moment:
    header = next(read_lines(records.directory, EVENTS), {})
    if header.get("kind") != HEADER:
        raise HistoryError("the run ended before its time began")
    if operations[0].begin_ns < MONOTONIC_BELOW:
        zero_ns = int(header["start_monotonic_ns"])
    else:
        zero_ns = int(header["start_unix_ns"])
        for event in records.events:
            if event.get("kind") == "clock" and event.get("target") in names:
                message = f"the clock of {event['target']} was set, and the history has its time"
                raise HistoryError(f"{message}: write CLOCK_MONOTONIC (time.monotonic_ns)")
    _check_within(operations, zero_ns, names, records)
    return lambda at_ns: records.clock.plan_time(at_ns - zero_ns)


def _check_within(
    operations: Sequence[Operation], zero_ns: int, names: Sequence[str], records: RunEvidence
) -> None:
    """HistoryError for a time outside of the run, which is of another clock or in another unit."""
    first_ns, last_ns = dict.fromkeys(names, 0), records.clock.due(records.schedule.end_ns)
    for event in records.events:
        last_ns = max(last_ns, int(event.get("applied_ns", 0)))
        name = event.get("target", "")
        if name in first_ns:
            first_ns[name] = min(first_ns[name], int(event.get("started_ns", 0)))
    for one in operations:
        least_ns = zero_ns + first_ns[one.instance] - BESIDE_NS
        most_ns = zero_ns + last_ns + BESIDE_NS
        for at_ns, place in ((one.begin_ns, one.place), (one.end_ns, one.end_place)):
            if at_ns is not None and not least_ns <= at_ns <= most_ns:
                at = moment(records.clock.plan_time(at_ns - zero_ns))
                message = f"{place}: the time {at_ns} is {at}, which is not within the run"
                raise HistoryError(f"{message}: {_CLOCKS}")


def _check_fine(operations: Sequence[Operation]) -> None:
    """HistoryError for a clock by which nearly everything is concurrent, so that nothing is shown
    by an order."""
    times = {at for one in operations for at in (one.begin_ns, one.end_ns) if at is not None}
    if len(operations) > 1 and len(times) == 1:
        raise HistoryError(f"{operations[0].place}: all operations are at one moment: {_CLOCKS}")
    if not any(at % WHOLE_NS for at in times):
        raise HistoryError(f"{operations[0].place}: all times are whole seconds: {_CLOCKS}")


def _linearizable(
    expectation: PlannedExpectation, operations: Sequence[Operation], when: _Moment
) -> Finding:
    found = linearizable.check(expectation.model, operations)
    if found is None:
        _check_fine(operations)
        return Finding(PASSED, f"{words_of(operations)}, and an order that explains them")
    guilty = found.guilty
    end_ns = guilty.end_ns or guilty.begin_ns
    text = f"{_told(guilty, when)}: no order explains it ({guilty.place})"
    if len(found.keys) > 1:
        text += f", with what its process and others did at one moment at {len(found.keys)} keys"
    steps = [(one, "") for one in found.near]
    of_key = [one for one in operations if one.key in found.keys]
    return Finding(
        FAILED,
        text,
        at_ns=when(end_ns),
        subject=guilty.instance,
        log=_lines(steps, when),
        operations=_drawn(of_key, [guilty], when),
    )


def _serializable(operations: Sequence[Operation], when: _Moment) -> Finding:
    found, count = serializable.check(operations)
    if found is None:
        return Finding(PASSED, f"{words_of(operations)}, and no cycle in what they depend on")
    those = [one for one, _ in found.steps]
    last = max(those, key=lambda one: one.end_ns or one.begin_ns)
    text = f"{found.name}, {found.words}: {those[0].place}"
    if len(those) > 1:
        way = [
            f"({how}) {after.place}"
            for (_, how), after in zip(found.steps, those[1:], strict=False)
        ]
        text = f"{found.name}, {found.words}: {those[0].place} {' '.join(way)}"
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    return Finding(
        FAILED,
        printable(text, 4 * MOST_WORDS) + more,
        at_ns=when(last.end_ns or last.begin_ns),
        subject=last.instance,
        log=_lines(found.steps, when),
        operations=_drawn(operations, those, when),
    )


def _told(one: Operation, when: _Moment) -> str:
    until = "" if one.end_ns is None else f" to {moment(when(one.end_ns))}"
    words = printable(one.words, MOST_WORDS)
    return f"{words} of {one.instance}, from {moment(when(one.begin_ns))}{until}"


def _lines(steps: Sequence[tuple[Operation, str]], when: _Moment) -> tuple[MatchedLine, ...]:
    """Each operation with its length, its result and where it is written."""
    found = []
    for one, how in steps:
        end = "?" if one.end_ns is None else moment(when(one.end_ns))
        line = f"process {one.process}: {one.words} (to {end}; {one.place})"
        line = printable(line, 2 * MOST_WORDS) + (f" → {how}" if how else "")
        found.append(MatchedLine(one.instance, when(one.begin_ns), line))
    return tuple(found)


def _drawn(
    operations: Sequence[Operation], guilty: Sequence[Operation], when: _Moment
) -> tuple[ShownOperation, ...]:
    """As many as can be drawn, nearest to the guilty ones, by their begin."""
    blamed = {id(one) for one in guilty}
    middle_ns = sum(one.begin_ns for one in guilty) // len(guilty)
    near = sorted(
        operations, key=lambda one: (id(one) not in blamed, abs(one.begin_ns - middle_ns))
    )
    shown = sorted(near[:MOST_DRAWN], key=lambda one: (one.begin_ns, one.place))
    return tuple(
        ShownOperation(
            f"{one.instance} {one.process}",
            printable(one.words, MOST_WORDS),
            when(one.begin_ns),
            None if one.end_ns is None else when(one.end_ns),
            one.ended == OK,
            id(one) in blamed,
        )
        for one in shown
    )
