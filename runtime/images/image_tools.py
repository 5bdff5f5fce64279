"""The programs that fetch and unpack images (skopeo, umoci), and what stops them: a full disk.

An image may be anybody's: a layer of a few kilobytes can unpack to terabytes, or to files without
end. So while a tool works the room that is left is looked at, and the tool ended before others on
this machine have none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runtime.errors import MachineError, RunError
from runtime.system import process_limits

TOOLS = ("skopeo", "umoci")
LEFT_BYTES = 1 << 30  # of the disk, for others
LEFT_FILES = 10_000
_LOOK_SECONDS = 0.2
_WORDS = 600  # characters of what a tool said, in a message
Steps = Callable[[str], None]  # is told what is being done


def lacking() -> list[str]:
    """The tools that are not installed."""
    return [name for name in TOOLS if shutil.which(name) is None]


def find(name: str) -> str:
    """MachineError if it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise missing(lacking())
    return found


def missing(names: Sequence[str]) -> MachineError:
    both = " and ".join(names)
    return MachineError(
        f"images cannot be run on this machine: {both} {'is' if len(names) == 1 else 'are'} not"
        " installed",
        f"apt-get install {' '.join(names)} (Fedora: dnf install), or state exec= for a program of"
        " this machine",
    )


def run(
    what: str,
    argv: Sequence[str],
    place: Path,
    held: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Runs a tool that writes into `place`; what it printed. `held`: descriptors of locks that last
    as long as it does. RunError: `what`, and what the tool said last."""
    process = process_limits.start(
        argv[0],
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=held,
        env=env,
    )
    full = ""
    try:
        while True:
            try:
                said, complaint = process.communicate(timeout=_LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                full = full or _shortage_of(place)
                if full:
                    process.kill()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if full:
        raise RunError(f"{what}: {full}", "it may be a hostile image; or free some space")
    if process.returncode != 0:
        raise RunError(f"{what}: {_last_words(complaint) or f'status {process.returncode}'}")
    return said


def _shortage_of(place: Path) -> str:
    """What little is left where it writes, '' if enough is."""
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if free < LEFT_BYTES:
        return f"it is too large: {free / 1e6:.0f} MB are left on the disk of {place}"
    if found.f_files and found.f_favail < LEFT_FILES:
        return f"it has too many files: room for {found.f_favail} is left on the disk of {place}"
    return ""


def _last_words(complaint: bytes) -> str:
    """The last line; of a line of logrus (`time=… level=fatal msg="…"`) its message."""
    lines = complaint.decode(errors="replace").strip().splitlines()
    last = lines[-1].strip() if lines else ""
    _, found, message = last.partition('msg="')
    text = message.rpartition('"')[0].replace('\\"', '"') if found else last.lstrip(" •⨯")
    return text[:_WORDS]
