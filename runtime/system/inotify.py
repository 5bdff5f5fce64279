"""Hears of writes to files in a directory (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import struct

_IN_MODIFY = 0x2
_IN_Q_OVERFLOW = 0x4000
_HEAD = struct.Struct("iIII")  # wd, mask, cookie, length of the name
_READ_BYTES = 1 << 16


class WriteWatch:
    """Owns a descriptor, which is readable when something was written. OSError."""

    def __init__(self, directory: int) -> None:
        """`directory`: its descriptor."""
        library = ctypes.CDLL(None, use_errno=True)
        descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            raise _error()
        self._descriptor: int = descriptor
        path = f"/proc/self/fd/{directory}".encode()
        if library.inotify_add_watch(descriptor, path, _IN_MODIFY) < 0:
            error = _error()
            os.close(descriptor)
            raise error

    def fileno(self) -> int:
        return self._descriptor

    def names(self) -> set[str] | None:
        """Of the files that were written to since the last call; None: perhaps of all."""
        found: set[str] = set()
        lost = False
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return None if lost else found
            at = 0
            while at < len(data):
                _, mask, _, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                lost = lost or bool(mask & _IN_Q_OVERFLOW)
                found.add(os.fsdecode(name))

    def close(self) -> None:
        os.close(self._descriptor)


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
