"""Root file systems of images, made of this machine's Debian packages: programs with the libraries
that they need, and busybox for a shell and the usual commands."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

SEARCHED = "/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib", "var/run")


def found(name: str) -> Path:
    """A program of this machine; the test is skipped where it is missing."""
    place = shutil.which(name, path=SEARCHED)
    if place is None:
        pytest.skip(f"not installed: {name}")
    return Path(place)


def add_busybox(root: Path) -> None:
    """Busybox (Debian: busybox-static), under all its names in /bin."""
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(found("busybox"), root / "bin/busybox")
    listed = subprocess.run(
        [found("busybox"), "--list"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")


def add_program(root: Path, name: str, folder: str = "usr/bin") -> None:
    """A program with the libraries that it needs."""
    place = found(name)
    target = root / folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(place, target)
    (root / "bin" / name).unlink(missing_ok=True)
    add_libraries(root, [place])


def add_libraries(root: Path, files: Iterable[Path]) -> None:
    """Of programs and libraries, where ldd finds them."""
    for file in files:
        listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=False)
        for library in re.findall(r"/[^ ]+(?= \()", listed.stdout):
            copied = root / library.lstrip("/")
            if not copied.exists():
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, copied)


def add_users(root: Path, **numbers: int) -> None:
    """root, and others with a home of their own."""
    users = ["root:x:0:0:root:/root:/bin/sh"]
    users += [f"{name}:x:{n}:{n}:{name}:/home/{name}:/bin/sh" for name, n in numbers.items()]
    groups = ["root:x:0:", *(f"{name}:x:{number}:" for name, number in numbers.items())]
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "etc/passwd").write_text("\n".join(users) + "\n")
    (root / "etc/group").write_text("\n".join(groups) + "\n")
