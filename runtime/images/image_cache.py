"""Keeps unpacked images: where they are, which content a reference had, what is in use.

In the folder `images` of the cache (runtime/system/caching.py), for its owner only:

    references/SHA256.json        what a registry's reference was when it was fetched
    unpacked/DIGEST-ARCH-IDS/     image.json, `root`, and `used`, which runs hold a lock on
    new-…/                        what is being fetched, with a lock that its maker holds

A folder of `unpacked` appears whole or not at all. IDS says with which user ids it was unpacked
(runtime/images/fetching.py): what one user id has unpacked is of no use where there are many.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import RunError, unwritten
from runtime.images import ids, image_config
from runtime.images.image_config import ImageConfig
from runtime.json_schema import COUNT, TEXT, Shape, check, parse
from runtime.system import caching, locks

FORMAT = 1  # of both kinds of files: raised when a field changes its meaning, comes or goes
FACTS, ROOT, LOCK, _USED = "image.json", "root", "lock", "used"
NEW = "new-"
_REFERENCES, _UNPACKED = "references", "unpacked"
_MAX_BYTES = 16 << 20
_FACTS_SHAPE = Shape(
    {
        "format": COUNT,
        "digest": TEXT,
        "references": [TEXT],
        "ids": TEXT,
        "size_bytes": COUNT,
        "fetched": TEXT,
        "config": {},
    }
)
_REFERENCE_SHAPE = Shape({"format": COUNT, "reference": TEXT, "digest": TEXT})


@dataclass(frozen=True, slots=True)
class Image:
    """One that is kept. `references`: those that it was fetched for."""

    folder: Path
    digest: str  # of its manifest, as the registry has it: sha256:…
    references: tuple[str, ...]
    ids: str
    size_bytes: int  # unpacked
    fetched: str  # when, UTC; ISO 8601
    config: ImageConfig

    @property
    def root(self) -> Path:
        return self.folder / ROOT


def root() -> Path:
    """Where images are kept; it need not be there. MachineError if nobody has a home here."""
    return caching.folder("images", "images")


def find(digest: str, ids: str) -> Image | None:
    """The one with this content, unpacked for this machine with these user ids."""
    folder = folder_of(digest, ids)
    try:
        return _read(folder)
    except (OSError, RunError, ValueError):
        return None


def images() -> list[Image]:
    """All that are kept, by digest. What is damaged is none."""
    found = []
    with suppress(OSError):
        for folder in sorted((root() / _UNPACKED).iterdir()):
            with suppress(OSError, RunError, ValueError):
                found.append(_read(folder))
    return found


def known_digest(reference: str) -> str:
    """What the reference was when it was fetched last, '' if it never was."""
    try:
        data = _reference_file(reference).read_bytes()[:_MAX_BYTES]
        record = parse(data, reference)
        check(record, _REFERENCE_SHAPE, reference)
    except (OSError, RunError):
        return ""
    right = record["format"] == FORMAT and record["reference"] == reference
    return str(record["digest"]) if right else ""


def note_reference(reference: str, digest: str) -> None:
    """From now on runs take this content for it. RunError."""
    record = {"format": FORMAT, "reference": reference, "digest": digest}
    try:
        _write(made_folder(_REFERENCES) / _reference_file(reference).name, record)
    except OSError as error:
        raise unwritten(error) from error


def keep(image: Image) -> Image:
    """Takes the root out of the folder in which it was made, and keeps it. OSError."""
    record = {
        "format": FORMAT,
        "digest": image.digest,
        "references": list(image.references),
        "ids": image.ids,
        "size_bytes": image.size_bytes,
        "fetched": image.fetched,
        "config": image.config.to_record(),
    }
    whole = image.folder / "whole"
    whole.mkdir(mode=0o700)
    (image.folder / ROOT).rename(whole / ROOT)
    (whole / _USED).touch(mode=0o600)
    _write(whole / FACTS, record)
    target = folder_of(image.digest, image.ids)
    made_folder(_UNPACKED)
    if target.exists():
        with suppress(RunError, ValueError, OSError):
            return _read(target)  # somebody else was faster
        target.rename(image.folder / "damaged")
    whole.rename(target)
    return _read(target)


def use(image: Image) -> int | None:
    """Holds it: as long as the descriptor is open, nobody removes it. None if it is gone."""
    try:
        descriptor = os.open(image.folder / _USED, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if locks.share(descriptor) == locks.HELD or not (image.folder / FACTS).exists():
        os.close(descriptor)
        return None
    return descriptor


def claim(image: Image) -> int | None:
    """A descriptor that keeps others from using it as long as it is open; None if one does."""
    try:
        descriptor = opened(image.folder / _USED)
    except OSError:
        return None
    if locks.take(descriptor) == locks.HELD:
        os.close(descriptor)
        return None
    return descriptor


def referenced() -> set[str]:
    """The digests that a registry's reference leads to."""
    found = set()
    with suppress(OSError):
        for place in (root() / _REFERENCES).iterdir():
            with suppress(OSError, RunError):
                record = parse(place.read_bytes()[:_MAX_BYTES], str(place))
                check(record, _REFERENCE_SHAPE, str(place))
                found.add(record["digest"])
    return found


