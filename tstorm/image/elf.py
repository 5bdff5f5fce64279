"""What an ELF file says of itself: its machine, its loader and the libraries that it needs.

Read from the program headers and the dynamic section (System V ABI, chapter 5), 64 bits and
little-endian only: both architectures of images are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runtime.system.inroot import inside
from tstorm.exit_codes import CANNOT, CommandError

MACHINES = {62: "amd64", 183: "arm64"}  # e_machine: EM_X86_64, EM_AARCH64

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")
_LOAD, _DYNAMIC_SEGMENT, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class Elf:
    architecture: str  # as images call it; "machine N" if no image is made for it
    loader: str  # path, "" of a library or a static program
    needed: tuple[str, ...]  # names of libraries, in the file's order
    search: tuple[str, ...]  # directories of its own (RPATH, RUNPATH), may begin with $ORIGIN


def read(data: bytes) -> Elf:
    """Raises ValueError if `data` is no ELF file of 64 bits, little-endian, or is cut short."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("it is no ELF file of 64 bits, little-endian")
    try:
        return _read(data)
    except struct.error as error:
        raise ValueError(f"its ELF headers are cut short: {error}") from error


def read_file(place: Path) -> Elf:
    """Raises CommandError, naming the file."""
    try:
        return read(place.read_bytes())
    except ValueError as error:
        raise CommandError(
            f"error: {place} cannot be put into an image: {error}", CANNOT
        ) from error


def _read(data: bytes) -> Elf:
    _, _, machine, _, _, offset, _, _, _, size, count, *_ = _HEADER.unpack_from(data)
    segments = [_SEGMENT.unpack_from(data, offset + i * size) for i in range(count)]
    architecture = MACHINES.get(machine, f"machine {machine}")
    loader = "".join(_text(data, s[2]) for s in segments if s[0] == _INTERPRETER)
    entries = [e for s in segments if s[0] == _DYNAMIC_SEGMENT for e in _dynamic(data, s[2], s[5])]
    loads = [(s[3], s[2], s[5]) for s in segments if s[0] == _LOAD]
    strings = [_place(loads, value) for tag, value in entries if tag == _STRINGS]
    if not strings:
        return Elf(architecture, loader, (), ())

    def named(*tags: int) -> Iterator[str]:
        return (_text(data, strings[0] + value) for tag, value in entries if tag in tags)

    search = [part for text in named(_RPATH, _RUNPATH) for part in text.split(":")]
    return Elf(architecture, loader, tuple(named(_NEEDED)), tuple(search))


def _dynamic(data: bytes, offset: int, size: int) -> Iterator[tuple[int, int]]:
    for at in range(offset, offset + size, _DYNAMIC.size):
        tag, value = _DYNAMIC.unpack_from(data, at)
        if tag == 0:
            return
        yield tag, value


def _place(loads: list[tuple[int, int, int]], address: int) -> int:
    """Where the byte at an address of memory is in the file."""
    for start, offset, size in loads:
        if start <= address < start + size:
            return address - start + offset
    raise ValueError(f"address {address:#x} of its dynamic section is in no segment")


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    if not 0 <= offset <= end:
        raise ValueError("a text of its dynamic section has no end")
    return data[offset:end].decode()


# Which shared libraries some programs need, as the dynamic loader looks for them (ld.so(8)).
#
# Input: ELF files, and the root file system in which their needs are looked up. Output: name ->
# file, with the loader itself; the libraries' own needs included.

_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
_TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}  # Debian's folders


@dataclass(slots=True)
class Libraries:
    root: Path
    architecture: str
    found: dict[str, Path] = field(default_factory=dict)  # by name, without the loader
    loader: str = ""  # its path, which the programs name
    folder: str = ""  # the one with the C library: the loader looks there without being told

    def add_needs(self, programs: Iterable[Path]) -> None:
        """Finds what these files need, and what that needs. Raises CommandError for a library that
        is missing, and for a file of another architecture."""
        waiting = list(programs)
        while waiting:
            place = waiting.pop()
            file = read_file(place)
            if file.architecture != self.architecture:
                raise CommandError(
                    f"error: {place} is for {file.architecture}, not {self.architecture}", CANNOT
                )
            self.loader = self.loader or file.loader
            for name in file.needed:
                if name not in self.found:
                    waiting.append(self.add(name, place, file.search))

    def add(self, name: str, place: Path, search: Iterable[str] = ()) -> Path:
        """Finds the first of this name and architecture, as the file at `place` would."""
        for folder in self._folders(place, search):
            found = inside(self.root, f"{folder}/{name}")
            if found is not None and self._fits(found):
                self.found[name] = found
                if name.startswith("libc."):
                    self.folder = folder
                return found
        raise CommandError(f"error: the library {name}, which {place} needs, is missing", CANNOT)

    def _fits(self, place: Path) -> bool:
        try:
            return read(place.read_bytes()).architecture == self.architecture
        except (ValueError, IsADirectoryError):
            return False

    def _folders(self, place: Path, search: Iterable[str]) -> Iterator[str]:
        """As seen inside the root."""
        origin = "/" + str(place.parent.relative_to(self.root))
        yield from (folder.replace("$ORIGIN", origin) for folder in search)
        for folder in _USUAL:
            yield f"{folder}/{_TRIPLETS[self.architecture]}"
            yield folder
        for listed in sorted((self.root / "etc/ld.so.conf.d").glob("*.conf")):
            yield from (line for line in listed.read_text().split("\n") if line.startswith("/"))
