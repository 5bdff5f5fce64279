"""What programs of an instance sync, heard before it is done.

The instance's first process hears what they ask of their disk (tcal_c/ns/faults.c) and passes on by
a socket what syncs and truncates, and writes that are synced when they return (O_DSYNC), but for
calls that fail. Each waits until it is answered here, so that what is synced is what the program
has written by then. Calls on files outside of the instance's directory are let through.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from runtime.backend.local.disk import Disk

# struct seccomp_notif: id, pid, flags, call, architecture, instruction, six arguments.
_HEARD = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
_CALLER = struct.Struct("=3i")  # struct ucred: process, user, group
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_MOST_PATH = _PAGE = 4096

# Of x86-64, the only processor that virtual time has.
_OPEN, _CREAT, _OPENAT, _OPENAT2 = 2, 85, 257, 437
_TRUNCATE, _FTRUNCATE = 76, 77
_MSYNC, _FSYNC, _FDATASYNC, _SYNC, _SYNCFS = 26, 74, 75, 162, 306
_OF_DESCRIPTORS = (_FTRUNCATE, _FSYNC, _FDATASYNC)
_WRITE, _WRITEV, _PWRITE64, _PWRITEV, _PWRITEV2 = 1, 20, 18, 296, 328
_WRITES = (_WRITE, _WRITEV, _PWRITE64, _PWRITEV, _PWRITEV2)
_RWF_APPEND, _RWF_NOAPPEND = 0x10, 0x20
_PART = struct.Struct("=QQ")  # struct iovec: address, length
_UNNAMED = " (deleted)"  # behind the path that a file had, in /proc/PID/maps
_MOST_PARTS, _MOST_WRITTEN = 1024, 0x7FFFF000
_HERE = 2**32 - 100  # AT_FDCWD
_LONGEST = 2**63 - 1
_AT_POSITION = 2**64 - 1


class _Relay:
    """A socket of the instance's first process, which hears the calls before us. In its PID
    namespace they have other numbers: ours are in the credentials of a record."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self.descriptor = descriptor
        self.is_over = False  # nobody is left who could be heard

    def receive(self) -> tuple[bytes, int] | None:
        """A record, and who calls."""
        record, more, _, _ = self._socket.recvmsg(_HEARD.size, socket.CMSG_SPACE(_CALLER.size))
        found = [data for _, kind, data in more if kind == socket.SCM_CREDENTIALS]
        self.is_over = not record
        return (record, _CALLER.unpack(found[0])[0]) if record and found else None

    def answer(self, record: bytes) -> None:
        with suppress(ConnectionError):
            self._socket.send(record)

    def close(self) -> None:
        self._socket.close()


