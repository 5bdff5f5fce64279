"""Folders of runs that nobody is to keep: their command throws them away. What it leaves when it is
killed is known by a name and by a lock that nobody holds (compiler/plan/storage/scratch.py).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from compiler.plan.storage import scratch
from runtime.rundir.runfiles import AT_PLACE, HUNT_PLACE, SHRINK_PLACE, WHY_PLACE

PREFIXES = (AT_PLACE, SHRINK_PLACE, WHY_PLACE, HUNT_PLACE)
_NEW_SECONDS = 60.0  # whoever has just made one has not locked it yet


@contextmanager
def passing_place(prefix: str) -> Iterator[Path]:
    """A new folder, which goes afterwards. `prefix`: one of PREFIXES."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as place:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(place)
        finally:
            os.close(lock)


def left() -> set[Path]:
    """Those of this user, but for new ones, of which the command may be no more."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        return {Path(entry.path) for entry in entries if _may_be_left(entry)}
    return set()


def _may_be_left(entry: os.DirEntry[str]) -> bool:
    if not entry.name.startswith(PREFIXES):
        return False
    with suppress(OSError):
        found = entry.stat(follow_symlinks=False)
        return found.st_uid == os.geteuid() and time.time() - found.st_mtime >= _NEW_SECONDS
    return False


def remove(places: Iterable[Path]) -> None:
    """Those of them whose command is no more."""
    for place in places:
        scratch.remove_if_left(place)
