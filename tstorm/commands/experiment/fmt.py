"""`tstorm fmt FILES`: canonical form, in place and atomically."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from pathlib import Path

import click

from tstorm.exit_codes import FAILED, CommandError
from tstorm.options import option_types
from tstorm.output import note, notes


def _replace(path: Path, text: str) -> None:
    """Writes `text` to `path` whole or not at all; keeps its mode, follows a symbolic link."""
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _diff(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (fmt)"
    )
    marker = "\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else f"{line}\n{marker}" for line in lines)


def _one(file: str, check: bool, diff: bool) -> bool:
    """Formats one file as asked; returns whether it was not in the canonical form."""
    from tstorm.loading import format_source, read_source, source_name

    raw = read_source(file)
    after = format_source(file, raw)
    before = raw.decode("utf-8")
    changed = after != before
    if diff:
        click.echo(_diff(source_name(file), before, after), nl=False)
    elif file == "-" and not check:
        sys.stdout.write(after)
    if changed and check:
        note(f"{source_name(file)}: not in the canonical form")
    if changed and not check and not diff and file != "-":
        try:
            _replace(Path(file), after)
        except OSError as error:
            raise CommandError(f"error: writing {file}: {error.strerror}") from error
        note(f"{file}: formatted")
    return changed


@click.command()
@click.argument("files", metavar="FILES|-", nargs=-1, required=True, type=option_types.INPUT)
@click.option("--check", is_flag=True, help="Write nothing; end with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print the changes.")
def command(files: tuple[str, ...], check: bool, diff: bool) -> None:
    """Rewrite FILES in the canonical form; '-' formats standard input to standard output.

    Comments stay. A file with a syntax error is left as it is. Files are replaced atomically.

    \b
    Examples:
      tstorm fmt quickstart.tdl
      tstorm fmt --check --diff *.tdl
      tstorm fmt - < draft.tdl
    """
    changed = failed = False
    for file in files:
        try:
            changed |= _one(file, check, diff)
        except CommandError as error:
            notes(error.message)
            failed = True
    if failed or (check and changed):
        raise CommandError(code=FAILED)