def forget(kept: set[str]) -> None:
    """The references that lead to nothing that is kept."""
    with suppress(OSError):
        for place in (root() / _REFERENCES).iterdir():
            with suppress(OSError, RunError):
                record = parse(place.read_bytes()[:_MAX_BYTES], str(place))
                if record.get("digest") not in kept:
                    place.unlink()


def left_over() -> list[Path]:
    """Folders of those who were killed while they made, or removed, an image."""
    found = []
    if not root().is_dir():
        return []
    with suppress(OSError), gate(NEW):
        found += [place for place in root().glob(f"{NEW}*") if _abandoned(place)]
    with suppress(OSError):
        found += [place for place in (root() / _UNPACKED).iterdir() if _faceless(place)]
    return sorted(found)


def _abandoned(place: Path) -> bool:
    """Nobody holds its lock any more. For those who have the gate to new folders: one that has no
    lock yet is somebody's."""
    try:
        lock = opened(place / LOCK)
    except OSError:
        return False  # being removed
    try:
        return locks.take(lock) == locks.FREE
    finally:
        os.close(lock)


def _faceless(place: Path) -> bool:
    return place.is_dir() and not (place / FACTS).exists()


def folder_of(digest: str, ids: str) -> Path:
    plain = digest.removeprefix("sha256:")
    if len(plain) != 64 or not set(plain) <= set("0123456789abcdef"):
        raise RunError(f"{digest!r:.100} is no digest of an image", "it must be sha256:…")
    return root() / _UNPACKED / f"{plain}-{platform.machine()}-{ids}"


def _reference_file(reference: str) -> Path:
    name = hashlib.sha256(reference.encode()).hexdigest()
    return root() / _REFERENCES / f"{name}.json"


def made_folder(name: str) -> Path:
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    place = root() / name
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@contextmanager
def gate(name: str) -> Iterator[None]:
    """One at a time is inside, of all processes. OSError."""
    descriptor = opened(made_folder("locks") / name)
    try:
        locks.wait(descriptor)
        yield
    finally:
        os.close(descriptor)


def opened(path: Path) -> int:
    """For locks."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _write(path: Path, record: Any) -> None:
    """Whole or not at all."""
    text = json.dumps(record, sort_keys=True, indent=1) + "\n"
    partial = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _read(folder: Path) -> Image:
    place = folder / FACTS
    record = parse(place.read_bytes()[:_MAX_BYTES], str(place))
    check(record, _FACTS_SHAPE, str(place))
    if record["format"] != FORMAT or not (folder / ROOT).is_dir():
        raise ValueError("another release's record, or damaged")
    return Image(
        folder,
        record["digest"],
        tuple(record["references"]),
        record["ids"],
        record["size_bytes"],
        record["fetched"],
        image_config.from_record(record["config"], str(place)),
    )


# Removes unpacked images: their files may belong to user ids that only a user namespace has.


def remove(folder: Path) -> None:
    """Removes it and what is in it; what is not there is no matter. RunError."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    argv = ("rm", "-rf", "--one-file-system", "--", str(folder))
    command = list(argv) if os.geteuid() == 0 else ids.with_all(*argv)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if folder.exists():
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise RunError(f"cannot remove {folder}: {words[-1] if words else 'it is still there'}")


def prune(*, every: bool) -> list[Image]:
    """Removes images that no reference leads to any more, or all, but for those that runs use; and
    what those who were killed have left. Returns the images. RunError."""
    wanted = set() if every else referenced()
    gone = []
    for image in images():
        if image.digest not in wanted and _remove_unused(image):
            gone.append(image)
    for left in left_over():
        remove(left)
    if every:
        forget({image.digest for image in images()})
    return gone


def _remove_unused(image: Image) -> bool:
    """Its facts go first: nobody begins to use what has none."""
    lock = claim(image)
    if lock is None:
        return False
    try:
        (image.folder / FACTS).unlink(missing_ok=True)
        remove(image.folder)
    finally:
        os.close(lock)
    return True
