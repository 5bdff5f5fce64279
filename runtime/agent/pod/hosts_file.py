"""Writes the names of an experiment's instances into /etc/hosts of a container.

The lines that the container has stay; ours are one block, which the next one replaces. Engines
mount this file into the container by itself, so it is changed where it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from runtime.agent.pod.container_files import open_regular
from runtime.agent.pod.podprocesses import PROC

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
