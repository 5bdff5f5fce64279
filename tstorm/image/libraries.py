"""Which shared libraries some programs need, as the dynamic loader looks for them (ld.so(8)).

Input: ELF files, and the root file system in which their needs are looked up. Output: name ->
file, with the loader itself; the libraries' own needs included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runtime.system.inroot import inside
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.image import elf

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
            file = elf.read_file(place)
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
            return elf.read(place.read_bytes()).architecture == self.architecture
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
