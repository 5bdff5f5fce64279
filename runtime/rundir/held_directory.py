"""A directory held by its descriptor, in which anybody may have put anything.

Everything in it is opened, made and replaced within the descriptor (openat(2)): no link is ever
followed, nothing but a regular file is read or written, and no name that could have been planted is
written to. A file is replaced whole: a draft with a name that nobody can foresee takes its place in
one step. So root can work in a directory of somebody else's, and no pipe, device or endless file
stops a reader.

What cannot be read is a RunError that names the file; what cannot be written is an OSError.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from runtime.errors import RunError

_HOLD = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: no waiting for a pipe's other end
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}\.new", re.ASCII)
_NO_RUN = "give the directory of a run"


class HeldDirectory:
    """`path` is absolute; in messages only, once the directory is held."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def hold(cls, path: Path) -> Self:
        """An absolute path on which there is no link, not even among its parents. OSError."""
        return cls(path, _walk(path))

    @property
    def descriptor(self) -> int:
        """For a child that is to inherit it. Stays open as long as this object lives."""
        return self._descriptor

    def enter(self, name: str) -> HeldDirectory:
        """A directory in it. OSError."""
        return HeldDirectory(self.path / name, os.open(name, _HOLD, dir_fd=self._descriptor))

    def make(self, name: str) -> HeldDirectory:
        """A new directory in it, held. OSError."""
        with self._named(name):
            os.mkdir(name, dir_fd=self._descriptor)
            return self.enter(name)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def names(self) -> list[str]:
        """What is in it, sorted. OSError."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | _SAFE, dir_fd=self._descriptor)
        try:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 - of a descriptor
        finally:
            os.close(descriptor)

    def has(self, name: str) -> bool:
        """Whether there is something of this name, whatever it is. RunError."""
        return self.status(name) is not None

    def status(self, name: str) -> os.stat_result | None:
        """Of what has this name, a link itself; None if there is nothing. RunError."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self / name, error) from error

    def target(self, name: str) -> str:
        """Where a link leads. RunError."""
        try:
            return os.readlink(name, dir_fd=self._descriptor)
        except OSError as error:
            raise _unreadable(self / name, error) from error

    def is_where_it_was(self) -> bool:
        """Whether its path still leads to it."""
        try:
            there = self.path.lstat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    # -- reading ------------------------------------------------------------------------------

    @contextmanager
    def reading(self, name: str, most_bytes: int) -> Iterator[BinaryIO]:
        """A regular file of at most so many bytes. RunError, also for what fails inside."""
        path = self / name
        try:
            with os.fdopen(os.open(name, _SAFE, dir_fd=self._descriptor), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise RunError(f"{path} is not a regular file", _NO_RUN)
                if found.st_size > most_bytes:
                    raise too_long(path, found.st_size, most_bytes)
                yield file
        except OSError as error:
            raise _unreadable(path, error) from error

    def read(self, name: str, most_bytes: int) -> bytes:
        """All of such a file. RunError."""
        with self.reading(name, most_bytes) as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:  # it grew meanwhile
            raise too_long(self / name, len(data), most_bytes)
        return data

    def tail(self, name: str, most_bytes: int) -> bytes:
        """The end of a regular file of any size. RunError."""
        with self.reading(name, 1 << 63) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - most_bytes, 0))
            return file.read(most_bytes)

    # -- writing ------------------------------------------------------------------------------

    def write(self, name: str, data: bytes, *, lasting: bool = False) -> None:
        """Whole or not at all, in the place of whatever has the name. `lasting`: on the disk, so
        that a power cut does not undo it. OSError."""
        draft = f".{name}.{secrets.token_hex(8)}.new"
        with self._named(name):
            descriptor, nameless = new_file(draft, 0o644, self._descriptor)
        try:
            with self._named(name):
                write_all(descriptor, data)
                if lasting:
                    os.fsync(descriptor)
                if nameless:
                    give_name(descriptor, draft, self._descriptor)
                self.rename(draft, name)
                if lasting:
                    self._sync()
        except BaseException:
            self.remove(draft)
            raise
        finally:
            os.close(descriptor)

    def _sync(self) -> None:
        """Its names are on the disk, where the file system can do that for a directory."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | _SAFE, dir_fd=self._descriptor)
        try:
            with suppress(OSError):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """An OSError inside names the file: a draft is nobody's business."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self / name)) from error

    def create(self, name: str, flags: int = 0) -> int:
        """Descriptor of a new empty file, to write. OSError (FileExistsError)."""
        with self._named(name):
            return os.open(name, _NEW | flags, 0o644, dir_fd=self._descriptor)

    def append_to(self, name: str) -> int:
        """Descriptor of a regular file, made if it is not there, to write at its end. OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _SAFE
        with self._named(name):
            return self._regular(os.open(name, flags, 0o644, dir_fd=self._descriptor))

    def rewriting(self, name: str) -> int:
        """Descriptor of a file that is ours alone, to write over it. OSError."""
        with self._named(name):
            descriptor = os.open(name, os.O_WRONLY | _SAFE, dir_fd=self._descriptor)
            found = os.fstat(self._regular(descriptor))
            if found.st_nlink == 1 and found.st_uid == os.geteuid():
                return descriptor
            os.close(descriptor)
            raise OSError(errno.EPERM, "it has another owner or a second name")

    def _regular(self, descriptor: int) -> int:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")

    def rename(self, old: str, new: str) -> None:
        """OSError."""
        os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """A file or link; nothing if it cannot be, or is not there."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_drafts(self) -> None:
        """What writers that were killed left. OSError."""
        for name in self.names():
            if _DRAFT.fullmatch(name):
                self.remove(name)

    def clear(self) -> None:
        """Removes everything in it, as far as that is possible."""
        with suppress(OSError):
            for name in self.names():
                self.remove(name)
                shutil.rmtree(name, ignore_errors=True, dir_fd=self._descriptor)


def new_file(name: str, mode: int, folder: int) -> tuple[int, bool]:
    """A descriptor to read and write, and whether the file has no name yet (give_name): then it
    leaves nothing if its writer is killed. Some file systems have no such files. OSError."""
    how = os.O_RDWR | _SAFE
    try:
        return os.open(".", how | os.O_TMPFILE, mode, dir_fd=folder), True
    except OSError:
        return os.open(name, how | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder), False


def give_name(descriptor: int, name: str, folder: int) -> None:
    """To a file without one. OSError."""
    # With a source folder, though an absolute path needs none: only then Python follows the link.
    os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=folder, dst_dir_fd=folder)


def append(path: Path) -> int:
    """HeldDirectory.append_to for an absolute path. OSError."""
    return HeldDirectory.hold(path.parent).append_to(path.name)


def write_all(descriptor: int, data: bytes) -> None:
    """OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def too_long(path: Path, size: int, most_bytes: int) -> RunError:
    return RunError(f"{path} has {size:,} bytes, more than the {most_bytes:,} it may have", _NO_RUN)


def _walk(path: Path) -> int:
    if not path.is_absolute() or "\0" in str(path):
        raise OSError(errno.EINVAL, "no absolute path", str(path))
    descriptor = os.open("/", _HOLD)
    for name in path.parts[1:]:
        try:
            inner = os.open(name, _HOLD, dir_fd=descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _unreadable(path: Path, error: OSError) -> RunError:
    reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
    return RunError(f"cannot read {path}: {reason}", _NO_RUN)
