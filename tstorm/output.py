"""What commands print: products on stdout (tables, JSON), everything else on stderr.

JSON is one document in canonical form: sorted keys, no spaces, ASCII, newline at the end. Colour is
used only on a terminal, and never when NO_COLOR is set (https://no-color.org).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import IO, Any

import click

BLOCK = 10_000  # rows of a table that are aligned together


def colour(stream: IO[str]) -> bool:
    """Whether `stream` may be coloured."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def note(message: str) -> None:
    """One line for the person at the terminal."""
    click.echo(message, err=True)


def line(text: str) -> None:
    """One line of a product."""
    sys.stdout.write(f"{text}\n")


def to_json(value: Any) -> str:
    """`value` in canonical form, without the newline."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def emit_json(value: Any) -> None:
    """Writes one document."""
    click.echo(to_json(value))


def emit_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one array, a row a line, without holding the rows in memory."""
    emit_json_texts(map(to_json, rows))


def emit_json_texts(texts: Iterable[str]) -> None:
    """As emit_json_rows, for rows that are JSON already."""
    write = sys.stdout.write
    opening = "["
    for text in texts:
        write(f"{opening}\n{text}")
        opening = ","
    write("[]\n" if opening == "[" else "\n]\n")


def emit_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """Writes aligned columns; those in `right` are aligned to the right. No rows: only the head.

    Of very many rows, BLOCK at a time are held in memory, and a column that gets wider stays so.
    """
    lines = chain((tuple(head),), rows)
    widths = [0] * len(head)
    bold = colour(sys.stdout)
    while block := list(islice(lines, BLOCK)):
        for i, column in enumerate(zip(*block, strict=True)):
            widths[i] = max(widths[i], *map(len, column))
        aligned = "  ".join(
            f"{{:{'>' if i in right else '<'}{width}}}" for i, width in enumerate(widths)
        )
        for line in block:
            text = aligned.format(*line).rstrip()
            sys.stdout.write(f"\x1b[1m{text}\x1b[0m\n" if bold else f"{text}\n")
            bold = False
