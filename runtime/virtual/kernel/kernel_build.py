"""Makes a kernel for virtual time: source, unpack, change, configure, compile, keep.

All of it happens in a folder of the cache that is locked meanwhile and goes with the build. A tree
that a failed, interrupted or killed build has begun to compile stays there: the next build of the
same source goes on with it, one of another source, or a removal, clears it. The log of a build that
failed stays in the cache (`build.log`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runtime.errors import MachineError, RunError, unexpected, unwritten
from runtime.virtual.kernel import asking, compiling, kernel_cache, kernel_changes, kernel_source
from runtime.virtual.kernel.kernel_cache import Kernel

SPACE_BYTES = 1 << 30  # for tree and objects
LARGEST_BYTES = 15_000_000  # of a kernel: more is a mistake in `config`
_TREE = "tree"
_BEGUN = "begun"  # of which source and changes the tree is, once it has all of them
_CONFIG = "tstorm.config"


@dataclass(frozen=True, slots=True)
class Steps:
    """Where a build tells how far it is, in plain words."""

    step: Callable[[str], None]  # one is done, or begins
    progress: Callable[[str], None]  # within one; the next word takes its place


def build(wanted: Path | None, steps: Steps) -> Kernel:
    """The kernel of the source at `wanted`, None for one that is found (kernel_source.py). One that
    is built already is taken again. RunError, MachineError."""
    if wanted is None and (kernel := kernel_cache.find()) is not None:
        steps.step(f"built already: Linux {kernel.facts.version} of {kernel.facts.source}")
        return kernel
    origin = kernel_source.given(wanted) if wanted is not None else None
    compiling.demand()
    with kernel_cache.held() as place:
        work = place / kernel_cache.BUILDING
        try:
            work.mkdir(exist_ok=True)
            kernel = _build(origin or _found(work, steps), work, steps)
            (work / _BEGUN).unlink(missing_ok=True)
        except OSError as error:
            raise (unexpected if error.filename else unwritten)(error) from error
        except RunError:
            _keep_log(work)
            raise
        finally:
            if not (work / _BEGUN).exists():
                shutil.rmtree(work, ignore_errors=True)
    return kernel


def _keep_log(work: Path) -> None:
    log = work / compiling.LOG
    if log.exists():
        log.replace(work.parent / compiling.LOG)


def _demand_space(work: Path) -> None:
    there = shutil.disk_usage(work).free
    if there < SPACE_BYTES:
        what = f"{work} has room for {there >> 20} MiB, and building takes {SPACE_BYTES >> 20}"
        raise MachineError(what, "free space, or set TSTORM_CACHE to a folder with more")


def _found(work: Path, steps: Steps) -> kernel_source.KernelSource:
    """A source that nobody named."""
    if installed := kernel_source.installed():
        return installed
    package = kernel_source.packaged()
    if package is None:
        raise kernel_source.nowhere()
    steps.step(f"source: downloading {package}, about 150 MB (apt-get download)")
    return kernel_source.fetch(package, work)


def _build(origin: kernel_source.KernelSource, work: Path, steps: Steps) -> Kernel:
    steps.step(f"source: {origin.name}")
    digest = origin.digest()
    if kernel := kernel_cache.built_of(digest):
        steps.step(f"built already: Linux {kernel.facts.version} of this source")
        return kernel_cache.choose(kernel)
    tree = _unpacked(origin, digest, work, steps)
    version = kernel_source.version_of(tree)
    with _Timed(steps, f"configure Linux {'.'.join(map(str, version))}"):
        lacking = configure(tree)
    for option in lacking:
        steps.step(f"this source has not: {option}")
    _compile(tree, steps)
    binary = _stripped(tree)
    facts = {
        "version": asking.version(binary),
        "source": origin.name,
        "source_digest": digest,
        "patches": tuple(one.path.name for one in kernel_changes.fitting(version[:2])),
        "lacking": tuple(lacking),
        **asking.common(binary, (tree / ".config").read_text(encoding="utf-8")),
    }
    return kernel_cache.put(kernel_cache.staged(binary), {**facts, "built": now()})


def _unpacked(origin: kernel_source.KernelSource, digest: str, work: Path, steps: Steps) -> Path:
    """The source's tree with our changes: what a build before this has left, or a new one."""
    tree, begun, key = work / _TREE, work / _BEGUN, f"{digest} {kernel_changes.digest()}\n"
    if begun.exists() and begun.read_text() == key:
        steps.step("unpacked already: it goes on where the build before this stopped")
        return tree
    begun.unlink(missing_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    _demand_space(work)
    tree.mkdir()
    with _Timed(steps, "unpack"):
        origin.unpack(tree, lambda text: steps.progress(f"unpack: {text}"))
        kernel_changes.apply(tree, kernel_source.accepted(tree, origin.name)[:2])
    begun.write_text(key)
    return tree


def _compile(tree: Path, steps: Steps) -> None:
    files = 0

    def seen(count: int, seconds: float) -> None:
        nonlocal files
        files = count
        steps.progress(f"compile: {count} files, {seconds:.0f} s")

    processors = len(os.sched_getaffinity(0))
    what = "1 processor" if processors == 1 else f"{processors} processors"
    with _Timed(steps, f"compile on {what}", lambda: f"{files} files, "):
        compiling.make(tree, ["linux"], seen)


def configure(tree: Path) -> list[str]:
    """Writes .config and checks that the tree follows ours. Returns what is wanted and not there.
    RunError that names what is needed and not there."""
    (tree / _CONFIG).write_text(kernel_changes.whole_config(), encoding="utf-8")
    target = [f"KCONFIG_ALLCONFIG={_CONFIG}", "allnoconfig"]
    compiling.make(tree, target, lambda _count, _seconds: None)
    text = (tree / ".config").read_text(encoding="utf-8")
    if lost := kernel_changes.not_followed(kernel_changes.NEEDED, text):
        what = f"this source does not take what is needed: {', '.join(lost)}"
        raise RunError(what, "take another version: 6.12 is the one that is tried most")
    return kernel_changes.not_followed(kernel_changes.WANTED, text)


def _stripped(tree: Path) -> Path:
    """The kernel without the names that only a debugger reads."""
    kernel, stripped = tree / "linux", tree / "linux.stripped"
    command = ["strip", "-o", str(stripped), str(kernel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"strip failed: {done.stderr.strip()}")
    size = stripped.stat().st_size
    if size > LARGEST_BYTES:
        raise RunError(f"the kernel has {size} bytes, more than {LARGEST_BYTES}")
    return stripped


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Timed:
    """Tells a step with its seconds when it is done."""

    def __init__(self, steps: Steps, name: str, more: Callable[[], str] = lambda: "") -> None:
        self._steps, self._name, self._more = steps, name, more
        self._begin = time.monotonic()

    def __enter__(self) -> None:
        self._steps.progress(f"{self._name} …")

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            seconds = time.monotonic() - self._begin
            self._steps.step(f"{self._name}: {self._more()}{seconds:.0f} s")
