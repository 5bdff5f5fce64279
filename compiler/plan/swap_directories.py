"""Swaps two directories in one step, where the system can: renameat2(2) with RENAME_EXCHANGE."""

from __future__ import annotations

import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchange(a: Path, b: Path) -> bool:
    """True if `a` and `b` were swapped, False if this system or file system cannot do it."""
    try:
        import ctypes  # only needed when a plan is replaced; slow to import

        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError):
        return False
    status: int = call(
        _AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return status == 0
