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

SHOWN_EVENTS = 4  # of one statement at one instant, in text


def argument(key: str, value: int | str) -> str:
    """`delay=10ms` of `delay_ns`; an integer whose unit has no short form stays as it is."""
    text = units.shown(key, value)
    if key == "background_bps" and not value:
        text = "none"
    return f"{key if text == str(value) else key.rpartition('_')[0]}={text}"


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
    }


class Statements:
    """The lines of a plan's source, and where they stand. Reads them at once (PlanError)."""

    def __init__(self, plan: Plan, given: str) -> None:
        from tdl.lexer import source_lines
        from tstorm import loading

        directory = loading.recorded_plan(given)
        self.name = loading.source_name(given)
        if directory is not None:
            self.name = str(directory / plan.source_name)
        self._lines = source_lines(plan.source)

    def place(self, line: int) -> str:
        """`quickstart.tdl:8`."""
        return f"{self.name}:{line}"

    def line(self, line: int) -> str:
        """A line of the source as it is; '' if there is none such."""
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""

    def text(self, line: int) -> str:
        """A line of the source, fit for a terminal."""
        from tdl.presentation import visible

        return visible(self.line(line)).strip()

    def said(self, line: int) -> str:
        """The place and text of a statement, or that nobody wrote it."""
        if not line:
            return "not written: what is there at first (docs/timeline.md)"
        return f"{self.place(line)}: {self.text(line)}"

    def record(self, event: Event) -> dict[str, Any]:
        """An event as JSON, with its statement."""
        return {**record(event), "statement": self.text(event.line)}

    def tell(self, events: Iterable[Event], margin: str = "  ") -> Iterator[str]:
        """Lines about events of one instant, those of a statement together."""
        ordered = sorted(events, key=lambda event: (event.line, event.seq))
        for line, group in groupby(ordered, key=lambda event: event.line):
            mine = list(group)
            for event in mine[:SHOWN_EVENTS]:
                yield f"{margin}event {event.seq}: {action(event)}"
            if len(mine) > SHOWN_EVENTS:
                yield f"{margin}… and {len(mine) - SHOWN_EVENTS:,} more events of this statement"
            yield f"{margin}  {self.said(line)}"
