"""Hears of what becomes of files in directories (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import NamedTuple

IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE = 0x2, 0x8, 0x80, 0x100
IN_Q_OVERFLOW, IN_IGNORED = 0x4000, 0x8000
IN_ONLYDIR, IN_ISDIR = 0x1000000, 0x40000000
_HEAD = struct.Struct("iIII")  # wd, mask, cookie, length of the name
_READ_BYTES = 1 << 16


class WatchedEvent(NamedTuple):
    watch: int  # what `add` returned
    mask: int
    name: str


class Inotify:
    """Owns a descriptor, which is readable when something has happened. OSError."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _error()

    def fileno(self) -> int:
        return self._descriptor

    def add(self, path: str, mask: int) -> int:
        """The same number for a directory that is watched already."""
        found: int = self._library.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        if found < 0:
            raise _error()
        return found

    def remove(self, watch: int) -> None:
        """Nothing where its directory is gone."""
        self._library.inotify_rm_watch(self._descriptor, watch)

    def events(self, most: int = 0) -> Iterator[WatchedEvent]:
        """Those since the last call; `most`: of so many reads at most, 0: of all there are."""
        for _ in range(most) if most else repeat(None):
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                yield WatchedEvent(watch, mask, os.fsdecode(name))

    def close(self) -> None:
        os.close(self._descriptor)


class WriteWatch:
    """Writes to files in a directory. Readable when there were some. OSError."""

    def __init__(self, directory: int) -> None:
        """`directory`: its descriptor."""
        self._inotify = Inotify()
        try:
            self._inotify.add(f"/proc/self/fd/{directory}", IN_MODIFY)
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        return self._inotify.fileno()

    def names(self) -> set[str] | None:
        """Of the files that were written to since the last call; None: perhaps of all."""
        found: set[str] = set()
        lost = False
        for event in self._inotify.events():
            lost = lost or bool(event.mask & IN_Q_OVERFLOW)
            found.add(event.name)
        return None if lost else found

    def close(self) -> None:
        self._inotify.close()


class FileChange(NamedTuple):
    owner: str
    path: str
    how: str  # `written`, `moved here` or `made`


_OF_DIRECTORIES = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class FileWatch:
    """Files that appear or change in directories of their owners, by paths from there on, whose
    own directories need not be there yet. Symbolic links are not followed. A file counts when it
    is closed by who has written it, or gets its name by being renamed or linked; directories,
    sockets and the like when they are made. The same to the same file, again before anybody has
    looked, counts once. OSError."""

    def __init__(self, roots: Mapping[str, str], paths: Mapping[str, Sequence[str]]) -> None:
        """Of each owner its directory, and the paths in it."""
        self._inotify = Inotify()
        self._roots: dict[str, int] = {}  # descriptors
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        self._watched: dict[int, tuple[str, tuple[str, ...]]] = {}
        for owner in sorted(roots):
            self.add(owner, roots[owner], paths[owner])

    def fileno(self) -> int:
        return self._inotify.fileno()

    def add(self, owner: str, root: str, paths: Sequence[str]) -> None:
        """From now on these, instead of what it had before. What is there by now does not count."""
        self.forget(owner)
        self._roots[owner] = os.open(root, _STEP)
        self._paths[owner] = [tuple(one.split("/")) for one in sorted(paths)]
        for path in self._paths[owner]:
            for _ in self._watch(owner, path, 0):
                pass  # it is there already

    def forget(self, owner: str) -> None:
        for watch in [one for one, (whose, _) in self._watched.items() if whose == owner]:
            del self._watched[watch]
            self._inotify.remove(watch)
        if owner in self._roots:
            os.close(self._roots.pop(owner))

    def _watch(self, owner: str, path: tuple[str, ...], depth: int) -> Iterator[FileChange]:
        """What of the path is there, from `depth` of its parts on; what it leads to has appeared if
        it is there, too."""
        for end in range(depth, len(path)):
            try:
                with self._opened(owner, path[:end]) as there:
                    watch = self._inotify.add(f"/proc/self/fd/{there}", _OF_DIRECTORIES)
            except (FileNotFoundError, NotADirectoryError):
                return
            self._watched[watch] = owner, path[:end]
        with suppress(FileNotFoundError, NotADirectoryError):
            self._status(owner, path)
            yield FileChange(owner, "/".join(path), "made")

    @contextmanager
    def _opened(self, owner: str, path: tuple[str, ...]) -> Iterator[int]:
        """The directory, step by step: no link on the way leads out of the root."""
        there = os.dup(self._roots[owner])
        try:
            for name in path:
                before, there = there, os.open(name, _STEP | os.O_NOFOLLOW, dir_fd=there)
                os.close(before)
            yield there
        finally:
            os.close(there)

    def _status(self, owner: str, path: tuple[str, ...]) -> os.stat_result:
        """Of what stands there, also of a link."""
        with self._opened(owner, path[:-1]) as there:
            return os.stat(path[-1], dir_fd=there, follow_symlinks=False)

    def changes(self, most: int = 0) -> Iterator[FileChange]:
        """Those since the last call, in their order; `most`: of so many reads of the kernel's queue
        at most. OverflowError if some were lost."""
        for event in self._inotify.events(most):
            if event.mask & IN_Q_OVERFLOW:
                raise OverflowError("too many files changed at once: some were not heard of")
            if event.mask & IN_IGNORED:
                self._watched.pop(event.watch, None)
            elif event.watch in self._watched:
                owner, directory = self._watched[event.watch]
                yield from self._of(owner, (*directory, event.name), event.mask)

    def _of(self, owner: str, found: tuple[str, ...], mask: int) -> Iterator[FileChange]:
        for path in self._paths[owner]:
            if path == found and (how := self._how(owner, path, mask)):
                yield FileChange(owner, "/".join(path), how)
            elif path[: len(found)] == found and mask & IN_ISDIR and path != found:
                yield from self._watch(owner, path, len(found))

    def _how(self, owner: str, path: tuple[str, ...], mask: int) -> str:
        """'' for a file that is being written: it counts when it is closed."""
        if mask & IN_CLOSE_WRITE:
            return "written"
        if mask & IN_MOVED_TO:
            return "moved here"
        with suppress(OSError):
            found = self._status(owner, path)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                return ""
        return "made"

    def close(self) -> None:
        for owner in list(self._roots):
            os.close(self._roots.pop(owner))
        self._inotify.close()


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
