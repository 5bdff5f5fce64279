"""From what the user named (a plan, a run, a TDL file, `-`) to text, a compilation or a plan.

Diagnostics are printed here, once. Every failure ends as CommandError with a message that names
the file; nothing else in `tstorm` reads input files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tdl.diagnostics import Diagnostic

STDIN = "-"


def source_name(file: str) -> str:
    """What diagnostics call `file`."""
    return "stdin.tdl" if file == STDIN else file


def read_source(file: str) -> bytes:
    """The bytes of a TDL file or of standard input."""
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"error: reading {file}: {error.strerror}") from error


def _show(found: Iterable[Diagnostic], file: str, raw: bytes, form: str) -> None:
    """Prints diagnostics: text on stderr, JSON and SARIF on stdout."""
    from tdl import render

    text = raw.decode("utf-8", errors="replace")
    name = source_name(file)
    if form == "json":
        click.echo(render.render_json(found, name, text), nl=False)
    elif form == "sarif":
        click.echo(render.render_sarif(found, name, text), nl=False)
    else:
        coloured = output.colour(sys.stderr)
        click.echo(render.render_text(found, name, text, colour=coloured), nl=False, err=True)
