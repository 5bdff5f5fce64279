"""Removes the data directories of instances that are not kept (`keep=no`, --discard-instances), and
of the others what nobody has changed.

Which these are stands in the manifest from the start (`discards`: services), so that whoever ends a
run that was killed removes them as well. Logs and results are elsewhere and stay.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from compiler.plan.types import Service
from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.rundir.etchosts import MOST_BYTES
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import HOSTS, INSTANCES, PRIVATE, TRIAL


def services(found: Collection[Service], options: RunOptions) -> list[str]:
    """Whose instances leave no directory, in order of declaration."""
    return [one.name for one in found if options.discard_instances or not one.keep]


def discard(run: HeldDirectory, of: Collection[str]) -> list[str]:
    """Removes the directories of all instances of these services, and what they changed in file
    systems of their own; hosts files that are as they were at first; and what trials have left that
    were killed. Returns those that are still
    there, such as those with files of other users. Twice is as good as once."""
    wanted = frozenset(of)
    try:
        homes = run.enter(INSTANCES)
        names = [
            name
            for name in homes.names()
            if name.startswith(TRIAL) or name.rpartition(".")[0] in wanted
        ]
    except OSError:
        return []
    left = [name for name in names if not _remove(homes, name)]
    return sorted({*left, *_discard_private(run, homes, wanted)})


def _discard_private(run: HeldDirectory, homes: HeldDirectory, wanted: frozenset[str]) -> list[str]:
    try:
        private = homes.enter(PRIVATE)
        names = private.names()
    except OSError:
        return []
    discarded = [name for name in names if name.rpartition(".")[0] in wanted]
    left = [name for name in discarded if not _remove(private, name)]
    with suppress(OSError, RunError):  # it is no loss if one stays
        _discard_hosts(private, run.read(HOSTS, MOST_BYTES))
    with suppress(OSError):  # others have theirs in it
        os.rmdir(PRIVATE, dir_fd=homes.descriptor)
    return left


def _discard_hosts(private: HeldDirectory, first: bytes) -> None:
    for name in private.names():
        with suppress(OSError, RunError):
            folder = private.enter(name)
            if folder.read(HOSTS, len(first)) == first:
                folder.remove(HOSTS)
                os.rmdir(name, dir_fd=private.descriptor)


def _remove(homes: HeldDirectory, name: str) -> bool:
    """Whether it is gone. No link is followed."""
    shutil.rmtree(name, ignore_errors=True, dir_fd=homes.descriptor)
    if not _is_there(homes, name):
        return True
    with suppress(OSError):
        _open_up(homes, name)
    shutil.rmtree(name, ignore_errors=True, dir_fd=homes.descriptor)
    return not _is_there(homes, name)


def _is_there(homes: HeldDirectory, name: str) -> bool:
    try:
        os.stat(name, dir_fd=homes.descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def _open_up(homes: HeldDirectory, name: str) -> None:
    """Lets the owner into all folders: some of an overlay's let nobody in. OSError."""
    for _, folders, _, descriptor in os.fwalk(name, dir_fd=homes.descriptor):
        for folder in folders:
            inner = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            try:
                if stat.S_ISDIR(os.fstat(inner).st_mode):
                    Path(f"/proc/self/fd/{inner}").chmod(0o700)
            finally:
                os.close(inner)
