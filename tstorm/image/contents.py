"""The files of an image, by their paths in it, as bytes: nothing of where they came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROGRAM = 0o755
FILE = 0o644


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """A file with `data`, or a symbolic link where `target` is not ''; a directory has neither."""

    mode: int
    data: bytes | None = None
    target: str = ""


class Contents:
    """Paths are absolute. The directories above an entry come by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, ImageEntry] = {}

    def add(self, path: str, data: bytes, mode: int = FILE) -> None:
        """Raises ValueError if another file is there."""
        self._put(path, ImageEntry(mode, data))

    def link(self, path: str, target: str) -> None:
        self._put(path, ImageEntry(0o777, target=target))

    def directory(self, path: str, mode: int = PROGRAM) -> None:
        self._put(path, ImageEntry(mode))

    def _put(self, path: str, entry: ImageEntry) -> None:
        known = self._entries.setdefault(path, entry)
        if known != entry:
            raise ValueError(f"two different files would be {path} of the image")
        for above in PurePosixPath(path).parents:
            self._entries.setdefault(str(above), ImageEntry(PROGRAM))

    def listed(self) -> list[tuple[str, ImageEntry]]:
        """All of them but `/`, in the order of their paths' parts: a directory before its files."""
        paths = sorted(self._entries, key=lambda path: path.split("/"))
        return [(path, self._entries[path]) for path in paths if path != "/"]

    @property
    def size_bytes(self) -> int:
        return sum(len(entry.data or b"") for entry in self._entries.values())

    def write(self, folder: Path) -> None:
        """The same files below the new directory `folder`. Raises OSError."""
        folder.mkdir()
        for path, entry in self.listed():
            place = folder / path.lstrip("/")
            if entry.target:
                place.symlink_to(entry.target)
            elif entry.data is None:
                place.mkdir()
                place.chmod(entry.mode)
            else:
                place.write_bytes(entry.data)
                place.chmod(entry.mode)
