"""Temporary directories that do not outlive their makers, not even those that were killed.

`.STEM.PID-N.tmp` in a directory of the caller's choice; its maker holds a lock (flock(2)) on it,
which ends with the process. So the unlocked ones are dead, and whoever makes the next removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import itertools
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Names never come back in a process: somebody may still be removing what had the last one.
_NUMBERS = itertools.count()


@contextlib.contextmanager
def directory(parent: Path, stem: str) -> Iterator[Path]:
    """A new directory in `parent`. Whatever is left of it at the end is removed. OSError if none
    can be made."""
    sweep(parent, stem)
    path, lock = _make(parent, stem)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


@contextlib.contextmanager
def filled(parent: Path, stem: str, files: Mapping[str, bytes]) -> Iterator[Path]:
    """The same with files in it. OSError."""
    with directory(parent, stem) as path:
        fill(path, files)
        yield path


def fill(path: Path, files: Mapping[str, bytes]) -> None:
    """OSError."""
    for name, data in files.items():
        (path / name).write_bytes(data)


def numbered_name(stem: str, number: int) -> str:
    return f".{stem}.{number}-0.tmp"


@contextlib.contextmanager
def numbered(parent: Path, stem: str, number: int) -> Iterator[Path]:
    """The same under a name that says nothing of the process, for callers that take turns: so it is
    what it was the last time, for whoever reads it."""
    sweep(parent, stem)
    path = parent / numbered_name(stem, number)
    path.mkdir(mode=0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _make(parent: Path, stem: str) -> tuple[Path, int]:
    for number in _NUMBERS:
        path = parent / f".{stem}.{os.getpid()}-{number}.tmp"
        try:
            path.mkdir(mode=0o755)
        except FileExistsError:
            continue
        try:
            lock = os.open(path, _OPEN)
        except FileNotFoundError:
            continue  # swept away between making and locking it
        except PermissionError as error:
            path.rmdir()
            reason = f"{error.strerror} (the umask takes your own rights away: umask 022)"
            raise PermissionError(error.errno, reason, str(path)) from error
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        os.close(lock)
    raise AssertionError("unreachable")


def sweep(parent: Path, stem: str) -> None:
    """Removes what killed makers left. `.old` is what a plan that was being replaced becomes where
    directories cannot be swapped."""
    left = re.compile(rf"\.{re.escape(stem)}\.\d+-\d+\.(tmp|old)")
    for path in sorted(parent.glob(f".{glob.escape(stem)}.*")):
        if not left.fullmatch(path.name):
            continue
        remove_if_left(path)


def remove_if_left(path: Path) -> None:
    """Removes a directory that nobody has a lock on."""
    with contextlib.suppress(OSError):  # gone meanwhile, or locked by its maker
        lock = os.open(path, _OPEN)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
