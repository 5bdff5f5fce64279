"""Finds the compiled programs (pktd, tstorm-ns, tprobe): in the package or a source tree."""

from __future__ import annotations

import os
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
