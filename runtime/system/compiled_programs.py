"""Finds the compiled programs (pktd, tstorm-ns, tprobe): in the package or a source tree."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from runtime.errors import MachineError

_PACKAGE = Path(__file__).resolve().parents[1]


def places(name: str) -> tuple[Path, ...]:
    """Where `name` may be, in the order in which it is looked for."""
    return (_PACKAGE / "bin" / name, _PACKAGE.parent / "tcal_c" / "build" / name)


def find(name: str) -> Path:
    """The path of program `name`. Raises MachineError if it was not built."""
    for path in places(name):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    looked = " and ".join(str(path) for path in places(name))
    raise MachineError(
        f"the program {name} is missing (looked for {looked})",
        "run `make` in the source tree, or install the package again with a C compiler present",
    )


# Where the programs of an experiment are looked for: PATH, without the caller's Python.
#
# A virtual environment that is active where `tstorm` is typed holds the Python of `tstorm`, and is
# not there on the next machine: an experiment's `python3` is the machine's. Daemons live in sbin
# folders, which an ordinary user's PATH may lack. The project's own programs (tprobe) come last, so
# that they never hide one of the machine.

DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DAEMONS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_ELSEWHERE = ("usr/lib/*/bin", "usr/lib/*/*/bin", "usr/libexec", "opt/*/bin", "opt/*/sbin")


def of_programs(caller: Mapping[str, str]) -> str:
    """PATH for programs, from the environment of who starts the run."""
    left_out = set(_environments(caller))
    given = (caller.get("PATH") or DEFAULT).split(":")
    kept = [folder for folder in given if os.path.realpath(folder) not in left_out]
    kept += [folder for folder in _DAEMONS if folder not in kept]
    with suppress(MachineError):  # whoever needs it says so
        kept.append(str(find("tprobe").parent))
    return ":".join(kept)


def _environments(caller: Mapping[str, str]) -> Iterator[str]:
    """The folders of programs of the virtual environments that are active."""
    if sys.prefix != sys.base_prefix:
        yield os.path.realpath(f"{sys.prefix}/bin")
    if caller.get("VIRTUAL_ENV"):
        yield os.path.realpath(f"{caller['VIRTUAL_ENV']}/bin")


def elsewhere(program: str) -> str | None:
    """The whole path of a program that is in no folder of PATH, but where packages put some."""
    for pattern in _ELSEWHERE:
        for folder in sorted(Path("/").glob(pattern), reverse=True):  # the newest version first
            path = folder / program
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return None
