"""A new folder in which an image is made; one at a time makes the same image."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import unwritten
from runtime.images import image_cache
from runtime.images.remove_images import remove
from runtime.system import locks


@dataclass(frozen=True, slots=True)
class Making:
    """`lock` shows that somebody is at it: tools inherit it, so that it outlives a kill of us."""

    folder: Path
    lock: int


@contextmanager
def making(digest: str, ids: str) -> Iterator[Making]:
    """Waits until nobody else makes the same image, then yields a folder, which is removed at the
    end. RunError."""
    try:
        with image_cache.gate(image_cache.folder_of(digest, ids).name):
            for folder in image_cache.left_over():  # of those who were killed
                remove(folder)
            with _new() as made:
                yield made
    except OSError as error:
        raise unwritten(error) from error


@contextmanager
def _new() -> Iterator[Making]:
    with image_cache.gate(image_cache.NEW):
        folder = Path(tempfile.mkdtemp(prefix=image_cache.NEW, dir=image_cache.root()))
        lock = image_cache.opened(folder / image_cache.LOCK)
        locks.take(lock)
    try:
        yield Making(folder, lock)
    finally:
        os.close(lock)
        remove(folder)
