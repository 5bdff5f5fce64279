"""Keeps kernels for virtual time: where they are, which one a run takes, what is out of date.

They are in $TSTORM_CACHE/kernel, else $XDG_CACHE_HOME/tstorm/kernel, else ~/.cache/tstorm/kernel:
a folder VERSION-DIGEST each, with the kernel `linux` and what is known of it in `kernel.json`.
A folder appears whole or not at all. A run takes the one of this release's changes that was built,
imported or asked for last. $TSTORM_KERNEL names another kernel, for those who work on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runtime.errors import MachineError, RunError, unwritten
from runtime.json_schema import Count, decoded, parse
from runtime.system import caching, locks
from runtime.virtual.kernel import kernel_changes

COMMAND = "tstorm kernel build"
FORMAT = 1  # of kernel.json: raised when a field changes its meaning, comes or goes
BUILDING = "building"  # the folder of a build that goes on, or has stopped
_LOCK = "lock"
_KERNEL, _FACTS = "linux", "kernel.json"
_NEW = "new-"
_NAME_DIGITS = 12
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What kernel.json says."""

    format: Count
    version: str  # 6.12.117
    source: str  # for people
    source_digest: str  # '' if it was built elsewhere
    changes: str  # digest of ours: changes.digest
    patches: tuple[str, ...]  # by name; () if it was built elsewhere
    lacking: tuple[str, ...]  # of what is wanted: options that its source has not
    seccomp: bool  # whether programs can be watched by seccomp, which is faster than ptrace
    digest: str  # SHA-256 of the kernel
    size_bytes: Count
    compiler: str
    built: str  # when, UTC; ISO 8601


@dataclass(frozen=True, slots=True)
class Kernel:
    path: Path
    facts: KernelFacts

    @property
    def current(self) -> bool:
        """Whether it has this release's changes."""
        return self.facts.changes == kernel_changes.digest()


def root() -> Path:
    """Where kernels are kept; it need not be there. MachineError if nobody has a home here."""
    return caching.folder("kernel", "a kernel")


def kernels() -> list[Kernel]:
    """All that are kept, the one asked for last first. What is damaged is none."""
    found = []
    with suppress(OSError):
        for folder in root().iterdir():
            with suppress(OSError, ValueError, RunError):
                found.append(((folder / _FACTS).stat().st_mtime_ns, folder.name, _read(folder)))
    return [kernel for _, _, kernel in sorted(found, key=lambda one: one[:2], reverse=True)]


@contextmanager
def held() -> Iterator[Path]:
    """Keeps others from building, importing and removing. Clears up after those who were killed.
    MachineError if somebody is at it; RunError if nothing can be kept. Yields `root`."""
    place = root()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritten(error) from error
    try:
        if locks.take(lock) == locks.HELD:
            what = "a kernel is being built, imported or removed by another tstorm"
            raise MachineError(what, f"wait for it; they are kept in {place}")
        try:
            _clear(place)
            yield place
        finally:
            _clear(place)
    finally:
        os.close(lock)


def _clear(place: Path) -> None:
    """What those who were killed have left, but for the tree of a build."""
    for folder in place.glob(f"{_NEW}*"):
        shutil.rmtree(folder, ignore_errors=True)


def find() -> Kernel | None:
    """The one that a run takes."""
    return next((kernel for kernel in kernels() if kernel.current), None)


def path_for_run() -> Path:
    """The kernel's file. MachineError that says how to get one."""
    if named := os.environ.get("TSTORM_KERNEL"):
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise MachineError(f"TSTORM_KERNEL names no program: {named}", "unset it")
        return Path(named)
    kernel = find()
    if kernel is None:
        raise lacking()
    return kernel.path


def lacking() -> MachineError:
    """There is none for this release."""
    old = kernels()
    if not old:
        return MachineError("no kernel for virtual time is built", COMMAND)
    what = f"the kernel for virtual time, {old[0].facts.version}, was built by another release"
    return MachineError(f"{what} of tstorm", COMMAND)


def built_of(source_digest: str) -> Kernel | None:
    """The kernel of this source and this release's changes."""
    return next(
        (k for k in kernels() if k.current and k.facts.source_digest == source_digest), None
    )


def choose(kernel: Kernel) -> Kernel:
    """From now on runs take this one."""
    with suppress(OSError):
        os.utime(kernel.path.parent / _FACTS)
    return kernel


def staged(file: Path) -> Path:
    """A copy of a kernel that can be started, for who is inside `held`. OSError."""
    kernel = Path(tempfile.mkdtemp(prefix=_NEW, dir=root())) / _KERNEL
    shutil.copyfile(file, kernel)
    kernel.chmod(0o755)
    return kernel


def put(kernel: Path, given: Mapping[str, Any]) -> Kernel:
    """Keeps what `staged` has returned. `given`: what the file does not tell of KernelFacts.
    OSError."""
    folder, digest = kernel.parent, digest_of(kernel)
    facts = KernelFacts(**given, format=FORMAT, digest=digest, size_bytes=kernel.stat().st_size)
    text = json.dumps(asdict(facts), sort_keys=True, indent=1)
    (folder / _FACTS).write_text(text + "\n", encoding="utf-8")
    folder.chmod(0o755)
    with kernel.open("rb") as written:
        os.fsync(written.fileno())
    target = root() / f"{facts.version}-{digest[:_NAME_DIGITS]}"
    if _holds(target, digest):  # only what is known of it changes
        (folder / _FACTS).replace(target / _FACTS)
    else:
        shutil.rmtree(target, ignore_errors=True)  # one that was damaged
        folder.rename(target)
    return _read(target)


def _holds(folder: Path, digest: str) -> bool:
    try:
        return digest_of(folder / _KERNEL) == digest
    except OSError:
        return False


def _read(folder: Path) -> Kernel:
    """RunError, ValueError, OSError for what is no kernel's folder."""
    if folder.name.startswith(_NEW):
        raise ValueError("not finished")
    record = parse((folder / _FACTS).read_bytes(), str(folder / _FACTS))
    facts = decoded(KernelFacts, record, str(folder / _FACTS))
    if facts.format != FORMAT or record.keys() != asdict(facts).keys():
        raise ValueError("another release's record")
    kernel = Kernel(folder / _KERNEL, facts)
    if kernel.path.stat().st_size != kernel.facts.size_bytes:
        raise ValueError("damaged")
    return kernel


def digest_of(file: Path) -> str:
    value = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            value.update(block)
    return value.hexdigest()


def remove(*, only_stale: bool = False) -> list[str]:
    """Removes all that is kept, or what this release has no use for. Returns the folders' names.
    MachineError if somebody is at it, RunError if it cannot be removed."""
    if not root().is_dir():
        return []
    with held() as place:
        kept = {kernel.path.parent for kernel in kernels() if kernel.current and only_stale}
        gone = [path for path in sorted(place.iterdir()) if path.is_dir() and path not in kept]
        try:
            for folder in gone:
                folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
        except OSError as error:
            raise RunError(f"cannot remove {error.filename}: {error.strerror}") from error
    return [folder.name for folder in gone]
