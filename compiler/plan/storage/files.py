"""Where the bytes of a plan come from: memory, or a directory.

A directory is opened once and its files are opened within it, so that all of them are of one plan
even if another takes its place meanwhile. Nothing is checked here but what is opened.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from compiler.plan.format import PlanError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Files(Protocol):
    """The files of a plan by name. Any use may raise PlanError."""

    def size(self, name: str) -> int: ...

    def read(self, name: str, size: int) -> bytes:
        """At most `size` bytes and one more, which shows that there are too many."""

    def parts(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes at each (offset, size); fewer where the file ends."""


class Memory:
    """The files of a plan in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def size(self, name: str) -> int:
        if name not in self.files:
            raise PlanError(name, "is missing")
        return len(self.files[name])

    def read(self, name: str, size: int) -> bytes:
        return self.files[name][: size + 1]

    def parts(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.files[name][offset : offset + size] for offset, size in ranges]


class PlanFiles:
    """The files of a plan on disk. Only regular files are opened.

    Raises PlanError if `path` is no directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        hint = "give the NAME.plan directory of a compiled experiment"
        try:
            self._descriptor = os.open(path, _DIRECTORY)
        except FileNotFoundError:
            raise PlanError(str(path), "does not exist", hint) from None
        except NotADirectoryError:
            raise PlanError(str(path), "is not a directory", hint) from None
        except (OSError, ValueError) as error:
            raise _refused(path, error) from error
        weakref.finalize(self, os.close, self._descriptor)

    def size(self, name: str) -> int:
        try:
            found = os.stat(name, dir_fd=self._descriptor)
        except OSError as error:
            raise self._error(name, error) from error
        if not stat.S_ISREG(found.st_mode):
            raise PlanError(str(self._path / name), "is not a regular file")
        return found.st_size

    def read(self, name: str, size: int) -> bytes:
        try:
            with self._open(name) as file:
                return file.read(size + 1)
        except OSError as error:
            raise self._error(name, error) from error

    def parts(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        try:
            with self._open(name) as file:
                return [os.pread(file.fileno(), size, offset) for offset, size in ranges]
        except OSError as error:
            raise self._error(name, error) from error

    def _open(self, name: str) -> BinaryIO:
        flags = os.O_RDONLY | os.O_CLOEXEC
        return os.fdopen(os.open(name, flags, dir_fd=self._descriptor), "rb")

    def _error(self, name: str, error: OSError) -> PlanError:
        if not isinstance(error, FileNotFoundError):
            return _refused(self._path / name, error)
        if self._replaced():
            return PlanError(
                str(self._path), "was replaced or removed while it was read", "try again"
            )
        return PlanError(str(self._path / name), "is missing")

    def _replaced(self) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return True


def _refused(path: Path, error: OSError | ValueError) -> PlanError:
    reason = getattr(error, "strerror", None) or str(error)
    return PlanError(str(path), f"cannot be read: {reason}", "check its permissions")
