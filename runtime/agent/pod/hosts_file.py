"""Writes the names of an experiment's instances into /etc/hosts of a container.

The lines that the container has stay; ours are one block, which the next one replaces. Engines
mount this file into the container by itself, so it is changed where it is.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from runtime.agent.pod.podprocesses import PROC

# Opens a file of a container through /proc/PID/root, whatever the container has put in its place.
#
# No link is followed, so nothing outside of the container is ever opened; nothing but a regular
# file is, so nothing waits (a FIFO, a lease) and nothing is set off (a device).

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(pid: int, path: Sequence[str], flags: int, proc: Path = PROC) -> int:
    """A descriptor of the file with these names, from the root of the process on. Raises OSError,
    also for what is no regular file or behind a link."""
    *folders, name = path
    with ExitStack() as opened:

        def keep(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        at = keep(os.open(proc / str(pid) / "root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        for folder in folders:
            at = keep(os.open(folder, _LOOK | os.O_DIRECTORY, dir_fd=at))
        file = keep(os.open(name, _LOOK, dir_fd=at))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"/{'/'.join(path)} is no regular file")
        return os.open(f"/proc/self/fd/{file}", flags | os.O_NONBLOCK | os.O_CLOEXEC)


BEGIN = b"# The experiment's instances, written by Thunderstorm\n"
END = b"# The end of Thunderstorm's lines\n"
MAX_BYTES = 8 << 20  # of the whole file
_BLOCK = re.compile(re.escape(BEGIN) + b"(?:(?!" + re.escape(BEGIN) + b").*\n)*?" + re.escape(END))


def with_block(text: bytes, lines: str) -> bytes:
    """The file's text with these lines as our block, without a block if there are none."""
    own = _BLOCK.sub(b"", text)
    if not lines:
        return own
    if own and not own.endswith(b"\n"):
        own += b"\n"
    return own + BEGIN + lines.encode("ascii") + END


def write(pid: int, lines: str, proc: Path = PROC) -> None:
    """Into /etc/hosts of the container of a process. Raises OSError."""
    file = open_regular(pid, ("etc", "hosts"), os.O_RDWR, proc)
    try:
        before = _read(file)
        after = with_block(before, lines)
        if after != before:
            _replace(file, after)
    finally:
        os.close(file)


def _read(file: int) -> bytes:
    found = b""
    while len(found) <= MAX_BYTES:
        part = os.pread(file, MAX_BYTES + 1 - len(found), len(found))
        if not part:
            return found
        found += part
    raise OSError("its /etc/hosts is larger than 8 MiB")


def _replace(file: int, text: bytes) -> None:
    done = 0
    while done < len(text):
        done += os.pwrite(file, text[done:], done)
    os.ftruncate(file, len(text))
