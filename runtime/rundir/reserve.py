"""Space put aside for the end of a run, so that a disk that has filled up still gets the outcome.

A file of the run directory that is made at the start and has its blocks already (fallocate(2)). At
the end the manifest is written into it, in place, and it takes the manifest's name: neither needs a
block or an inode. Freeing a file of ballast instead would give its blocks to whoever writes first,
and writing over the manifest itself would tear it if we are killed. Where blocks are never written
twice (btrfs) the kernel keeps what was allocated for the first write. Whoever closes the directory
of a killed run finds the file by its name.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from runtime.rundir.held_directory import HeldDirectory, write_all

NAME = ".manifest.reserve"
BYTES = 8 << 10  # more than an outcome and its message take


def put_aside(directory: HeldDirectory, size: int) -> None:
    """Room for a file of `size` bytes and what is added to it later. OSError if there is none."""
    if not directory.has(NAME):
        os.close(directory.create(NAME))
    descriptor = directory.rewriting(NAME)
    try:
        _allocate(descriptor, 2 * size + BYTES)
    finally:
        os.close(descriptor)


def _allocate(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # EBADF: where the file system cannot, the C library reads the file, open for writing alone.
        if error.errno not in (errno.EOPNOTSUPP, errno.EBADF):
            raise
        write_all(descriptor, bytes(size))


def spend(directory: HeldDirectory, name: str, data: bytes) -> None:
    """Writes the file `name` with what was put aside; like any other if nothing was. OSError."""
    with suppress(OSError):
        descriptor = directory.rewriting(NAME)
        try:
            if os.fstat(descriptor).st_size >= len(data):
                write_all(descriptor, data)
                os.ftruncate(descriptor, len(data))
                directory.rename(NAME, name)
                return
        finally:
            os.close(descriptor)
    directory.write(name, data)
    directory.remove(NAME)
