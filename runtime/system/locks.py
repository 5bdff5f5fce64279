"""Locks that end with their holder: of open file descriptions (fcntl(2), F_OFD_SETLK).

Not flock(2): a server of files does not see its clients' flock, and sees these. What is no answer
(no support, no server) is UNKNOWN, which proves nothing.
"""

from __future__ import annotations

import fcntl
import struct
from contextlib import suppress
from pathlib import Path

FREE, HELD, UNKNOWN = "free", "held", "unknown"

_FLOCK = "hhqqi"  # struct flock: type, whence, start, length (0: to the end), pid (0 here)
# File systems of which this kernel knows every user.
_LOCAL = frozenset(
    (
        *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "xfs", "zfs"),
        *("overlay", "ramfs", "tmpfs"),
    )
)
_SHARED = frozenset(("nfs", "nfs4"))  # its server knows them, if it is asked:
_ASKED = "local_lock=none"


def take(descriptor: int) -> str:
    """Locks a file that is open for writing: FREE if it was and is locked now, HELD, UNKNOWN."""
    return _taken(descriptor, fcntl.F_WRLCK)


def wait(descriptor: int) -> None:
    """Locks a file that is open for writing, after everybody else. What cannot be locked is not."""
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, _request(fcntl.F_WRLCK))


def share(descriptor: int) -> str:
    """Locks a file that is open for reading, beside others who share it: FREE, HELD, UNKNOWN."""
    return _taken(descriptor, fcntl.F_RDLCK)


def _taken(descriptor: int, kind: int) -> str:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _request(kind))
    except BlockingIOError:
        return HELD
    except OSError:
        return UNKNOWN
    return FREE


def state(descriptor: int) -> str:
    """Whether somebody else holds it, without taking it."""
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _request(fcntl.F_WRLCK))
    except OSError:
        return UNKNOWN
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return FREE if kind == fcntl.F_UNLCK else HELD


def seen_by_all(descriptor: int) -> bool:
    """Whether everybody who can open the file sees locks of it. False if that is not known.

    Not so through FUSE, virtiofs, 9p and the like, whose locks each kernel may keep to itself.
    """
    kind, options = _file_system(descriptor)
    return kind in _LOCAL or (kind in _SHARED and _ASKED in options)


def _request(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, 0, 0, 0, 0)


def _file_system(descriptor: int) -> tuple[str, list[str]]:
    """Type and options, from /proc/self/mountinfo (proc(5))."""
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
        mount = next(line.split()[1] for line in facts if line.startswith("mnt_id:"))
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split(" ", 1)[0] == mount:
                kind, _source, options = line.partition(" - ")[2].split(" ")[:3]
                return kind, options.split(",")
    except (OSError, StopIteration, ValueError):
        pass  # a /proc that does not tell
    return "", []
