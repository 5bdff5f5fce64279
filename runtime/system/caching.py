"""Where what takes long to make is kept: $TSTORM_CACHE, $XDG_CACHE_HOME/tstorm, ~/.cache/tstorm."""

from __future__ import annotations

import os
from pathlib import Path

from runtime.errors import MachineError


def folder(name: str, what: str) -> Path:
    """The folder `name` there, absolute; it need not exist. `what` is kept in it, for the
    MachineError that nobody has a home here."""
    if own := os.environ.get("TSTORM_CACHE", ""):
        return Path(own).absolute() / name
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        place = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise MachineError(
            f"no home is known here to keep {what} in", "set TSTORM_CACHE"
        ) from error
    return place / "tstorm" / name
