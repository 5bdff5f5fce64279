"""What a link follows: the content of a trace, as a plan has it, and what it makes of a stretch.

Two kinds, in lines of ASCII (docs/plan.md, Traces). Of *opportunities*: at each of its instants a
link delivers up to 1,504 bytes, so many times (mahimahi's mm-link(1)). Of *rows*: from the time of
each row on a link has the row's values. The lines after the first are what pktd is told of a trace
(docs/pktd.md, `steps`), word for word.

Rates are bits per second at layer 3: of opportunities those of full packets, 1,500 bytes each, and
the least and the greatest are those of whole seconds from the trace's beginning on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from compiler.plan.encoding import TRACED
from compiler.plan.format import ATTACHED, PlanError
from compiler.plan.properties import BY_FIELD, LinkState
from compiler.plan.types import PlannedTrace

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

PACKET_BITS = 1500 * 8  # of a full packet, at layer 3; with mahimahi's 4 bytes an opportunity's
MS, SECOND = 10**6, 10**9
MOST_STEPS = 1 << 25  # pktd has room for as many
_LINE = 1_000  # steps
_WORDS = {BY_FIELD[field].word: field for field in TRACED}
_OPPORTUNITIES, _ROWS = "opportunities", "rows"


class TraceRange(NamedTuple):
    """Of one property over a stretch of time."""

    mean: int
    least: int
    most: int


class TraceRow(NamedTuple):
    at_ns: int
    values: tuple[int, ...]  # by `fields`


@dataclass(frozen=True)
class Opportunities:
    """`totals` counts those up to each instant, its own included."""

    at_ms: Sequence[int]
    totals: Sequence[int]

    fields = ("rate_bps",)

    @property
    def period_ns(self) -> int:
        return self.at_ms[-1] * MS

    @property
    def means(self) -> tuple[int, ...]:
        return (max(self.totals[-1] * PACKET_BITS * SECOND // self.period_ns, 1),)

    def _count(self, until_ns: int) -> int:
        """Until then, an opportunity at that moment included; 0 before the beginning."""
        if until_ns < 0:
            return 0
        rounds, rest = divmod(until_ns, self.period_ns)
        step = bisect_right(self.at_ms, rest // MS)
        return rounds * self.totals[-1] + (self.totals[step - 1] if step else 0)

    def bits(self, begin_ns: int, end_ns: int, *, holds: bool = False) -> int:  # noqa: ARG002
        """That full packets may have from one time since its beginning to another."""
        return (self._count(end_ns) - self._count(begin_ns)) * PACKET_BITS

    def when(self, since_ns: int, size: int, *, holds: bool = False) -> int:  # noqa: ARG002
        """When so many bytes of full packets that wait at a time have left."""
        number = self._count(since_ns) + -(-size * 8 // PACKET_BITS)
        rounds, rest = divmod(number - 1, self.totals[-1])
        return rounds * self.period_ns + self.at_ms[bisect_left(self.totals, rest + 1)] * MS

    def ranges(self, begin_ns: int, end_ns: int, *, holds: bool) -> tuple[TraceRange, ...]:  # noqa: ARG002
        """By `fields`, of a stretch that is longer than 0."""
        whole = self.bits(begin_ns, end_ns) * SECOND // (end_ns - begin_ns)
        first, last = begin_ns // SECOND, -(-end_ns // SECOND)
        last = min(last, first + -(-self.period_ns // SECOND) * 1000)
        counts = [self._count(second * SECOND) for second in range(first, last + 1)]
        rates = [(after - before) * PACKET_BITS for before, after in pairwise(counts)]
        return (TraceRange(whole, min(rates), max(rates)),)

    def lines(self) -> Iterator[str]:
        yield f"{_OPPORTUNITIES} {self.at_ms[-1]}"
        before = zip((0, *self.at_ms), (0, *self.totals), strict=False)
        after = zip(self.at_ms, self.totals, strict=True)
        yield from filled(
            f"{at - last}" if total - known == 1 else f"{at - last}x{total - known}"
            for (last, known), (at, total) in zip(before, after, strict=False)
        )


@dataclass(frozen=True)
class Rows:
    fields: tuple[str, ...]
    period_ns: int
    rows: Sequence[TraceRow]

    @cached_property
    def _starts(self) -> list[int]:
        return [row.at_ns for row in self.rows]

    @cached_property
    def means(self) -> tuple[int, ...]:
        return tuple(one.mean for one in self.ranges(0, self.period_ns, holds=False))

    def _spans(self, begin_ns: int, end_ns: int, *, holds: bool) -> Iterator[tuple[int, int]]:
        """Which rows hold between the two times, and for how long."""
        at = max(begin_ns, 0)
        while at < end_ns:
            beyond = holds and at >= self.period_ns
            rest = self.period_ns - 1 if beyond else at % self.period_ns
            row = bisect_right(self._starts, rest) - 1
            last = row + 1 == len(self.rows)
            stop = self.period_ns if last else self._starts[row + 1]
            until = end_ns if beyond or (holds and last) else min(at - rest + stop, end_ns)
            yield row, until - at
            at = until

    def _shares(self, begin_ns: int, end_ns: int, *, holds: bool) -> Iterator[tuple[int, int]]:
        """The same in no order: all whole rounds of a loop at once."""
        begin = max(begin_ns, 0)
        rounds = 0 if holds else max(end_ns - begin, 0) // self.period_ns
        if rounds:
            for row, span in self._spans(0, self.period_ns, holds=False):
                yield row, span * rounds
        yield from self._spans(begin + rounds * self.period_ns, end_ns, holds=holds)

    def bits(self, begin_ns: int, end_ns: int, *, holds: bool = False) -> int:
        place = self.fields.index("rate_bps")
        spans = self._shares(begin_ns, end_ns, holds=holds)
        return sum(self.rows[row].values[place] * span for row, span in spans) // SECOND

    def when(self, since_ns: int, size: int, *, holds: bool = False) -> int:
        """When so many bytes that wait at a time have left."""
        place, left = self.fields.index("rate_bps"), size * 8 * SECOND
        whole = self.bits(0, self.period_ns) * SECOND
        at = since_ns
        if not holds and left > whole > 0:
            at += (left // whole) * self.period_ns
            left -= (left // whole) * whole
        for row, span in self._spans(at, at + 2 * self.period_ns + SECOND**2, holds=holds):
            rate = self.rows[row].values[place]
            if rate * span >= left:
                return at + (-(-left // rate) if left else 0)
            left -= rate * span
            at += span
        return at

    def at(self, since_ns: int, *, holds: bool) -> dict[str, int]:
        """The values that hold at a time, by field."""
        row, _ = next(self._spans(since_ns, since_ns + 1, holds=holds))
        return dict(zip(self.fields, self.rows[row].values, strict=True))

    def ranges(self, begin_ns: int, end_ns: int, *, holds: bool) -> tuple[TraceRange, ...]:
        spans = list(self._shares(begin_ns, end_ns, holds=holds))
        length = sum(span for _, span in spans)
        found = []
        for place in range(len(self.fields)):
            values = [self.rows[row].values[place] for row, _ in spans]
            weighed = sum(v * span for v, (_, span) in zip(values, spans, strict=True))
            found.append(TraceRange(weighed // length, min(values), max(values)))
        return tuple(found)

    def lines(self) -> Iterator[str]:
        words = ",".join(BY_FIELD[field].word for field in self.fields)
        yield f"{_ROWS} {words} {self.period_ns}"
        after = (row.at_ns - last for last, row in zip((0, *self._starts), self.rows, strict=False))
        steps = zip(after, self.rows, strict=True)
        yield from filled(":".join(map(str, (first, *row.values))) for first, row in steps)


Trace = Opportunities | Rows


def filled(steps: Iterable[str]) -> Iterator[str]:
    """Lines of so many words as pktd takes of one."""
    words = list(steps)
    for first in range(0, len(words), _LINE):
        yield " ".join(words[first : first + _LINE])


def encode(trace: Trace) -> bytes:
    """The one way to write it."""
    return "".join(line + "\n" for line in trace.lines()).encode("ascii")


def decode(data: bytes) -> Trace:
    """PlanError for anything but what encode() writes."""
    try:
        kind, *head = data[: data.index(b"\n")].decode("ascii").split(" ")
        words = data[data.index(b"\n") :].decode("ascii").split()
        found = _opportunities(words) if kind == _OPPORTUNITIES else _rows(head, words)
        same = encode(found) == data
    except (ValueError, IndexError, KeyError):
        same = False
    if not same:
        raise PlanError(ATTACHED, "a trace is not as tstorm writes it")
    return found


def _opportunities(words: Sequence[str]) -> Opportunities:
    steps = [word.partition("x") for word in words]
    at = accumulate(int(after) for after, _, _ in steps)
    return Opportunities(list(at), list(accumulate(int(count or 1) for _, _, count in steps)))


def _rows(head: Sequence[str], words: Sequence[str]) -> Rows:
    fields, period = head
    steps = [tuple(map(int, word.split(":"))) for word in words]
    starts = accumulate(after for after, *_ in steps)
    rows = [TraceRow(at, tuple(values)) for at, (_, *values) in zip(starts, steps, strict=True)]
    return Rows(tuple(_WORDS[word] for word in fields.split(",")), int(period), rows)


def head_words(data: bytes) -> tuple[str, ...]:
    """What pktd's `trace` is told of a trace's kind and period; `steps` has the other lines."""
    kind, *rest = data[: data.index(b"\n")].decode("ascii").split(" ")
    if kind == _OPPORTUNITIES:
        return (f"period={int(rest[0]) * MS}",)
    return (f"period={rest[1]}", f"fields={rest[0]}")


# What a link that follows a trace has in a stretch of time: on average, at least and at most.
#
# Input: a plan's traces and their contents. Output: `Followed` of one link state; and what a
# trace is called where two plans are compared, whose numbers may be others.


@dataclass(frozen=True, slots=True)
class Followed:
    name: str
    begin_ns: int
    seconds: bool  # the least and the greatest rate are those of whole seconds
    ranges: Mapping[str, TraceRange]  # by field of LinkState


class FollowedTraces:
    """Contents are decoded when they are first asked for. PlanError."""

    def __init__(self, planned: Sequence[PlannedTrace], contents: Mapping[str, bytes]) -> None:
        self._planned = planned
        self._content = cache(lambda digest: decode(contents[digest]))

    def content(self, number: int) -> tuple[PlannedTrace, Trace]:
        planned = self._planned[number - 1]
        return planned, self._content(planned.digest)

    def between(self, state: LinkState, from_ns: int, to_ns: int) -> Followed | None:
        """From one time of the plan to a later one; None for a link that follows none."""
        if not state.trace:
            return None
        planned, trace = self.content(state.trace)
        begin = max(from_ns - planned.begin_ns, 0)
        end = max(to_ns - planned.begin_ns, begin + 1)
        ranges = trace.ranges(begin, end, holds=planned.holds)
        by_field = dict(zip(trace.fields, ranges, strict=True))
        return Followed(planned.name, planned.begin_ns, isinstance(trace, Opportunities), by_field)

    def means(self, state: LinkState, from_ns: int, to_ns: int) -> LinkState:
        """The state with what its trace has on average there, in place of the whole trace's."""
        found = self.between(state, from_ns, to_ns)
        if found is None:
            return state
        values: dict[str, Any] = {name: one.mean for name, one in found.ranges.items()}
        if "rate_bps" in values:
            values["rate_bps"] = max(values["rate_bps"], 1)  # 0 is no limit
        return state._replace(**values)


def of_plan(plan: Plan) -> FollowedTraces:
    return FollowedTraces(plan.topology.traces, plan.attached.traces)


def described(planned: Sequence[PlannedTrace], number: int) -> str:
    """What it is, whatever its number: its name and content."""
    if not number:
        return "none"
    trace = planned[number - 1]
    return f"{trace.name} ({trace.digest[:12]}{', held' if trace.holds else ''})"
