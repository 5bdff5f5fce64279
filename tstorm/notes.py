"""How events and the statements they come from are told, to people and as JSON.

Input: a plan and what the user called it. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tstorm import units

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.types import Event

Place = tuple[str, int]  # file ("" is the source itself) and line
SHOWN_EVENTS = 4  # of one statement at one instant, in text


def argument(key: str, value: int | str) -> str:
    """`delay=10ms` of `delay_ns`; what has no unit that is written here stays as it is."""
    text = units.shown(key, value)
    if key == "background_bps" and not value:
        text = "none"
    return f"{units.word(key)}={text}"


def arguments(event: Event) -> str:
    """`rate=50Mb delay=10ms`: for people; the JSON form has the integers."""
    if event.kind == "background" and event.args.get("rate_bps") == 0:
        return "rate=none"
    return " ".join(argument(key, value) for key, value in sorted(event.args.items()))


def action(event: Event) -> str:
    """`set s1->s2 delay=40ms`."""
    return " ".join(part for part in (event.kind, event.target, arguments(event)) if part)


def record(event: Event) -> dict[str, Any]:
    """An event as JSON."""
    return {
        "seq": event.seq,
        "at_ns": event.at_ns,
        "kind": event.kind,
        "target": event.target,
        "args": dict(event.args),
        "line": event.line,
        "file": event.file,
    }


class Statements:
    """The lines of a plan's source and of what it includes, and where they stand.

    Reads them at once (PlanError). A place is a file and a line, as events have them.
    """

    def __init__(self, plan: Plan, given: str) -> None:
        from tdl.tokens.lexer import source_lines
        from tstorm import loading

        directory = loading.recorded_plan(given)
        self.name = loading.source_name(given)
        self._recorded = directory is not None
        if directory is not None:
            self.name = str(directory / plan.source_name)
        texts = {"": plan.source, **loading.included(plan)}
        self._lines = {file: source_lines(text) for file, text in texts.items()}

    def place(self, place: Place) -> str:
        """`quickstart.tdl:8`. A plan has included texts, not their files, and so calls them as its
        events do."""
        from tdl.presentation import named

        file, line = place
        known = file if file and self._recorded else named(self.name, file)
        return f"{known}:{line}"

    def line(self, place: Place) -> str:
        """A line of the source as it is; '' if there is none such."""
        file, line = place
        lines = self._lines.get(file, ())
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def text(self, place: Place) -> str:
        """A line of the source, fit for a terminal."""
        from tdl.presentation import visible

        return visible(self.line(place)).strip()

    def said(self, place: Place) -> str:
        """The place and text of a statement, or that nobody wrote it."""
        if not place[1]:
            return "not written: what is there at first (docs/timeline.md)"
        return f"{self.place(place)}: {self.text(place)}"

    def record(self, event: Event) -> dict[str, Any]:
        """An event as JSON, with its statement."""
        return {**record(event), "statement": self.text(event.place)}

    def tell(self, events: Iterable[Event], margin: str = "  ") -> Iterator[str]:
        """Lines about events of one instant, those of a statement together."""
        ordered = sorted(events, key=lambda event: (event.place, event.seq))
        for place, group in groupby(ordered, key=lambda event: event.place):
            mine = list(group)
            for event in mine[:SHOWN_EVENTS]:
                yield f"{margin}event {event.seq}: {action(event)}"
            if len(mine) > SHOWN_EVENTS:
                yield f"{margin}… and {len(mine) - SHOWN_EVENTS:,} more events of this statement"
            yield f"{margin}  {self.said(place)}"
