"""User and group numbers: which of them a run of this user can have, and whose a name is.

An ordinary user's run is in a user namespace. In it 0 is the user. More numbers are there if the
administrator has given the user ranges of them (/etc/subuid and /etc/subgid, subuid(5)) and the
programs newuidmap and newgidmap are installed: they map the ranges from 1 on.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError
from runtime.system.inroot import text_of

ETC = Path("/etc")
_PROC = Path("/proc/self")
_MAPPERS = ("newuidmap", "newgidmap")
_MOST_RANGES = 300  # the kernel takes 340
_MAX_BYTES = 4 << 20  # of a root's passwd and group, which may be anybody's
_LAST, _DIGITS = 0xFFFFFFFE, 10  # the largest number that is one


@dataclass(frozen=True, slots=True)
class IdRange:
    """`count` numbers, from `inside` on in the namespace, from `outside` on beside it."""

    inside: int
    outside: int
    count: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a program is; numbers as the run's namespace counts them."""

    name: str  # '' if the number has none
    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """As tstorm-ns takes it."""
        return ":".join(str(number) for number in (self.uid, self.gid, *self.groups))


def ranges(kind: str = "uid", etc: Path = ETC) -> tuple[IdRange, ...]:
    """What an ordinary user's namespaces are to have beside 0: of 'uid' or 'gid'. Empty for root,
    who has all, and where there is no range or no program to map it."""
    if os.geteuid() == 0 or not all(shutil.which(name) for name in _MAPPERS):
        return ()
    names = {str(os.getuid())}
    with suppress(KeyError):
        names.add(pwd.getpwuid(os.getuid()).pw_name)
    found, inside = [], 1
    for owner, start, count in _lines(etc / f"sub{kind}", 3):
        if owner in names and start.isdecimal() and count.isdecimal() and int(count):
            found.append(IdRange(inside, int(start), int(count)))
            inside += int(count)
    return tuple(found[:_MOST_RANGES])


def sandbox_arguments(etc: Path = ETC) -> tuple[str, ...]:
    """For `tstorm-ns sandbox --userns`: the numbers that its namespace is to have."""
    uids, gids = ranges("uid", etc), ranges("gid", etc)
    if not uids or not gids:
        return ()
    return ("--uids", _words(os.getuid(), uids), "--gids", _words(os.getgid(), gids))


def _words(own: int, found: Iterable[IdRange]) -> str:
    every = (IdRange(0, own, 1), *found)
    return " ".join(f"{one.inside} {one.outside} {one.count}" for one in every)


def present(kind: str = "uid", proc: Path = _PROC) -> tuple[IdRange, ...]:
    """The numbers that this process' namespace has."""
    return mapped(_text(proc / f"{kind}_map"))


def mapped(table: str) -> tuple[IdRange, ...]:
    """Of the text of a uid_map or gid_map (user_namespaces(7))."""
    found = []
    for line in table.splitlines():
        inside, outside, count = (int(word) for word in line.split())
        found.append(IdRange(inside, outside, count))
    return tuple(found)


def total(found: Iterable[IdRange]) -> int:
    """How many numbers these are."""
    return sum(one.count for one in found)


def has(number: int, found: Iterable[IdRange]) -> bool:
    return any(one.inside <= number < one.inside + one.count for one in found)


def only_one() -> bool:
    """Whether this process' namespace has one user or group number only."""
    return any(total(present(kind)) <= 1 for kind in ("uid", "gid"))


def remedy(etc: Path = ETC) -> str:
    """What an administrator has to do so that this user can have more numbers than one."""
    missing = [name for name in _MAPPERS if not shutil.which(name)]
    if missing:
        return f"install {' and '.join(missing)} (Debian: uidmap; Fedora: shadow-utils)"
    lacking = [f"/etc/sub{kind}" for kind in ("uid", "gid") if not ranges(kind, etc)]
    if lacking:
        return (
            f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"
            f" ({' and '.join(lacking)} give this user no range)"
        )
    return "newuidmap is refused: it must be set-user-ID root, and its file system not nosuid"


def resolve(user: str, root: Path, *, unknown_gid: int | None = None) -> Identity:
    """NAME or UID, with :GROUP, as etc/passwd and etc/group in `root` have them. RunError.

    The group of a number without a name is `unknown_gid`, None: the same number.
    """
    name, _, group = user.partition(":")
    entry = _passwd(name, root)
    if entry is None and not _is_number(name):
        raise RunError(f"there is no user {name!r:.100} in {root / 'etc/passwd'}")
    login, uid, gid = entry or ("", int(name), int(name) if unknown_gid is None else unknown_gid)
    if group:
        return Identity(login, uid, _group(group, root))
    more = [number for number, members in _groups(root) if login and login in members]
    return Identity(login, uid, gid, tuple(sorted({*more} - {gid})[:64]))


def _passwd(name: str, root: Path) -> tuple[str, int, int] | None:
    for login, _, uid, gid, *_rest in _split(text_of(root, "/etc/passwd", _MAX_BYTES), 7):
        if name in (login, uid) and _is_number(uid) and _is_number(gid):
            return login, int(uid), int(gid)
    return None


def _group(name: str, root: Path) -> int:
    for found, _, gid, _members in _split(text_of(root, "/etc/group", _MAX_BYTES), 4):
        if name in (found, gid) and _is_number(gid):
            return int(gid)
    if not _is_number(name):
        raise RunError(f"there is no group {name!r:.100} in {root / 'etc/group'}")
    return int(name)


def _groups(root: Path) -> Iterator[tuple[int, list[str]]]:
    for _, _, gid, members in _split(text_of(root, "/etc/group", _MAX_BYTES), 4):
        if _is_number(gid):
            yield int(gid), members.split(",")


def _is_number(word: str) -> bool:
    """Of a user or group: anybody may have written it, with as many digits as fit into a file."""
    return word.isdecimal() and len(word) <= _DIGITS and int(word) <= _LAST


def _lines(path: Path, fields: int) -> Iterator[list[str]]:
    return _split(_text(path), fields)


def _split(text: str, fields: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        words = line.strip().split(":")
        if len(words) == fields:
            yield words


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
