"""A file system of an instance's own: overlays on the machine's (fs=private) or on an image.

For the machine's a directory of the run (`instances/.fs/NAME/root`) becomes the root. Each
top-level directory of the machine is an overlay in it, with an upper layer beside it (`upper`). The
kernel's own file systems are as in every instance. /tmp and /run are the instance's alone; /run is
as after a boot: with the machine's directories, and without its sockets and files.

One overlay for all of / would not do: it shows no file system that is mounted below, and in a user
namespace the kernel refuses a layer that has mounts below.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from runtime.backend.local.filesystem import image_root
from runtime.backend.local.nursery import Operation
from runtime.errors import MachineError, RunError
from runtime.rundir.runfiles import TRIAL
from runtime.system import namespaces
from runtime.system.process_scope import user_namespace_number

KERNELS = ("/proc", "/sys", "/dev")
FRESH = {"/tmp": 0o1777, "/run": 0o755}
_SPOOLS = ("/var/lib", "/var/log", "/var/cache", "/var/spool")
_OVER = ("/etc/hosts", "/etc/gai.conf")  # mounted over by the run
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 0x40000
_MOUNTINFO = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class RootEntry:
    """Of the machine's root directory, or of one that holds other file systems."""

    kind: Literal["overlay", "bind", "directory", "fresh", "link"]
    path: str
    target: str = ""  # of a link


@dataclass(frozen=True, slots=True)
class Layers:
    """What all private file systems of a run are made of. `own` is where an instance has its part:
    None is its directory, else a place in memory, since the disk is no good for it."""

    entries: tuple[RootEntry, ...]
    memory: Path | None
    shared: tuple[str, ...]  # directories that cannot be overlaid: the machine's own


def survey(root: Path = Path("/"), mountinfo: Path = _MOUNTINFO) -> list[RootEntry]:
    """What is in the machine's root directory. OSError."""
    lines = mountinfo.read_text(errors="surrogateescape").splitlines()
    points = {_unescaped(line.split()[4]) for line in lines if line}
    folders = {point for point in points if (root / point.lstrip("/")).is_dir()}
    return list(_survey(root, "/", folders))


def _unescaped(point: str) -> str:
    """Of a space, a tab, a newline and a backslash mountinfo has the octal number (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)


def _survey(root: Path, folder: str, points: set[str]) -> Iterator[RootEntry]:
    for here in sorted((root / folder.lstrip("/")).iterdir()):
        path = f"{folder.rstrip('/')}/{here.name}"
        if here.is_symlink():
            yield RootEntry("link", path, str(here.readlink()))
        elif path in KERNELS or not here.is_dir():
            yield RootEntry("bind", path)
        elif path in FRESH:
            yield RootEntry("fresh", path)
        elif not os.access(here, os.R_OK | os.X_OK):
            yield RootEntry("directory", path)  # closed to us, and so empty
        elif any(point.startswith(f"{path}/") for point in points):
            yield RootEntry("directory", path)
            yield from _survey(root, path, points)
        else:
            yield RootEntry("overlay", path)


def in_user_namespace() -> bool:
    return user_namespace_number() != 0


def _attributes() -> str:
    """Where overlays keep what they know of a file: an ordinary user's have no others."""
    return "user" if in_user_namespace() else "trusted"


def options(lower: str, upper: Path, work: Path) -> str:
    """Of an overlay."""
    words = [
        f"{name}={_escaped(str(value))}"
        for name, value in (("lowerdir", lower), ("upperdir", upper), ("workdir", work))
    ]
    return ",".join(["index=off", *(["userxattr"] if in_user_namespace() else []), *words])


def _escaped(path: str) -> str:
    return re.sub(r"[\\,:]", lambda found: "\\" + found[0], path)


