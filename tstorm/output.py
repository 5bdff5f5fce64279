"""What commands print: products on stdout (tables, JSON), everything else on stderr.

JSON is one document in canonical form: sorted keys, no spaces, ASCII, newline at the end. Colour is
used only on a terminal, and never when NO_COLOR is set (https://no-color.org).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

import click


def colour(stream: IO[str]) -> bool:
    """Whether `stream` may be coloured."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def note(message: str) -> None:
    """One line for the person at the terminal."""
    click.echo(message, err=True)


def to_json(value: Any) -> str:
    """`value` in canonical form, without the newline."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def emit_json(value: Any) -> None:
    """Writes one document."""
    click.echo(to_json(value))


def emit_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one array, a row a line, without holding the rows in memory."""
    write = sys.stdout.write
    opening = "["
    for row in rows:
        write(f"{opening}\n{to_json(row)}")
        opening = ","
    write("[]\n" if opening == "[" else "\n]\n")


def emit_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """Writes aligned columns; those in `right` are aligned to the right. No rows: only the head."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    bold = colour(sys.stdout)
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text = "  ".join(cells).rstrip()
        sys.stdout.write(f"\x1b[1m{text}\x1b[0m\n" if bold and number == 0 else f"{text}\n")
