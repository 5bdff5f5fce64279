"""Results as tables: each measurement says beside its code which columns it has.

A measurement gives rows, which are written as JSON; `TABLES` in its module makes Markdown of them
for docs/performance.md. A Table does for rows that are lines of it; what needs more is a function
of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
Cell = str | Callable[[Record], object]  # a format of the row's fields, or a function of it
Tables = Iterable[Callable[[Sequence[Record]], str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by their heads, of the rows whose fields have one of the values of `only`."""

    columns: Mapping[str, Cell]
    only: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def __call__(self, rows: Sequence[Record]) -> str:
        found = [
            row for row in rows if all(row[key] in values for key, values in self.only.items())
        ]
        lines = [[_cell(cell, row) for cell in self.columns.values()] for row in found]
        return table(list(self.columns), lines)


def _cell(cell: Cell, row: Record) -> object:
    """A dash where the row lacks a field."""
    try:
        return cell.format(**row) if isinstance(cell, str) else cell(row)
    except KeyError:
        return "–"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def percent(name: str, digits: int) -> Cell:
    """A share as a percentage."""
    return lambda row: f"{row[name] * 100:.{digits}f} %"


def rate_text(rate_bps: int) -> str:
    for unit, name in ((1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1000, "kb/s")):
        if rate_bps >= unit:
            return f"{rate_bps / unit:g} {name}"
    return f"{rate_bps} b/s"
