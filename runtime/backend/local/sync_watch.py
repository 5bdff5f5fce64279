"""What programs of an instance ask of their disk, heard before it is done (tcal_c/ns/syncs.c).

Each call waits until it is answered here, so that what is synced is what the program has written by
then. Calls on files outside of the instance's directory are let through.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import struct
from contextlib import suppress
from pathlib import Path

from runtime.backend.local.disk import Disk

# struct seccomp_notif: id, pid, flags, call, architecture, instruction, six arguments.
_HEARD = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, _SEND
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_MOST_PATH = _PAGE = 4096

# Of x86-64, the only processor that virtual time has.
_OPEN, _CREAT, _OPENAT, _OPENAT2 = 2, 85, 257, 437
_TRUNCATE, _FTRUNCATE = 76, 77
_MSYNC, _FSYNC, _FDATASYNC, _SYNC, _SYNCFS = 26, 74, 75, 162, 306
_OF_DESCRIPTORS = (_FTRUNCATE, _FSYNC, _FDATASYNC)
_HERE = 2**32 - 100  # AT_FDCWD


class SyncWatch:
    """Of one program of an instance and all that it starts, until they have ended."""

    def __init__(self, listener: int, disk: Disk) -> None:
        self._listener, self._disk = listener, disk
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        self._loop.add_reader(self._listener, self._hear)

    def _hear(self) -> None:
        heard = bytearray(_HEARD.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, heard)
        except FileNotFoundError:  # it was killed meanwhile, or all of them have ended
            self._close_if_over()
            return
        number, pid, _, call, _, _, *arguments = _HEARD.unpack(heard)
        try:
            self._take(pid, call, arguments)
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            pass  # the call will fail as well, or whoever called has been killed
        except OSError as error:
            self._disk.failed = error
        with suppress(FileNotFoundError):
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, 0, _GO_ON))

    def _close_if_over(self) -> None:
        """Nobody is left who could be heard: the descriptor is ready for ever then."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if any(found & select.POLLHUP for _, found in poll.poll(0)):
            self.close()

    def close(self) -> None:
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1

    def _take(self, pid: int, call: int, arguments: list[int]) -> None:
        if call in (_SYNC, _SYNCFS):
            self._disk.sync_all()
        elif call in _OF_DESCRIPTORS:
            self._of_file(call, f"/proc/{pid}/fd/{arguments[0] & 0xFFFFFFFF}")
        elif call == _MSYNC:
            for path in _mapped(pid, arguments[0], arguments[1]):
                self._of_file(call, f"/proc/{pid}/root{path}")
        elif call == _TRUNCATE:
            self._of_file(call, _named(pid, _HERE, arguments[0]))
        elif call == _OPENAT:
            self._opened(pid, arguments[0], arguments[1], arguments[2])
        elif call == _OPENAT2:
            how = _memory(pid, arguments[2], 8)
            self._opened(pid, arguments[0], arguments[1], int.from_bytes(how, "little"))
        else:
            flags = os.O_TRUNC if call == _CREAT else arguments[1]
            self._opened(pid, _HERE, arguments[0], flags)

    def _of_file(self, call: int, path: str) -> None:
        if not self._is_ours(os.path.realpath(path)):
            return
        if call in (_TRUNCATE, _FTRUNCATE):
            self._disk.truncate(path)
        else:
            self._disk.sync(path)

    def _opened(self, pid: int, directory: int, address: int, flags: int) -> None:
        path = os.path.realpath(_named(pid, directory, address))
        if not self._is_ours(path):
            return
        if flags & os.O_DSYNC:
            self._disk.write_through(path)
        if flags & os.O_TRUNC:
            self._disk.truncate(path)

    def _is_ours(self, path: str) -> bool:
        root = str(self._disk.root)
        return path == root or path.startswith(f"{root}/")


def _text(pid: int, address: int) -> str:
    """Of a process's memory. OSError."""
    found = b""
    while len(found) < _MOST_PATH and b"\0" not in found:
        begin = address + len(found)
        found += _memory(pid, begin, _PAGE - begin % _PAGE)
    return os.fsdecode(found.partition(b"\0")[0])


def _memory(pid: int, address: int, length: int) -> bytes:
    """Of a process. OSError."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length)


def _named(pid: int, directory: int, address: int) -> str:
    """What a path of that process is for us. OSError."""
    path = _text(pid, address)
    if path.startswith("/"):
        return f"/proc/{pid}/root{path}"
    place = directory & 0xFFFFFFFF
    base = "cwd" if place == _HERE else f"fd/{place}"
    return str(Path(f"/proc/{pid}/{base}").readlink() / path)


def _mapped(pid: int, address: int, length: int) -> list[str]:
    """The files that a part of its memory shows. OSError."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, _, _, _, inode, *path = line.split(maxsplit=5)
        begin, end = (int(one, 16) for one in span.split("-"))
        if begin < address + length and address < end and inode != "0" and path:
            found.append(path[0])
    return found
