"""The control groups of this process, of either version (cgroups(7)), as the kernel shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
_MOUNT = "sys/fs/cgroup"


def own(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Directories of the groups that limit us, the innermost first; those that cannot be seen from
    here are left out."""
    mount = root / _MOUNT
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controller in controllers.split(","):
            yield from _upwards(mount / controller, name)
        elif number == "0":
            yield from _upwards(mount, name)


def _upwards(mount: Path, name: str) -> Iterator[Path]:
    here = mount / name.lstrip("/")
    while here != mount and mount in here.parents:
        yield here
        here = here.parent
    yield mount


def value(path: Path) -> int | None:
    """The number in a file; None if there is none ('max') or no such file."""
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def counter(path: Path, key: str) -> int | None:
    """The number of `key` in a file of lines `KEY NUMBER`; None if there is none."""
    for line in _read(path).splitlines():
        word, _, number = line.partition(" ")
        if word == key and number.strip().isdecimal():
            return int(number)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
