"""Two timelines compared: events added, removed, moved in time, with other arguments, reordered.

Input: the events of two plans. Output: entries in order of time. Algorithm: events are matched in
four rounds, in order within each: the same in everything; the same but for the time; the same kind,
target and time with other arguments; what is left is removed or added. Numbers and lines of events
do not count, so a line inserted into a source makes only its own events differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from compiler.plan.types import Event

WHAT = ("added", "removed", "moved", "changed", "reordered")


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """What became of one event; `reordered`: the first of an instant that has changed places."""

    what: str  # of WHAT
    a: Event | None  # None: added
    b: Event | None  # None: removed

    @property
    def at_ns(self) -> int:
        """When it happens, in the first timeline if it does there."""
        event = self.a or self.b
        assert event is not None
        return event.at_ns


def _args(event: Event) -> Hashable:
    return tuple(sorted(event.args.items()))


_ROUNDS: tuple[tuple[str, Callable[[Event], Hashable]], ...] = (
    ("", lambda event: (event.at_ns, event.kind, event.target, _args(event))),
    ("moved", lambda event: (event.kind, event.target, _args(event))),
    ("changed", lambda event: (event.at_ns, event.kind, event.target)),
)

Pair = tuple[Event, Event]


def compare_timelines(a: Sequence[Event], b: Sequence[Event]) -> tuple[TimelineEntry, ...]:
    """() if and only if the same happens at the same times in the same order."""
    entries: list[TimelineEntry] = []
    rest_a: Sequence[Event] = a
    rest_b: Sequence[Event] = b
    for what, key in _ROUNDS:
        pairs, rest_a, rest_b = _matched(rest_a, rest_b, key)
        if what:
            entries += (TimelineEntry(what, *pair) for pair in pairs)
        else:
            entries += _reordered(pairs)
    entries += (TimelineEntry("removed", event, None) for event in rest_a)
    entries += (TimelineEntry("added", None, event) for event in rest_b)
    return tuple(sorted(entries, key=_order))


def _order(entry: TimelineEntry) -> tuple[int, int, int, int]:
    seq_a = -1 if entry.a is None else entry.a.seq
    seq_b = -1 if entry.b is None else entry.b.seq
    return entry.at_ns, WHAT.index(entry.what), seq_a, seq_b


def _matched(
    a: Iterable[Event], b: Iterable[Event], key: Callable[[Event], Hashable]
) -> tuple[list[Pair], list[Event], list[Event]]:
    """Pairs of events with the same key, in order; and what is left of each."""
    waiting: dict[Hashable, deque[Event]] = {}
    for event in b:
        waiting.setdefault(key(event), deque()).append(event)
    pairs: list[Pair] = []
    rest_a: list[Event] = []
    for event in a:
        partners = waiting.get(key(event))
        if partners:
            pairs.append((event, partners.popleft()))
        else:
            rest_a.append(event)
    rest_b = [event for partners in waiting.values() for event in partners]
    return pairs, rest_a, sorted(rest_b, key=lambda event: event.seq)


def _reordered(pairs: Iterable[Pair]) -> Iterable[TimelineEntry]:
    """One entry for each instant whose events are the same in another order."""
    last: Pair | None = None
    told = -1
    for pair in pairs:  # by the first timeline
        same_instant = last is not None and last[0].at_ns == pair[0].at_ns
        if same_instant and last is not None and last[1].seq > pair[1].seq:
            if told != pair[0].at_ns:
                yield TimelineEntry("reordered", *pair)
            told = pair[0].at_ns
        last = pair
