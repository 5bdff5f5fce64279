"""Unpacks a kernel's source: of an archive that anybody may have made, what a build reads.

Nothing but ordinary files is written, each at a path that is checked, none twice: a link in an
archive leads nowhere. Of drivers, other processors and documents only what configures them is
taken, which spares nine files of ten.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from runtime.errors import MachineError, RunError

MOST_FILES = 400_000  # of all kinds; Linux 7.3 has 95,000
MOST_BYTES = 8 << 30
_LARGEST = 64 << 20  # a file that is taken
_BUFFER = 1 << 20
_CONFIGURES = re.compile(r"(Kconfig|Makefile|Kbuild)([.-].*)?|.*\.(include|mk)")
# folder -> what is taken of it beside what configures it: folders in it, '' its own files
_TAKEN = {
    "arch": ("um", "x86"),
    "drivers": ("base", "char", "firmware", "net", "pps", "ptp", "tty"),
    "tools": ("arch", "build", "include", "lib", "scripts"),
    "Documentation": (),
    "samples": (),
    "sound": (),
}
_PACKERS: dict[bytes, Callable[[Path], Any]] = {
    b"\xfd7zX": lzma.open,
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
}
_WITHOUT = ("drivers/net/",)  # below these, only their own files
_PACKED = re.compile(r"\.?/?usr/src/linux-source-[0-9.]+\.tar\.(xz|gz|bz2)")


class _UnfitError(Exception):
    """What an archive has that no source of a kernel has."""


def wanted(name: str) -> bool:
    """Whether a build may read the file at this path in the tree."""
    path = PurePosixPath(name)
    if _CONFIGURES.fullmatch(path.name):
        return True
    taken = _TAKEN.get(path.parts[0])
    if taken is None:
        return True
    if any(name.startswith(folder) and len(path.parts) > 3 for folder in _WITHOUT):
        return False
    return len(path.parts) > 2 and path.parts[1] in taken


def unpack(archive: Path, tree: Path, seen: Callable[[int], None]) -> None:
    """Writes what is wanted of a tar archive into the new folder `tree`. `seen` hears the number of
    files written. RunError for what is no kernel's source."""
    try:
        with (
            _decompressed(archive) as stream,
            tarfile.open(fileobj=stream, mode="r|") as opened,
        ):
            _write(opened, tree, seen)
            _read_on(stream)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError) as error:
        raise _broken(archive, error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _broken(archive, error) from error  # what gzip and bz2 raise is one without a number
    except _UnfitError as error:
        raise RunError(f"{archive}: this is no source of a kernel: {error}") from error
    if not (tree / "Makefile").is_file():
        raise RunError(f"{archive}: this is no source of a kernel: it has no Makefile")


def _broken(archive: Path, error: Exception) -> RunError:
    return RunError(f"{archive}: this is no whole archive of a kernel: {error}")


def take_out(package: Path, folder: Path) -> Path:
    """Writes the archive that a Debian package of the kernel's source has into `folder`. RunError,
    MachineError."""
    if not shutil.which("dpkg-deb"):
        what = "dpkg-deb, which unpacks Debian's packages, is missing here"
        raise MachineError(what, "name an archive of kernel.org with --source")
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacker:
        assert unpacker.stdout is not None
        try:
            with tarfile.open(fileobj=unpacker.stdout, mode="r|") as outer:
                for member in outer:
                    if _PACKED.fullmatch(member.name) and (found := outer.extractfile(member)):
                        target = folder / PurePosixPath(member.name).name
                        with target.open("xb") as file:
                            shutil.copyfileobj(found, file, _BUFFER)
                        return target
        except tarfile.TarError as error:
            raise RunError(f"{package}: this is no whole Debian package: {error}") from error
        finally:
            unpacker.kill()
    raise RunError(f"{package}: this package has no usr/src/linux-source-VERSION.tar.xz")


@contextmanager
def _decompressed(archive: Path) -> Iterator[IO[bytes]]:
    """xz(1) works beside us and on several processors; it is not needed."""
    with archive.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\xfd7zX") and shutil.which("xz"):
        command = ["xz", "--decompress", "--stdout", "--threads=0", "--", str(archive)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as xz:
            assert xz.stdout is not None
            try:
                yield xz.stdout
                if xz.wait() != 0:  # it was read to its end
                    raise EOFError("xz says that it is damaged")
            finally:
                xz.kill()
        return
    known = [opener for start, opener in _PACKERS.items() if magic.startswith(start)]
    with known[0](archive) if known else archive.open("rb") as stream:
        yield stream


def _read_on(stream: IO[bytes]) -> None:
    """To the end, where what is compressed tells whether it is whole."""
    size = 0
    while block := stream.read(_BUFFER):
        size += len(block)
        if size > MOST_BYTES:
            raise _UnfitError("it is too large")


def _write(opened: tarfile.TarFile, tree: Path, seen: Callable[[int], None]) -> None:
    folders: set[Path] = set()
    top, size, written = "", 0, 0
    for number, member in enumerate(opened):
        size += member.size
        if number >= MOST_FILES or size > MOST_BYTES:
            raise _UnfitError("it is too large")
        parts = _parts(member.name)
        top = top or parts[0]
        if parts[0] != top:
            raise _UnfitError(f"{member.name} is not below {top}")
        name = "/".join(parts[1:])
        if not member.isreg() or len(parts) < 2 or not wanted(name):
            continue
        _write_file(opened, member, tree / name, folders)
        written += 1
        seen(written)


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise _UnfitError(f"it has a file outside of its folder: {name}")
    return path.parts


def _write_file(
    opened: tarfile.TarFile, member: tarfile.TarInfo, target: Path, folders: set[Path]
) -> None:
    if member.size > _LARGEST:
        raise _UnfitError(f"it has a file of {member.size} bytes: {member.name}")
    content = opened.extractfile(member)
    assert content is not None  # an ordinary file
    try:
        if target.parent not in folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.add(target.parent)
        with target.open("xb") as file:
            file.write(content.read())
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _UnfitError(f"it has two files in one place: {member.name}") from error
    if member.mode & 0o100:
        target.chmod(0o755)
