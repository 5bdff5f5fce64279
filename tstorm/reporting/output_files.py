"""Where a report or picture is written: a file or a folder, whole or not at all.

A file takes the place of a regular file that is there. A folder replaces an empty one or one that
holds nothing but files of its kind, which are known by their names and first bytes. Nothing
else is replaced: no device, no pipe, no folder of somebody's files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from compiler.plan.storage import outdir, scratch
from runtime.errors import RunError
from runtime.launch.run_status import directory_of, goes_on
from tstorm.campaign.points import is_campaign
from tstorm.exit_codes import CommandError
from tstorm.reporting.run_facts import RunFacts, gather

STDOUT = "-"
_IN_MEMORY = 1 << 20  # of what goes to standard output; more waits on the disk
_CHUNK = 1 << 16
_HEAD = 1 << 10  # of a file that may be one of ours


def put_file(target: str, pieces: Iterable[bytes]) -> None:
    """CommandError, or whatever making the pieces raises: then what was there is still there."""
    with _writing(target):
        place = Path(os.path.realpath(target))
        if place.is_dir():
            raise CommandError(f"error: {target} is a directory; name a file")
        if place.exists() and not place.is_file():
            raise CommandError(f"error: {target} is not a regular file; use '-o -' and a pipe")
        with scratch.directory(place.parent, place.name) as fresh:
            draft = fresh / place.name
            with draft.open("wb") as file:
                file.writelines(pieces)
            draft.replace(place)


def put_folder(
    target: str, files: Mapping[str, Iterable[bytes]], is_ours: Callable[[str, bytes], bool]
) -> None:
    """`is_ours` says by its name and its first bytes whether a file may be replaced. CommandError,
    or whatever making the files raises."""

    def stranger(directory: Path) -> str:
        if not directory.is_dir():
            return "is a file, and a folder is to be there"
        for path in sorted(directory.iterdir()):
            if path.is_symlink() or not path.is_file() or not is_ours(path.name, _head(path)):
                return f"holds {path.name!r}, which is no file of this command"
        return ""

    with _writing(target):
        place = Path(os.path.realpath(target))
        refusal = outdir.refusal(place, stranger)
        if refusal:
            raise CommandError(f"error: {target} {refusal}\nhint: choose another -o")
        outdir.put(place, files)


def put_stdout(pieces: Iterable[bytes]) -> None:
    """Nothing is written before all of it is there."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        while chunk := file.read(_CHUNK):
            click.echo(chunk, nl=False)
    sys.stdout.flush()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


@contextmanager
def _writing(target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"error: writing {target}: {reason}") from error


# The facts of a run that the user named: by its directory, or by its name while it goes on.


def gathered(run: str) -> RunFacts:
    """RunError, PlanError."""
    if is_campaign(run):
        raise RunError(
            f"{run} is a campaign", "name one of its runs; tstorm inspect shows them all"
        )
    directory = directory_of(run)
    return gather(directory, live=goes_on(directory))
