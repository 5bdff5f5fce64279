"""What a kernel says about itself: an ordinary program that is asked with options."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from runtime.errors import RunError
from runtime.virtual.kernel import kernel_changes

MOST_BYTES = 2 << 30  # with all that debuggers want to know, less than half of that
_SECONDS = 30
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?[\w.+~-]*")
_MAGIC = b"\x7fELF"


def look(file: Path) -> None:
    """RunError unless it may be a kernel; before it is copied, since a file may have any size.
    OSError."""
    size = file.stat().st_size
    if size > MOST_BYTES:
        what = f"this file has {size:,} bytes, and no kernel has more than {MOST_BYTES:,}"
        raise RunError(what)
    with file.open("rb") as opened:
        if opened.read(len(_MAGIC)) != _MAGIC:
            raise RunError("this is no program, so no kernel of user-mode Linux")


def version(kernel: Path) -> str:
    """`6.12.117`. RunError if it is no kernel of user-mode Linux, or cannot be started here."""
    said = _ask(kernel, "--version").strip()
    if not _VERSION.fullmatch(said):
        raise RunError(f"this is no kernel of user-mode Linux: it calls itself {said[:80]!r}")
    return said


def config(kernel: Path) -> str:
    """The .config that it was built with."""
    return _ask(kernel, "--showconfig")


def can_seccomp(kernel: Path) -> bool:
    """Whether it can watch programs by seccomp instead of ptrace (6.16 and later)."""
    return re.search(r"^seccomp=", _ask(kernel, "--help"), re.MULTILINE) is not None


def check_imported(kernel: Path, source: str) -> dict[str, object]:
    """The facts about a kernel that was built elsewhere, as cache.put takes them. RunError if it
    has not this release's changes or lacks what is needed. `source`: where it is from."""
    number, text = version(kernel), config(kernel)
    if kernel_changes.of_config(text) != kernel_changes.digest():
        what = f"this kernel, {number}, was not built by this release of tstorm"
        raise RunError(what, "build it with this release: tstorm kernel build")
    if lost := kernel_changes.not_followed(kernel_changes.NEEDED, text):
        raise RunError(f"this kernel lacks {', '.join(lost)}")
    return {
        "version": number,
        "source": f"imported from {source}",
        "source_digest": "",
        "patches": (),
        "lacking": tuple(kernel_changes.not_followed(kernel_changes.WANTED, text)),
        **common(kernel, text),
    }


def common(kernel: Path, text: str) -> dict[str, object]:
    """The facts that any kernel of ours tells. `text`: its .config."""
    compiler = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', text, re.MULTILINE)
    return {
        "changes": kernel_changes.of_config(text),
        "seccomp": can_seccomp(kernel),
        "compiler": compiler[1] if compiler else "",
    }


def _ask(kernel: Path, option: str) -> str:
    """RunError if it does not answer."""
    try:
        look(kernel)
        done = subprocess.run(
            [str(kernel.absolute()), option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise RunError(f"the kernel cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the kernel did not answer {option} within {_SECONDS} s") from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing"]
        raise RunError(f"the kernel answers {option} with status {done.returncode}: {words[-1]}")
    return done.stdout
