"""Runs `make` in a kernel's tree: an environment of our own, a log, and an end with ours.

What comes out depends on source, changes and compiler alone: date, user and host, which a kernel
shows (`uname -a`), are fixed, tools that a build only notes are hidden, and the tree is built in
place, so that its paths are relative.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.errors import MachineError, RunError

LOG = "build.log"
_FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Sat Jan  1 00:00:00 UTC 2000",
    "KBUILD_BUILD_USER": "tstorm",
    "KBUILD_BUILD_HOST": "tstorm",
    "KBUILD_BUILD_VERSION": "1",
    "LOCALVERSION": "",  # else a tree of git adds a sign to the version
    "LC_ALL": "C",
    "TZ": "UTC",
}
# They compile nothing of it, but the configuration would have the versions of those that are there.
_HIDDEN = ("RUSTC=false", "BINDGEN=false", "PAHOLE=false")
_COMPLAINTS = ("error:", "undefined reference", "*** ")
_KEPT = ("PATH", "HOME", "TMPDIR", "CCACHE_DIR")
# The command in a process group of its own, which is killed when our end of the pipe closes,
# however we end.
_GROUP = """
exec 3<&0 </dev/null
"$@" 3<&- &
job=$!
{ read -r _ <&3; kill -9 0; } &
watch=$!
exec 3<&-
wait $job
status=$?
kill $watch
exit $status
"""

Seen = Callable[[int, float], None]


def make(tree: Path, targets: Sequence[str], seen: Seen) -> None:
    """Runs `make` for user-mode Linux, at a low priority, on all processors that we may use.
    `seen` hears how many files are compiled and the seconds since the start. RunError with the
    reason as the log has it."""
    processors = len(os.sched_getaffinity(0))
    command = ["nice", "make", f"-j{processors}", "ARCH=um", "SUBARCH=x86"]
    command += [f"CC={shlex.join(compiler())}", *_HIDDEN]
    run([*command, *targets], tree, seen)


def run(command: Sequence[str], tree: Path, seen: Seen) -> None:
    """RunError if it fails. Nothing of it is left when we end, killed or not."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _FIXED
    begin = time.monotonic()
    with (
        (tree.parent / LOG).open("ab", buffering=0) as log,
        subprocess.Popen(
            ["sh", "-c", _GROUP, "build", *command],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,  # never written: it closes with us
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        count = 0
        try:
            _go_last(process.pid)
            for line in process.stdout:
                log.write(line)
                if line.startswith(b"  CC "):
                    count += 1
                    seen(count, time.monotonic() - begin)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # it has not been waited for: it is still ours
            raise
    if process.returncode != 0:
        raise RunError(
            f"{shlex.join(command)} failed: {_reason(tree)}",
            f"see {LOG} in the cache; the next build of this source goes on where this one stopped",
        )


def _go_last(leader: int) -> None:
    """Where the kernel groups processes by session, nice(1) counts within one only: the session of
    this leader is to be behind the others, too (sched(7), autogroup)."""
    with suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text("19", encoding="ascii")


def _reason(tree: Path) -> str:
    """What compiler, linker or make complained of first."""
    lines = (tree.parent / LOG).read_text(errors="replace").splitlines()
    said = (line for line in lines if any(word in line for word in _COMPLAINTS))
    return next(said, lines[-1] if lines else "it said nothing").strip()


# What building a kernel takes: which programs, and in which Debian packages they are.

ARCHITECTURE = "x86_64"
PACKAGES = {
    "make": "make",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "perl": "perl",
    "awk": "mawk",
    "find": "findutils",
}
_HEADERS = "libc6-dev"


def compiler() -> list[str]:
    """$CC, as for everything else that is compiled here, else gcc."""
    return shlex.split(os.environ.get("CC", "")) or ["gcc"]


def demand() -> None:
    """MachineError for another processor's machine, or that names all that is missing and the
    packages with it."""
    if platform.machine() != ARCHITECTURE:
        what = f"this machine is {platform.machine()}, and virtual time needs x86-64"
        raise MachineError(what, "leave out --time virtual: real time works here")
    missing = {name: package for name, package in PACKAGES.items() if not shutil.which(name)}
    cc = compiler()
    if not shutil.which(cc[0]):
        missing[cc[0]] = "gcc"
        missing.setdefault("the C library's headers", _HEADERS)
    elif not _compiles(cc):
        missing["the C library's headers"] = _HEADERS
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        what = f"what builds a kernel is missing here: {', '.join(missing)}"
        raise MachineError(what, f"on Debian: apt-get install {packages}")


def _compiles(cc: list[str]) -> bool:
    with tempfile.TemporaryDirectory(prefix="tstorm-cc-") as folder:
        source = Path(folder) / "a.c"
        source.write_text("#include <stdlib.h>\nint main(void) { return 0; }\n")
        command = [*cc, "-o", f"{folder}/a", str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
