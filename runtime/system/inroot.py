"""Paths in a root file system that anybody may have made: links do not lead out of it."""

from __future__ import annotations

from pathlib import Path

_LINKS = 40  # followed at most, as the kernel does


def inside(root: Path, path: str) -> Path | None:
    """The file that `path` is for whoever has `root` as `/`. None if there is none. OSError."""
    done = root
    waiting = [part for part in reversed(path.split("/")) if part]
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            done = done if done == root else done.parent
            continue
        found = done / part
        if found.is_symlink():
            links += 1
            if links > _LINKS:
                return None
            target = str(found.readlink())
            done = root if target.startswith("/") else done
            waiting += [name for name in reversed(target.split("/")) if name not in ("", ".")]
        else:
            done = found
    return done if done.exists() else None


def text_of(root: Path, path: str, most: int) -> str:
    """The first `most` bytes of an ordinary file; '' if there is none, or it may not be read."""
    try:
        found = inside(root, path)
        if found is None or not found.is_file():
            return ""
        with found.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except (OSError, ValueError):
        return ""
