"""What building a kernel takes: which programs, and in which Debian packages they are."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from runtime.errors import MachineError

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
