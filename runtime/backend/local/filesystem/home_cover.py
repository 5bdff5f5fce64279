"""Ways to what a program needs, through directories that its user may not enter.

A run directory is often below a home that is closed to others (mode 0700). A program of another
user would not reach its own working directory. So in its instance such a home is covered with an
empty directory that all may enter, and what it needs is mounted into that. Nothing is lost: the
program could not have entered the home.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from runtime.backend.local.nursery import Operation
from runtime.system.userids import Identity


def _may_enter(who: Identity, status: os.stat_result) -> bool:
    """By the mode alone: lists of rights (acl(5)) may allow more, and covering does no harm."""
    if who.uid == 0:
        return True
    if status.st_uid == who.uid:
        return bool(status.st_mode & 0o100)
    if status.st_gid in (who.gid, *who.groups):
        return bool(status.st_mode & 0o010)
    return bool(status.st_mode & 0o001)


def closed(path: Path, who: Identity) -> Path | None:
    """The outermost directory above `path` that bars the way to it; None if none does."""
    for above in reversed(path.parents):
        try:
            if not _may_enter(who, above.stat()):
                return above
        except OSError:
            return None  # it is not there: whoever needs it says so
    return None


def operations(needed: Iterable[Path], who: Identity) -> Iterator[Operation]:
    """What tstorm-ns is to do so that all of `needed` (absolute, without links) can be reached."""
    ways: dict[Path, list[Path]] = {}
    for path in sorted(set(needed)):  # what is inside of another comes after it
        barrier = closed(path, who)
        if barrier is not None and path.exists():
            ways.setdefault(barrier, []).append(path)
    for barrier, paths in ways.items():
        yield ("tmpfs", str(barrier))
        for path in paths:
            yield ("bind", str(path), str(path), "rw")
