"""Folders of runs that nobody is to keep: their command throws them away. What it leaves when it is
killed is known by a name and by a lock that nobody holds (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime.rundir.runfiles import AT_PLACE, HUNT_PLACE, SHRINK_PLACE, WHY_PLACE

PREFIXES = (AT_PLACE, SHRINK_PLACE, WHY_PLACE, HUNT_PLACE)
_NEW_SECONDS = 60.0  # whoever has just made one has not locked it yet
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def passing_place(prefix: str) -> Iterator[Path]:
    """A new folder, which goes afterwards. `prefix`: one of PREFIXES."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as place:
        lock = os.open(place, _DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(place)
        finally:
            os.close(lock)


def remove_left(in_use: Collection[Path]) -> None:
    """Removes those of this user whose command is no more, but for the ones `in_use`."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIXES) and Path(entry.path) not in in_use:
                _remove_if_left(entry.path)


def _remove_if_left(place: str) -> None:
    with suppress(OSError):
        lock = os.open(place, _DIRECTORY)
        try:
            found = os.fstat(lock)
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _NEW_SECONDS:
                return
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(lock)
