"""The timeline of a plan as a chart: a row for each element, with when it is there and its events.

Input: a plan. Output: of each instance, bridge and link with an event that somebody wrote a bar
while it is up, a thin one while an instance is cut off, and a mark at what changes no state (`set`,
`background`, signals). Both directions of a link are one row where they have the same events. Rows
stand in the order of their first events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compiler.plan.event_kinds import CUT, DOWN, EVENT_KINDS, UP
from compiler.plan.reader import Plan
from tstorm.plotting import canvas, marks
from tstorm.plotting.pair_picture import Drawn
from tstorm.plotting.subject import SECOND, Subject

MOST_ROWS = 60
_ROW_INCHES = 0.3
_AFTER = {kind.word: kind.after for kind in EVENT_KINDS}
_HEIGHTS = {UP: 0.3, CUT: 0.08}


class TimelineRow(NamedTuple):
    name: str
    bars: Sequence[tuple[int, int, str]]  # from, to, UP or CUT
    marks: Sequence[int]  # times at which it changes and stays there


def rows(plan: Plan, end_ns: int) -> list[TimelineRow]:
    """PlanError."""
    happened: dict[str, list[tuple[int, str]]] = {}
    written: dict[str, None] = {}  # in order
    for event in plan.events:
        if event.target and event.at_ns <= end_ns:
            happened.setdefault(event.target, []).append((event.at_ns, event.kind))
            if event.line and (event.at_ns or _AFTER[event.kind] != UP):
                written[event.target] = None
    topology = plan.topology
    links = {link.name: number for number, link in enumerate(topology.links)}
    found, drawn = [], set[str]()
    for target in written:
        if target in drawn:
            continue
        drawn.add(target)
        name, first = target, UP
        if target in links:
            link = topology.links[links[target]]
            other = topology.links[links[target] ^ 1].name
            first = UP if link.state.up else DOWN
            if happened.get(other) == happened[target]:
                drawn.add(other)
                name = target.replace("->", "--")
        elif any(kind == "join" for _, kind in happened[target]):
            first = DOWN
        found.append(_row(name, first, happened[target], end_ns))
    return found


def _row(name: str, state: str, events: Sequence[tuple[int, str]], end_ns: int) -> TimelineRow:
    bars: list[tuple[int, int, str]] = []
    since_ns, changes = 0, []
    for at_ns, kind in events:
        if _AFTER[kind]:
            bars.append((since_ns, at_ns, state))
            since_ns, state = at_ns, _AFTER[kind]
        else:
            changes.append(at_ns)
    bars.append((since_ns, end_ns, state))
    return TimelineRow(name, [bar for bar in bars if bar[0] < bar[1] and bar[2] != DOWN], changes)


def draw(what: Subject, suffix: str) -> Drawn:
    """PlanError, CommandError."""
    plan, end_ns = what.plan, what.schedule().end_ns
    found = rows(plan, end_ns)
    shown, notes = found[:MOST_ROWS], []
    if len(found) > MOST_ROWS:
        notes.append(f"{len(found) - MOST_ROWS:,} more elements have events and are not drawn")
    if not found:
        notes.append("nothing happens in this experiment")
    with canvas.drawing() as figures:
        height = max(len(shown) * _ROW_INCHES, 0.6)
        title = f"{what.name}: who is there, and what changes"
        figure, axes = marks.panels(figures, title, 0, 0.0, end_ns / SECOND, upper=height)
        _rows(axes[0], shown)
        targets = {event.target for event in plan.events}
        missing = marks.mark(axes, marks.of(plan, targets, end_ns))
        if missing:
            notes.append(f"{missing} events are marked without their text: there is no room")
        return Drawn(canvas.encoded(figure, suffix), tuple(notes))


_COLOURS: Mapping[str, str] = {UP: canvas.SKY, CUT: canvas.ORANGE}


def _rows(axes: Any, shown: Sequence[TimelineRow]) -> None:
    low, _ = axes.get_xlim()
    for number, row in enumerate(shown):
        for begin, end, state in row.bars:
            place = (number + 0.75 - _HEIGHTS[state] / 2, _HEIGHTS[state])
            spans = [(begin / SECOND, (end - begin) / SECOND)]
            axes.broken_barh(spans, place, color=_COLOURS[state], linewidth=0, zorder=2)
        heights = [number + 0.75] * len(row.marks)
        times = [at_ns / SECOND for at_ns in row.marks]
        axes.plot(times, heights, color=canvas.BLACK, marker="|", linestyle="", zorder=3)
        words = {"fontsize": 7, "va": "center", "color": canvas.BLACK, "zorder": 4}
        axes.text(low, number + 0.35, f" {canvas.label(row.name, 60)}", **words)
    axes.set_ylim(max(len(shown), 1), 0)
    axes.set_yticks([])
