"""The container image of the command, made of a root file system without a container engine.

Input: a root file system of Debian with python3, as `mmdebstrap` makes one, and the wheel. The
wheel and what it needs are installed into it, and it is packed as `tstorm image build` packs the
image of agents: all files belong to root and have no times. Rights and users: docs/install.md.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from compiler.plan.format import TOOL_VERSION
from tstorm.image import archive, elf
from tstorm.image.archive import Contents

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAME = f"docker.io/thunderstorm/tstorm-cli:{TOOL_VERSION}"
PACKAGES = "usr/lib/python3/dist-packages"  # where Debian's Python looks beside its own
EXTRAS = "pytest,ui"
LAUNCHER = """\
#!/usr/bin/python3 -P
from tstorm.__main__ import main

main()
"""
CONFIG = {
    "Entrypoint": ["/usr/bin/tstorm"],
    "Cmd": ["--help"],
    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    "WorkingDir": "/work",
    "Labels": {
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": "thunderstorm",
        "org.opencontainers.image.version": TOOL_VERSION,
    },
}
# What the making of the root has left: lists, logs and caches, with times in them.
LEFT_OUT = ("var/lib/apt/lists", "var/cache", "var/log", "tmp", "run", "dev", "proc", "sys")


def build(root: Path, wheel: Path, out: Path) -> None:
    """Writes the archive `out`. Raises subprocess.CalledProcessError, OSError."""
    install(root, wheel)
    contents = gather(root)
    architecture = elf.read_file((root / "usr/bin/python3").resolve()).architecture
    digest = archive.write(out, NAME, architecture, contents, CONFIG)
    files, size_mb = len(contents.listed()), contents.size_bytes / 1e6
    print(f"{out}: {NAME}, {architecture}, {files} files, {size_mb:.1f} MB unpacked, {digest}")


def install(root: Path, wheel: Path) -> None:
    inside = ("chroot", root, "/usr/bin/python3")
    version = subprocess.run(
        [*inside, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    chosen = (f"--python-version={version}", "--only-binary=:all:", "--no-compile", "--upgrade")
    target = ("--target", root / PACKAGES)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *chosen, *target)
    subprocess.run([*pip, f"{wheel}[{EXTRAS}]"], check=True)
    launcher = root / "usr/bin/tstorm"
    launcher.write_text(LAUNCHER, encoding="utf-8")
    launcher.chmod(0o755)
    # By their contents and not by times, which the image has not.
    modes = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    subprocess.run([*inside, *modes, f"/{PACKAGES}"], check=True)
    # Whether that Python has all of its library: python3-minimal has not.
    quickstart = (EXAMPLES / "quickstart.tdl").read_bytes()
    subprocess.run(["chroot", root, "/usr/bin/tstorm", "check", "-"], input=quickstart, check=True)


def gather(root: Path) -> Contents:
    """All files of the root but devices, sockets and what is LEFT_OUT, whose directories stay."""
    contents = Contents()
    for path, place in _walk(root, ""):
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            contents.link(path, str(place.readlink()))
        elif stat.S_ISDIR(mode):
            contents.directory(path, stat.S_IMODE(mode))
        elif stat.S_ISREG(mode):
            contents.add(path, place.read_bytes(), stat.S_IMODE(mode))
    contents.directory("/work", 0o777)
    return contents


def _walk(root: Path, folder: str) -> Iterator[tuple[str, Path]]:
    """Paths in the image with their places: a directory before what is in it."""
    for entry in sorted(os.scandir(root / folder), key=lambda entry: entry.name):
        path = f"{folder}/{entry.name}".lstrip("/")
        yield f"/{path}", Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and path not in LEFT_OUT:
            yield from _walk(root, path)