def layers(instances: Path, memory: Path) -> Layers:
    """For a run whose instances have their directories in `instances`; `memory` is the place to use
    where those cannot hold upper layers. MachineError if this machine has no overlays at all."""
    found = namespaces.in_thread(lambda: _tried(instances))
    if found is None:
        if not memory.is_dir():
            memory.mkdir(mode=0o755)
            _mount("tmpfs", memory, "mode=755")
        found = namespaces.in_thread(lambda: _tried(memory))
        if found is None:
            raise MachineError(
                "this machine's kernel refuses overlays, which fs=private and images need",
                "modprobe overlay as root; an ordinary user needs Linux 5.11 or newer",
            )
        return replace(found, memory=memory)
    return found


def _tried(place: Path) -> Layers | None:
    """Tries every overlay with upper layers in `place`. None if none works. In a thread that is
    over after it: it has mounts of its own."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(ctypes.c_int(_CLONE_NEWNS)) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    if library.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None) != 0:
        raise OSError(ctypes.get_errno(), "cannot make mounts private")
    entries = survey()
    shared = []
    scratch = Path(tempfile.mkdtemp(prefix=TRIAL, dir=place))
    try:
        wanted = [entry for entry in entries if entry.kind == "overlay"]
        for number, entry in enumerate(wanted):
            if not _works(entry.path, scratch / str(number)):
                shared.append(entry.path)
    finally:
        _forced_removal(scratch)
    if wanted and len(shared) == len(wanted):
        return None
    known = set(shared)
    final = [replace(one, kind="bind") if one.path in known else one for one in entries]
    return Layers(tuple(final), None, tuple(shared))


def _works(lower: str, place: Path) -> bool:
    """Whether it can be mounted, and something be made in it."""
    for name in ("root", "upper", "work"):
        (place / name).mkdir(parents=True)
    target = place / "root"
    try:
        _mount("overlay", target, options(lower, place / "upper", place / "work"))
    except OSError:
        return False
    try:
        (target / ".tstorm-try").mkdir()
        (target / ".tstorm-try").rmdir()
    except OSError:
        return False
    finally:
        ctypes.CDLL(None).umount2(os.fsencode(target), ctypes.c_int(2))
    return True


def _mount(kind: str, target: Path, data: str) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    word = kind.encode()
    done = library.mount(word, os.fsencode(target), word, ctypes.c_ulong(0), os.fsencode(data))
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _forced_removal(place: Path) -> None:
    """Overlays leave directories without rights (work/work). Root may be an ordinary user, too, in
    a user namespace or to the machine beside a guest."""
    for folder, names, _ in os.walk(place):
        for here in (Path(folder, name) for name in names):
            with suppress(OSError):
                if not here.is_symlink():
                    here.chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)


# -- of one instance ----------------------------------------------------------------------------


def of_machine(
    found: Layers, place: Path, owner: tuple[int, int], *, one_id: bool = False
) -> list[Operation]:
    """Makes the directories in `place` and returns how they become a root, up to what is
    mounted into it. `owner`: of what daemons write, where others' files cannot be changed: in a
    user namespace, and by a program that has one user number only (`one_id`).

    To be called when no instance uses them: /run begins anew. OSError.
    """
    root = place / "root"
    _make(root)
    theirs = one_id or in_user_namespace()
    done: list[Operation] = [("root", str(root))]
    for number, entry in enumerate(found.entries):
        here = root / entry.path.lstrip("/")
        if here.is_symlink():  # a program may have made it, and we would follow it
            here.unlink()
        if entry.kind == "link":
            here.symlink_to(entry.target)
        elif entry.kind == "directory":
            _make(here)
        elif entry.kind == "fresh":
            _make_fresh(here, entry.path, owner)
        elif entry.kind == "overlay":
            upper, work = place / "upper" / entry.path.lstrip("/"), place / "work" / str(number)
            _make(here)
            _make_upper(upper, entry.path, owner if theirs else None)
            _make(work)
            done.append(("overlay", entry.path, options(entry.path, upper, work)))
        else:
            done.append(("bind", entry.path, entry.path, "rw"))
    done += [("bind", path, path, "rw") for path in _OVER if Path(path).exists()]
    return done


def of_image(lower: str, place: Path) -> list[Operation]:
    """The same on an image's root file system. OSError."""
    if not Path(lower).is_dir():
        raise RunError(
            f"the unpacked image {lower} is gone", "`tstorm image pull` fetches it again"
        )
    if not (place / "upper").exists():  # later it is the programs' own
        _make(place / "upper")
        image_root.make_dev(place / "upper", f"{_attributes()}.overlay.opaque")
    for name in ("root", "work"):
        _make(place / name)
    root = str(place / "root")
    layer = options(lower, place / "upper", place / "work")
    done: list[Operation] = [("root", root), ("overlay", "/", layer)]
    done += [("bind", path, path, "rw") for path in ("/proc", "/sys")]
    done += image_root.dev_operations()
    done += [("bind", path, path, "rw") for path in _OVER if Path(path).exists()]
    return done


