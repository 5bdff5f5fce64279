"""Finds a source of the kernel: one that the user names, or Debian's package of it.

Without a name: the newest /usr/src/linux-source-*.tar.xz up to NEWEST, as a package that is
installed puts it there; else the newest such linux-source-VERSION that apt knows, fetched as
`apt-get download` does, which needs no root, installs nothing and lets apt verify it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import MachineError, RunError
from runtime.virtual.kernel import unpack_source
from runtime.virtual.kernel.kernel_changes import Version

OLDEST: Version = (6, 6)
NEWEST: Version = (6, 12)  # that takes all of our changes; a newer one is tried if it is named
INSTALLED = Path("/usr/src")
_NAME = re.compile(r"linux-source-(\d+)\.(\d+)(?:\.tar\.(?:xz|gz|bz2))?")
_BLOCK = 1 << 20
_COUNTED = 2_000  # files between two words about progress
# What a build leaves in a tree, which a copy does not take.
_BUILT = re.compile(r"(.*/)?(\.config.*|.*\.(o|a|ko|cmd|mod|order|symvers)|vmlinux(\.unstripped)?)")
_BUILT_FOLDERS = re.compile(r"\.git|include/config|(arch/\w+/)?include/generated")
_ELSEWHERE = (
    "name a source: `tstorm kernel build --source linux-6.12.tar.xz`, with an archive from"
    " https://kernel.org/pub/linux/kernel/v6.x/"
)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """`path` is a folder, a tar archive, or a Debian package (.deb)."""

    path: Path
    name: str  # for people

    def digest(self) -> str:
        """SHA-256 of the file, or of all files of the folder that are taken."""
        value = hashlib.sha256()
        if not self.path.is_dir():
            with self.path.open("rb") as file:
                while block := file.read(_BLOCK):
                    value.update(block)
            return value.hexdigest()
        for name in _files(self.path):
            content = (self.path / name).read_bytes()
            value.update(os.fsencode(name) + b"\0%d\0" % len(content) + content)
        return value.hexdigest()

    def unpack(self, tree: Path, say: Say) -> None:
        """Writes what a build needs of it into the new folder `tree`, without changing it."""
        count = _counter(say)
        if self.path.is_dir():
            for number, name in enumerate(_files(self.path), start=1):
                target = tree / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.path / name, target)
                count(number)
            return
        if self.path.suffix != ".deb":
            unpack_source.unpack(self.path, tree, count)
            return
        packed = unpack_source.take_out(self.path, tree.parent)
        try:
            unpack_source.unpack(packed, tree, count)
        finally:
            packed.unlink()


def _counter(say: Say) -> Callable[[int], None]:
    def count(number: int) -> None:
        if number % _COUNTED == 0:
            say(f"{number} files")

    return count


def _files(folder: Path) -> list[str]:
    """What is taken of a source tree: ordinary files and links to such, without what was built."""
    found = []
    for place, folders, names in os.walk(folder):
        here = place[len(str(folder)) + 1 :]
        here = f"{here}/" if here else ""
        folders[:] = [name for name in folders if not _BUILT_FOLDERS.fullmatch(here + name)]
        paths = (here + name for name in names)
        found += [
            path for path in paths if unpack_source.wanted(path) and not _BUILT.fullmatch(path)
        ]
    return sorted(name for name in found if (folder / name).is_file())


def given(path: Path) -> KernelSource:
    """What the user names. RunError if there is none."""
    if path.is_dir():
        if not (path / "Makefile").is_file() or not (path / "arch/um").is_dir():
            raise RunError(f"{path}: this is no source tree of Linux: no Makefile, no arch/um")
        version = version_of(path)
        _refuse_old(version, str(path))
        return KernelSource(path.resolve(), f"{path.resolve()}")
    if not path.is_file():
        raise RunError(f"{path}: there is no such archive or folder")
    return KernelSource(path.resolve(), path.name)


def installed(place: Path = INSTALLED) -> KernelSource | None:
    """The newest archive that Debian's packages have put there, and that serves."""
    paths = {path.name: path for path in place.glob("linux-source-*.tar.*")}
    name = _newest(paths)
    return KernelSource(paths[name], f"{paths[name]} (installed)") if name else None


def packaged() -> str | None:
    """The newest package with a source that serves that apt knows."""
    if not shutil.which("apt-cache") or not shutil.which("apt-get"):
        return None
    command = ["apt-cache", "pkgnames", "linux-source-"]
    known = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return _newest(known)


def _newest(names: Iterable[str]) -> str | None:
    return max(
        (one for one in names if OLDEST <= _version(one) <= NEWEST), key=_version, default=None
    )


def fetch(package: str, folder: Path) -> KernelSource:
    """Downloads a package into `folder`. MachineError with apt's own words if that fails."""
    for older in folder.glob(f"{package}_*.deb"):  # of a build that did not end
        older.unlink()
    command = ["apt-get", "download", "-q", package]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise MachineError(f"cannot start apt-get: {error.strerror}", _ELSEWHERE) from error
    files = sorted(folder.glob(f"{package}_*.deb"))
    if done.returncode != 0 or not files:
        words = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise MachineError(f"apt-get could not download {package}: {words}", _ELSEWHERE)
    return KernelSource(files[0], f"{files[0].stem} (Debian)")


def nowhere() -> MachineError:
    """There is no source here that nobody has named."""
    wanted = " to ".join(".".join(map(str, one)) for one in (OLDEST, NEWEST))
    what = f"no source of Linux {wanted} is installed in {INSTALLED}, and apt knows none"
    return MachineError(what, f"apt-get update, or {_ELSEWHERE}")


def version_of(tree: Path) -> tuple[int, int, int]:
    """As the Makefile of a source tree has it. RunError if it has none."""
    try:
        with (tree / "Makefile").open(encoding="utf-8", errors="replace") as file:
            head = file.read(4096)
    except OSError as error:
        raise RunError(f"{tree}: this is no source tree of Linux: {error.strerror}") from error
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d{1,4})$", head, re.MULTILINE))
    if len(found) != 3:
        raise RunError(f"{tree}: this is no source tree of Linux: its Makefile has no version")
    return int(found["VERSION"]), int(found["PATCHLEVEL"]), int(found["SUBLEVEL"])


def accepted(tree: Path, name: str) -> tuple[int, int, int]:
    """The version of an unpacked source. RunError if it is too old."""
    version = version_of(tree)
    _refuse_old(version, name)
    return version


def _refuse_old(version: tuple[int, int, int], name: str) -> None:
    if version[:2] < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        number = ".".join(map(str, version))
        raise RunError(f"{name} is Linux {number}: {wanted} or newer is needed", _ELSEWHERE)


def _version(name: str) -> Version:
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else (0, 0)
