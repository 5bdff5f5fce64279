"""What commands print: products on stdout (tables, JSON), everything else on stderr.

JSON is one document in canonical form: sorted keys, no spaces, ASCII, newline at the end. Colour is
used only on a terminal, and never when NO_COLOR is set (https://no-color.org).

Text comes from plans, runs and programs that anybody may have written. What is no visible character
(escape sequences, newlines, what turns the direction of writing round) is printed as its escape, so
that nobody who is shown a text is shown something else by it.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import click

BLOCK = 10_000  # rows of a table that are aligned together


def colour(stream: IO[str]) -> bool:
    """Whether `stream` may be coloured."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def visible(text: str) -> str:
    """On one line, without what would do something to a terminal: `\\x1b[2J` as six characters."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def drop(stream: IO[str]) -> None:
    """See runtime.system.terminal, which most commands need not import."""
    from runtime.system import terminal

    terminal.drop(stream)


def note(message: str) -> None:
    """One line for the person at the terminal; an error is red there."""
    text, red = visible(message), message.startswith("error: ") and colour(sys.stderr)
    click.echo(f"\x1b[31m{text}\x1b[0m" if red else text, err=True, color=red or None)


def notes(message: str) -> None:
    """The same, of as many lines as the message has."""
    for text in message.split("\n"):
        note(text)


@contextmanager
def kept_going(stream: IO[str], spared: type[OSError] = OSError) -> Iterator[None]:
    """What a run says does not decide what comes of it: where nobody reads (`| head`) or nothing
    can be written (a full disk), only the words are lost. `spared`: which of these is meant."""
    try:
        yield
        stream.flush()
    except spared:
        drop(stream)


def product_kept_going() -> AbstractContextManager[None]:
    """For stdout: a reader that is gone wants no more, but a product that cannot be written is an
    error."""
    return kept_going(sys.stdout, BrokenPipeError)


def line(text: str) -> None:
    """One line of a product."""
    sys.stdout.write(f"{visible(text)}\n")


def path(name: Path) -> None:
    """A name of a file for whoever goes on with it: byte for byte, except on a terminal."""
    sys.stdout.flush()
    text = str(name) if not sys.stdout.isatty() else visible(str(name))
    click.echo(os.fsencode(text))


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
    lines = chain((tuple(head),), map(_visible_row, rows))
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


def _visible_row(row: Sequence[str]) -> Sequence[str]:
    return row if "".join(row).isprintable() else tuple(map(visible, row))
