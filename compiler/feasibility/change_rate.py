"""TS0915: one link, bridge or instance changes again before a run can have made the change before.

Input: the timeline, and how many times faster than real time it is to run. The bounds are measured
(docs/limits.md, "How fast things can change"): what a run needs to make a change of the network,
and to end or start a program. Changes at the same instant are one change and always possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.expand.timeline import Timeline
from compiler.feasibility.statement_places import StatementPlaces
from compiler.phrases import moment, number
from compiler.plan.event_kinds import ENDINGS
from compiler.plan.types import Event
from tdl import ast
from tdl.diagnostics import Sink

NETWORK_NS = 1_000_000
PROGRAM_NS = 10_000_000

_Place = tuple[str, int]  # file and line
_PROGRAM = frozenset(("join", *ENDINGS))


@dataclass(slots=True)
class _Close:
    """Pairs of changes by the same two lines: how many, and the closest of them."""

    count: int
    gap_ns: int
    earlier: Event
    later: Event


def warn(timeline: Timeline, pace: int, places: StatementPlaces, sink: Sink) -> None:
    for (_, place), close in sorted(_close(timeline, pace).items()):
        statement = places.maker(close.later)
        assert statement is not None, "what is there by itself comes first, and at 0s"
        if isinstance(statement.action, ast.Flap) and close.earlier.place == place:
            _flap(statement, close, pace, sink)
            continue
        bound = moment(_bound(close.earlier, close.later))
        message = (
            f"{close.later.target!r} changes again {_after(close.gap_ns, pace)} after "
            f"{_what(close.earlier)}, at {moment(close.later.at_ns)}"
        )
        if close.count > 1:
            message += f", and {number(close.count - 1, 'more pair')} of changes like it"
        hint = f"a run needs {bound} between two changes: leave more time, or take one of them out"
        sink.warning("TS0915", statement.span, message, hint)


def _close(timeline: Timeline, pace: int) -> dict[tuple[_Place, _Place], _Close]:
    """By the places of both statements, the later one's last."""
    last: dict[str, Event] = {}
    found: dict[tuple[_Place, _Place], _Close] = {}
    limit = PROGRAM_NS * pace
    for event in timeline.events:
        before = last.get(event.target)
        last[event.target] = event
        if before is None:
            continue
        gap = event.at_ns - before.at_ns
        if not 0 < gap < limit or gap >= _bound(before, event) * pace:
            continue
        close = found.get((before.place, event.place))
        if close is None:
            found[before.place, event.place] = _Close(1, gap, before, event)
            continue
        close.count += 1
        if gap < close.gap_ns:
            close.gap_ns, close.earlier, close.later = gap, before, event
    return found


def _bound(before: Event, after: Event) -> int:
    return PROGRAM_NS if before.kind in _PROGRAM and after.kind in _PROGRAM else NETWORK_NS


def _flap(statement: ast.Dynamic, close: _Close, pace: int, sink: Sink) -> None:
    message = (
        f"{close.later.target!r} flaps faster than can be applied: it changes "
        f"{_after(close.gap_ns, pace)} after the change before, at {moment(close.later.at_ns)}"
    )
    hint = f"a period of {moment(NETWORK_NS * pace)} or more can be applied"
    action = statement.action
    assert isinstance(action, ast.Flap)
    if action.period_ns >= NETWORK_NS * pace:  # what is left of it at the end of the interval
        hint = "let the interval last a whole number of periods"
    sink.warning("TS0915", statement.action.span, message, hint)


def _what(event: Event) -> str:
    line = ast.said(event.place) if event.line else "its start"
    return f"the {event.kind.replace('_', ' ')} of {line}"


def _after(gap_ns: int, pace: int) -> str:
    if pace == 1:
        return moment(gap_ns)
    return f"{moment(gap_ns)} ({moment(gap_ns // pace)} at pace {pace})"
