"""Gives an ordinary user what other user numbers of a run have left.

Files of an instance's user belong to a number out of the user's range (/etc/subuid), and the user
could not remove them. In the run's user namespace its root can give them back.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from runtime.system import compiled_programs, namespaces, userids


def give_back(place: Path) -> None:
    """Everything in `place` belongs to us (in a run's namespace its root), and we may enter each
    directory. No link is followed. What cannot be changed stays as it is."""
    with suppress(OSError):
        for _, names, files, folder in os.fwalk(place, follow_symlinks=False):
            for name in (*names, *files):
                with suppress(OSError):
                    _take(name, folder)


def _take(name: str, folder: int) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    own = os.geteuid(), os.getegid()
    if (found.st_uid, found.st_gid) != own:
        os.chown(name, *own, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
        os.chmod(name, found.st_mode & 0o777 | 0o700, dir_fd=folder)


def foreign(place: Path) -> bool:
    """Whether something in it, as far as we may look, belongs to somebody else."""
    with suppress(OSError):
        for _, names, files, folder in os.fwalk(place, follow_symlinks=False):
            for name in (*names, *files):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if found.st_uid != os.geteuid() or not found.st_mode & 0o400:
                    return True
    return False


def argv(place: Path) -> list[str]:
    """A command that does it for a run that is over. Empty if this user has one number only, so
    that there is nothing to give back. MachineError."""
    if not userids.sandbox_arguments():
        return []
    keeper = namespaces.sandbox(compiled_programs.find("tstorm-ns"))
    return [*keeper, sys.executable, "-P", "-m", "runtime.backend.local.ownership", str(place)]


if __name__ == "__main__":
    give_back(Path(sys.argv[1]))
