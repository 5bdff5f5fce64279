"""Directories of a user's own for what runs share: records, control sockets.

Records are in $XDG_STATE_HOME/tstorm/active (or ~/.local/state/…), sockets in
$XDG_RUNTIME_DIR/tstorm; without them both are in /tmp/tstorm-UID. All of these belong to the user,
with mode 0700. Nothing is made in a place that belongs to somebody else than root when it is root
who runs (sudo -E): then root's home, as the password database has it, or /var/lib/tstorm is taken.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from runtime.errors import RunError, filesystem_remedy, umask_fault
from runtime.system.process_scope import user_namespace_number

TEMPORARY = Path("/tmp")
SYSTEM_STATE = Path("/var/lib")
MAX_BASE = 64  # longest $XDG_RUNTIME_DIR for which a socket's path fits
_TRIES = 9  # directories in /tmp, if others were faster
_OVERFLOW = 65534  # owners without a number here, if nobody has set it otherwise (and "nobody")
_REMEDY = (
    "remove what is in the way, or point XDG_RUNTIME_DIR and XDG_STATE_HOME to directories of"
    " your own"
)


def records() -> Path:
    """Where the records are. A user without a home has them in /tmp."""
    for base in _state_bases():
        try:
            return private(base / "tstorm" / "active")
        except OSError:
            continue
    return _temporary("active")


def sockets() -> Path:
    base = _base("XDG_RUNTIME_DIR")
    if base and len(base) < MAX_BASE and not _foreign(Path(base)):
        try:
            return private(Path(base) / "tstorm")
        except OSError:
            pass  # set but not there, as under su: use the other place
    return _temporary()


def private(path: Path) -> Path:
    """Makes the directory, or checks that nobody else can put things into it."""
    if (fault := umask_fault()) and not path.exists():
        raise RunError(f"cannot make {path}: it would not be of use to you", fault)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_ours(path):
        raise RunError(f"{path} belongs to someone else or is open to others", _REMEDY)
    return path


def _is_ours(path: Path) -> bool:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    certain = user_namespace_number() == 0 and found.st_uid != _OVERFLOW
    return certain or _may_change(path)


def _may_change(path: Path) -> bool:
    """In a user namespace the same number stands for all strangers; only the owner may chmod."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # nothing is said of the directory
            what = f"cannot open {path}: {error.strerror}"
            raise RunError(what, filesystem_remedy(error)) from error
        return False
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _temporary(name: str = "") -> Path:
    """/tmp is everybody's: what another user, or another user namespace, has put there is passed
    over. RunError if too much is in the way."""
    whole = _temporary_name()
    places = [TEMPORARY / (f"{whole}.{number}" if number else whole) for number in range(_TRIES)]
    for make in (False, True):
        for place in places:
            try:
                if make:
                    place.mkdir(mode=0o700)
                if _is_ours(place):
                    return private(place / name) if name else place
            except OSError:
                continue
    raise RunError(f"cannot make {places[0]}, nor with a number behind it", _REMEDY)


def _temporary_name() -> str:
    """A user's number in a user namespace names nobody outside of it."""
    inside = user_namespace_number()
    return f"tstorm-{os.geteuid()}" + (f"-user{inside}" if inside else "")


def _base(variable: str) -> str:
    """A directory from the environment, '' if unset or relative, which means unset (XDG)."""
    value = os.environ.get(variable, "")
    return value if Path(value).is_absolute() else ""


def _state_bases() -> Iterator[Path]:
    """The wanted one first; the others only for a root whose HOME is somebody else's."""
    try:
        wanted = Path(_base("XDG_STATE_HOME") or Path("~/.local/state").expanduser())
    except RuntimeError:  # no home is known
        return
    if not _foreign(wanted / "tstorm" / "active"):
        yield wanted
        return
    for base in (_home_of_record() / ".local/state", SYSTEM_STATE):
        if base.is_absolute() and not _foreign(base / "tstorm" / "active"):
            yield base


def _home_of_record() -> Path:
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return Path()


def _foreign(path: Path) -> bool:
    """Whether root would make something where somebody else is at home."""
    if os.geteuid() != 0:
        return False  # for others the kernel decides
    for place in (path, *path.parents):
        try:
            return place.stat().st_uid != 0
        except OSError:
            continue
    return False
