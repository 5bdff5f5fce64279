"""Removes unpacked images: their files may belong to user ids that only a user namespace has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from runtime.errors import RunError
from runtime.images import ids, image_cache
from runtime.images.image_cache import Image


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
    wanted = set() if every else image_cache.referenced()
    gone = []
    for image in image_cache.images():
        if image.digest not in wanted and _remove_unused(image):
            gone.append(image)
    for left in image_cache.left_over():
        remove(left)
    if every:
        image_cache.forget({image.digest for image in image_cache.images()})
    return gone


def _remove_unused(image: Image) -> bool:
    """Its facts go first: nobody begins to use what has none."""
    lock = image_cache.claim(image)
    if lock is None:
        return False
    try:
        (image.folder / image_cache.FACTS).unlink(missing_ok=True)
        remove(image.folder)
    finally:
        os.close(lock)
    return True