class SyncWatch:
    """Of one program of an instance and all that it starts, until they have ended. `descriptor`: of
    the socket."""

    def __init__(self, descriptor: int, disk: Disk) -> None:
        self._disk = disk
        self._calls = _Relay(descriptor)
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        self._loop.add_reader(self._calls.descriptor, self._hear)

    def _hear(self) -> None:
        heard = self._calls.receive()
        if heard is None:
            if self._calls.is_over:
                self._loop.remove_reader(self._calls.descriptor)
                self._calls.close()
            return
        record, pid = heard
        number, _, _, call, _, _, *arguments = _HEARD.unpack(record)
        try:
            self._take(pid, call, arguments)
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            pass  # the call will fail as well, or whoever called has been killed
        except OSError as error:
            self._disk.failed = error
        self._calls.answer(_ANSWER.pack(number, 0, 0, _GO_ON))

    def _take(self, pid: int, call: int, arguments: list[int]) -> None:
        if call in (_SYNC, _SYNCFS):
            self._disk.sync_all()
        elif call in _OF_DESCRIPTORS:
            self._of_file(call, f"/proc/{pid}/fd/{arguments[0] & 0xFFFFFFFF}", arguments[1])
        elif call in _WRITES:
            self._written(pid, call, arguments)
        elif call == _MSYNC:
            for inode, path in _mapped(pid, arguments[0], arguments[1]):
                if not path.endswith(_UNNAMED):
                    self._of_file(call, f"/proc/{pid}/root{path}")
                elif self._is_ours(path):
                    self._disk.sync_unnamed(inode, path.removesuffix(_UNNAMED))
        elif call == _TRUNCATE:
            self._of_file(call, _named(pid, _HERE, arguments[0]), arguments[1])
        elif call == _OPENAT:
            self._opened(pid, arguments[0], arguments[1], arguments[2])
        elif call == _OPENAT2:
            how = _memory(pid, arguments[2], 8)
            self._opened(pid, arguments[0], arguments[1], int.from_bytes(how, "little"))
        else:
            flags = os.O_TRUNC if call == _CREAT else arguments[1]
            self._opened(pid, _HERE, arguments[0], flags)

    def _of_file(self, call: int, path: str, length: int = 0) -> None:
        if not self._is_ours(os.path.realpath(path)):
            return
        if call in (_TRUNCATE, _FTRUNCATE):
            if length <= _LONGEST:  # else the call fails
                self._disk.truncate(path, length)
        else:
            self._disk.sync(path)

    def _opened(self, pid: int, directory: int, address: int, flags: int) -> None:
        path = os.path.realpath(_named(pid, directory, address))
        is_new = flags & os.O_CREAT and flags & os.O_EXCL
        if flags & os.O_TRUNC and not is_new and self._is_ours(path):
            self._disk.truncate(path, 0)

    def _written(self, pid: int, call: int, arguments: list[int]) -> None:
        descriptor = arguments[0] & 0xFFFFFFFF
        path = f"/proc/{pid}/fd/{descriptor}"
        if not self._is_ours(os.path.realpath(path)):
            return
        at, appends = _position(pid, descriptor)
        if call in (_PWRITE64, _PWRITEV) or (call == _PWRITEV2 and arguments[3] != _AT_POSITION):
            at = arguments[3]
        if call == _PWRITEV2 and arguments[5] & (_RWF_APPEND | _RWF_NOAPPEND):
            appends = bool(arguments[5] & _RWF_APPEND)
        try:
            data = _written_data(pid, call, arguments[1], arguments[2])
        except OSError:
            return  # the call cannot read it either
        if data and at <= _LONGEST:
            self._disk.write_through(path, None if appends else at, data)

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


def _position(pid: int, descriptor: int) -> tuple[int, bool]:
    """Where an open file is, and whether it is only appended to. OSError."""
    lines = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().splitlines()
    words = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(words["pos"]), bool(int(words["flags"], 8) & os.O_APPEND)


def _written_data(pid: int, call: int, address: int, count: int) -> bytes:
    """OSError."""
    if call in (_WRITE, _PWRITE64):
        return _memory(pid, address, min(count, _MOST_WRITTEN))
    if count > _MOST_PARTS:
        return b""  # the call is refused
    parts = _PART.iter_unpack(_memory(pid, address, count * _PART.size))
    return b"".join(_memory(pid, *one) for one in parts)


def _named(pid: int, directory: int, address: int) -> str:
    """What a path of that process is for us. OSError."""
    path = _text(pid, address)
    if path.startswith("/"):
        return f"/proc/{pid}/root{path}"
    place = directory & 0xFFFFFFFF
    base = "cwd" if place == _HERE else f"fd/{place}"
    return str(Path(f"/proc/{pid}/{base}").readlink() / path)


def _mapped(pid: int, address: int, length: int) -> list[tuple[int, str]]:
    """The files that a part of its memory shows: inode and path. OSError."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, _, _, _, inode, *path = line.split(maxsplit=5)
        begin, end = (int(one, 16) for one in span.split("-"))
        if begin < address + length and address < end and inode != "0" and path:
            found.append((int(inode), path[0]))
    return found
