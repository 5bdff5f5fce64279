"""Programs named with a relative path: where they are, and a copy of each in the run directory.

A run keeps the scripts that it ran (`programs/`), so a replay runs them, too, when they have
changed or are gone. Where the file is still the same, the replay takes that: what lies beside it
may be of use to it. All of this happens before the driver begins: looking at files takes time in a
guest, and a replay looks at more of them.
"""

from __future__ import annotations

import filecmp
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from runtime.errors import unwritten
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.runfiles import PROGRAMS

MOST_BYTES = 64 << 20  # a larger one is not kept
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not be waited for


def _located(word: str, source: str, kept: str) -> Path:
    """The file that a program's relative name means. `kept`: `programs/` of a recorded run."""
    original = Path(source) / word
    name = _name(word)
    if not kept or name is None:
        return original
    copy = Path(kept, name)
    with suppress(OSError):
        if copy.is_file() and not (
            original.is_file() and filecmp.cmp(original, copy, shallow=False)
        ):
            return copy
    return original


def _name(word: str) -> PurePosixPath | None:
    """In `programs/`; None for what has no place there."""
    path = PurePosixPath(word)
    return None if path.is_absolute() or ".." in path.parts else path


def keep(run: HeldDirectory, words: Iterable[str], source: str, kept: str = "") -> dict[str, str]:
    """Copies what these names mean into the run directory; returns those that mean another file
    than the one at `source`, and which. What is no file, or cannot be read, is found out when it
    is started. RunError."""
    elsewhere: dict[str, str] = {}
    kept_names: set[PurePosixPath] = set()  # `./bin/x` and `bin/x` are one file
    for word in sorted({word for word in words if "/" in word}):
        name = _name(word)
        if name is None:
            continue
        path = _located(word, source, kept)
        if path != Path(source) / word:
            elsewhere[word] = str(path)
        if name not in kept_names:
            kept_names.add(name)
            _keep(run, PurePosixPath(PROGRAMS) / name, path)
    return elsewhere


def _keep(run: HeldDirectory, name: PurePosixPath, path: Path) -> None:
    try:
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            found = os.fstat(file.fileno())
            data = file.read(MOST_BYTES + 1) if stat.S_ISREG(found.st_mode) else b""
    except (OSError, ValueError):
        return
    if stat.S_ISREG(found.st_mode) and len(data) <= MOST_BYTES:
        try:
            _copy(run, name, data, found.st_mode & 0o777)
        except OSError as error:
            raise unwritten(error) from error


def _copy(run: HeldDirectory, path: PurePosixPath, data: bytes, mode: int) -> None:
    folder = run
    for part in path.parts[:-1]:
        with suppress(FileExistsError):
            folder.make(part)
        folder = folder.enter(part)
    descriptor = folder.create(path.name)
    try:
        write_all(descriptor, data)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