def _make(path: Path) -> None:
    path.mkdir(mode=0o755, parents=True, exist_ok=True)


def _make_upper(upper: Path, lower: str, owner: tuple[int, int] | None) -> None:
    """An upper layer's top has the rights of what it covers: it is what is seen. `owner`: of what
    daemons write; None: who owns it in the lower layer."""
    if upper.exists():
        return
    _make(upper)
    with suppress(OSError):
        upper.chmod(stat.S_IMODE(Path(lower).stat().st_mode))
    if not in_user_namespace():  # else files of others cannot be changed
        with suppress(OSError):  # a file system of another kernel's users
            status = Path(lower).stat()
            os.chown(upper, status.st_uid, status.st_gid)
    if owner is None:
        return
    for spool in _SPOOLS:
        if spool.startswith(f"{lower}/"):
            _make_spool(upper / spool.removeprefix(f"{lower}/"), spool, owner)
    if lower == "/var":
        _own(upper / "tmp", 0o1777, owner, opaque=True)


def _make_spool(upper: Path, lower: str, owner: tuple[int, int]) -> None:
    """Where nobody may write to what belongs to others, directories in which daemons keep what they
    write belong to the instance's user."""
    _own(upper, 0o755, owner)
    with suppress(OSError):
        for one in os.scandir(lower):
            if one.is_dir(follow_symlinks=False):
                closed = not os.access(one.path, os.R_OK | os.X_OK)
                _own(upper / one.name, 0o755, owner, opaque=closed)


def _own(path: Path, mode: int, owner: tuple[int, int], *, opaque: bool = False) -> None:
    _make(path)
    path.chmod(mode)
    with suppress(OSError):  # one number only
        os.chown(path, *owner)
    if opaque:  # what cannot be read there is not shown
        with suppress(OSError):
            os.setxattr(path, f"{_attributes()}.overlay.opaque", b"y")


def _make_fresh(here: Path, path: str, owner: tuple[int, int]) -> None:
    if path == "/run":
        _forced_removal(here)
    _make(here)
    here.chmod(FRESH[path])
    if path != "/run":
        return
    ordinary = in_user_namespace()
    for one in os.scandir(path):
        if one.is_dir(follow_symlinks=False) and one.name != "user":
            status = one.stat(follow_symlinks=False)
            _make(here / one.name)
            (here / one.name).chmod(stat.S_IMODE(status.st_mode) | 0o700)
            with suppress(OSError):
                whose = owner if ordinary else (status.st_uid, status.st_gid)
                os.chown(here / one.name, *whose)


def end(memory: Path) -> None:
    """Nothing of a run's private files stays in memory. They are there as long as an instance is,
    whatever its name has become."""
    if memory.is_dir():
        ctypes.CDLL(None).umount2(os.fsencode(memory), ctypes.c_int(2))
        with suppress(OSError):
            memory.rmdir()
