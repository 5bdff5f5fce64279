"""Hears of what becomes of files in directories (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE = 0x2, 0x8, 0x80, 0x100
IN_Q_OVERFLOW, IN_IGNORED = 0x4000, 0x8000
IN_ONLYDIR, IN_DONT_FOLLOW, IN_ISDIR = 0x1000000, 0x2000000, 0x40000000
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

    def events(self) -> Iterator[WatchedEvent]:
        """Those since the last call."""
        while True:
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


_OF_DIRECTORIES = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW


class FileWatch:
    """Files that appear or change in directories of their owners, by paths from there on, whose
    own directories need not be there yet. Symbolic links are not followed. A file counts when it
    is closed by who has written it, or gets its name by being renamed or linked; directories,
    sockets and the like when they are made. The same to the same file, again before anybody has
    looked, counts once. OSError."""

    def __init__(self, roots: dict[str, str], paths: dict[str, list[str]]) -> None:
        """Of each owner its directory, and the paths in it."""
        self._inotify = Inotify()
        self._roots = roots
        self._paths = {
            owner: [tuple(one.split("/")) for one in sorted(paths[owner])] for owner in paths
        }
        self._watched: dict[int, tuple[str, tuple[str, ...]]] = {}
        for owner in sorted(roots):
            for path in self._paths[owner]:
                for _ in self._watch(owner, path, 0):
                    pass  # it is there already

    def fileno(self) -> int:
        return self._inotify.fileno()

    def _watch(self, owner: str, path: tuple[str, ...], depth: int) -> Iterator[FileChange]:
        """What of the path is there, from `depth` of its parts on; what it leads to has appeared if
        it is there, too."""
        for end in range(depth, len(path)):
            try:
                watch = self._inotify.add(self._at(owner, path[:end]), _OF_DIRECTORIES)
            except (FileNotFoundError, NotADirectoryError):
                return
            self._watched[watch] = owner, path[:end]
        if os.path.lexists(self._at(owner, path)):
            yield FileChange(owner, "/".join(path), "made")

    def _at(self, owner: str, path: tuple[str, ...]) -> str:
        return "/".join((self._roots[owner], *path))

    def changes(self) -> Iterator[FileChange]:
        """Those since the last call, in their order. OverflowError if some were lost."""
        for event in self._inotify.events():
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
            found = os.lstat(self._at(owner, path))
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                return ""
        return "made"

    def close(self) -> None:
        self._inotify.close()


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
