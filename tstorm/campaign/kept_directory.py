"""A directory in which one command works at a time, and files of lines in it that last.

The lock (flock(2)) is on the directory itself; the kernel takes it back when the last process that
has it is gone, however it ended. What was added to a file of lines is on the disk.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from runtime.errors import RunError, unwritten
from runtime.rundir.held_directory import HeldDirectory, write_all

Opened = TypeVar("Opened", bound="OpenedDirectory")
LOCK_SECONDS = 10.0  # for processes of a command that was killed to end


class LineLog:
    """A file of lines that is there already."""

    def __init__(self, held: HeldDirectory, name: str) -> None:
        """OSError."""
        self._path = held / name
        self._descriptor = held.append_to(name)

    def add(self, line: bytes) -> None:
        """OSError becomes RunError: who cannot keep results ends."""
        try:
            write_all(self._descriptor, line)
            os.fsync(self._descriptor)
        except OSError as error:
            error.filename = str(self._path)
            raise unwritten(error) from error

    def close(self) -> None:
        os.close(self._descriptor)


class OpenedDirectory(Protocol):
    """What is known of a directory that is worked in."""

    def close(self) -> None: ...


@contextmanager
def worked_in(path: Path, begin: Callable[[HeldDirectory], Opened]) -> Iterator[Opened]:
    """What `begin` makes of the directory, which is made if it is not there, and goes again if that
    fails; it is closed in the end. RunError, also for an OSError of `begin`."""
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        held = HeldDirectory.hold(Path(os.path.realpath(path)))
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}", "give --out another directory") from error
    with _locked(held, path):
        try:
            opened = begin(held)
        except BaseException as error:
            if made:
                with suppress(OSError):
                    path.rmdir()
            if isinstance(error, OSError):
                raise unwritten(error) from error
            raise
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def _locked(held: HeldDirectory, path: Path) -> Iterator[None]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        descriptor = os.open(".", flags, dir_fd=held.descriptor)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}", "give --out another directory") from error
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RunError(
                    f"another command works in {path}", "wait for it, or give another --out"
                ) from None
            time.sleep(0.05)
        else:
            return
