"""File systems of images, made of this machine's Debian packages: programs with their libraries.

Busybox gives them a shell and the usual commands.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.cluster.support import HERE, run

FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib", "var/run")
PROGRAMS = HERE / "programs"  # the experiment with real programs, and its scripts
PROGRAMS_IMAGE = "tsc.local/debian:1"
REAL = ("redis-server", "redis-cli", "nginx", "ab", "iperf3")


def add_busybox(root: Path) -> None:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for name in run(["/bin/busybox", "--list"], root).split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")


def add_program(root: Path, name: str) -> None:
    """A program of this machine with the libraries that it needs."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert found, f"{name} is not installed; tests/cluster/cluster deps installs it"
    target = root / "usr/bin" / name
    shutil.copy(found, target)
    (root / "bin" / name).unlink(missing_ok=True)
    for library in re.findall(r"/[^ ]+", run(["ldd", found], root)):
        copied = root / library.lstrip("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copied)


def programs_rootfs(root: Path) -> Path:
    """Redis, nginx, ab and iperf3, and in /programs the scripts that start them."""
    add_busybox(root)
    for name in REAL:
        add_program(root, name)
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "programs").mkdir()
    for script in PROGRAMS.glob("*.sh"):
        shutil.copy(script, root / "programs")
    return root
