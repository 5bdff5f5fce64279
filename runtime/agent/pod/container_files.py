"""Opens a file of a container through /proc/PID/root, whatever the container has put in its place.

No link is followed, so nothing outside of the container is ever opened; nothing but a regular file
is, so nothing waits (a FIFO, a lease) and nothing is set off (a device).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from runtime.agent.pod.podprocesses import PROC

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
