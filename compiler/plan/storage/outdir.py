"""A directory of results that appears whole or not at all and replaces only results.

Files are written into a new directory beside the target, which then takes the target's place in one
step. Rendered files begin with RENDERED, so that they can be told from what others put there.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from compiler.plan.storage import scratch

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

RENDERED = b"# Rendered by tstorm"
_SHARDS = "plan"  # folder of what cannot begin with RENDERED
_SHARD = re.compile(r"plan-[0-9]{3}", re.ASCII)


def put(target: Path, files: Mapping[str, bytes | Iterable[bytes]]) -> None:
    """`target` holds exactly `files` (`name` or `folder/name`) afterwards; what is long comes in
    pieces.

    OSError: it is as it was. The caller has made sure that what is there may be replaced.
    """
    with scratch.directory(target.parent, target.name) as fresh:
        for folder in {name.rpartition("/")[0] for name in files}:
            (fresh / folder).mkdir(exist_ok=True)
        for name, data in files.items():
            path = fresh / name
            if isinstance(data, bytes):
                path.write_bytes(data)
                continue
            with path.open("wb") as file:
                file.writelines(data)
        _put_in_place(fresh, target)


def _put_in_place(fresh: Path, target: Path) -> None:
    """`target` becomes `fresh`. What was there ends up at `fresh`, for the caller to remove."""
    try:
        fresh.rename(target)  # succeeds where nothing is, or an empty directory
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if exchange(fresh, target):
        return
    # No atomic exchange here: there is an instant without a target, never one with half of it.
    aside = fresh.with_suffix(".old")
    try:
        target.rename(aside)
        fresh.rename(target)
    except BaseException:  # Ctrl-C too
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside)


def refusal(target: Path, judge: Callable[[Path], str]) -> str:
    """Why `target` must not be replaced, `""` if it may. OSError.

    `judge` says it of what is there. It is asked again if another writer has replaced that
    meanwhile: it may have seen what that writer was removing.
    """
    while True:
        before = _identity(target)
        if before is None:
            return ""
        try:
            found = judge(target)
        except OSError:
            if _identity(target) == before:
                raise
            continue
        if not found or _identity(target) == before:
            return found


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Another one means another directory, or something was done to this one; None: nothing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def stranger(directory: Path) -> str:
    """The first thing in `directory` that tstorm has not rendered, `""` if none. OSError."""
    for path in sorted(directory.iterdir()):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            return path.name
        if path.is_dir():
            inner = _not_a_shard(path) if path.name == _SHARDS else ""
            if inner is None:
                continue
            return f"{path.name}/{inner}".rstrip("/")
        if path.suffix != ".yaml" or not _rendered(path):
            return path.name
    return ""


def _not_a_shard(directory: Path) -> str | None:
    for path in sorted(directory.iterdir()):
        if path.is_symlink() or not path.is_file() or not _SHARD.fullmatch(path.name):
            return path.name
    return None


def _rendered(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(RENDERED)) == RENDERED


def exchange(a: Path, b: Path) -> bool:
    """Swaps two directories in one step: renameat2(2). False if this system or file system cannot
    do it."""
    try:
        import ctypes  # only needed when a plan is replaced; slow to import

        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError):
        return False
    status: int = call(
        _AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return status == 0
