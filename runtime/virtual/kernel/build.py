"""Makes a kernel for virtual time: source, unpack, change, configure, compile, keep.

All of it happens in a folder of the cache that is locked meanwhile and goes with the build; after
a build that was killed the next one, or a removal, clears it. The log of a build that failed stays
in the cache (`build.log`).
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
from runtime.virtual.kernel import asking, cache, changes, compiling, source, tools
from runtime.virtual.kernel.cache import Kernel

SPACE_BYTES = 1 << 30  # for tree and objects
LARGEST_BYTES = 15_000_000  # of a kernel: more is a mistake in `config`
_TREE = "tree"
_CONFIG = "tstorm.config"


@dataclass(frozen=True, slots=True)
class Steps:
    """Where a build tells how far it is, in plain words."""

    step: Callable[[str], None]  # one is done, or begins
    progress: Callable[[str], None]  # within one; the next word takes its place


def build(wanted: Path | None, steps: Steps) -> Kernel:
    """The kernel of the source at `wanted`, None for one that is found (source.py). One that is
    built already is taken again. RunError, MachineError."""
    if wanted is None and (kernel := cache.find()) is not None:
        steps.step(f"built already: Linux {kernel.facts.version} of {kernel.facts.source}")
        return kernel
    origin = source.given(wanted) if wanted is not None else None
    tools.demand()
    with cache.held() as place:
        work = place / cache.BUILDING
        try:
            work.mkdir()
            _demand_space(work)
            return _build(origin or _found(work, steps), work, steps)
        except OSError as error:
            raise (unexpected if error.filename else unwritten)(error) from error
        except RunError:
            _keep_log(work)
            raise


def _keep_log(work: Path) -> None:
    log = work / compiling.LOG
    if log.exists():
        log.replace(work.parent / compiling.LOG)


def _demand_space(work: Path) -> None:
    there = shutil.disk_usage(work).free
    if there < SPACE_BYTES:
        what = f"{work} has room for {there >> 20} MiB, and building takes {SPACE_BYTES >> 20}"
        raise MachineError(what, "free space, or set TSTORM_CACHE to a folder with more")


def _found(work: Path, steps: Steps) -> source.KernelSource:
    """A source that nobody named."""
    if installed := source.installed():
        return installed
    package = source.packaged()
    if package is None:
        raise source.nowhere()
    steps.step(f"source: downloading {package}, about 150 MB (apt-get download)")
    return source.fetch(package, work)


def _build(origin: source.KernelSource, work: Path, steps: Steps) -> Kernel:
    steps.step(f"source: {origin.name}")
    digest = origin.digest()
    if kernel := cache.built_of(digest):
        steps.step(f"built already: Linux {kernel.facts.version} of this source")
        return cache.choose(kernel)
    tree = work / _TREE
    tree.mkdir()
    with _Timed(steps, "unpack"):
        origin.unpack(tree, lambda text: steps.progress(f"unpack: {text}"))
        version = source.accepted(tree, origin.name)
        patches = changes.apply(tree, version[:2])
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
        "patches": tuple(patches),
        "lacking": tuple(lacking),
        **asking.common(binary, (tree / ".config").read_text(encoding="utf-8")),
    }
    return cache.put(cache.staged(binary), {**facts, "built": now()})


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
    (tree / _CONFIG).write_text(changes.whole_config(), encoding="utf-8")
    target = [f"KCONFIG_ALLCONFIG={_CONFIG}", "allnoconfig"]
    compiling.make(tree, target, lambda _count, _seconds: None)
    text = (tree / ".config").read_text(encoding="utf-8")
    if lost := changes.not_followed(changes.NEEDED, text):
        what = f"this source does not take what is needed: {', '.join(lost)}"
        raise RunError(what, "take another version: 6.12 is the one that is tried most")
    return changes.not_followed(changes.WANTED, text)


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
