"""Whether the programs of an experiment are on this machine, for the warnings of check and run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.plan.types import Service


def finder(
    folder: Path, *, images: bool = False
) -> Callable[[Service, str], tuple[str, str] | None]:
    """For the programs of a file in `folder`, where relative names begin. With `images` a service
    that has an image runs what is in it."""
    from runtime.system import compiled_programs

    usual = compiled_programs.of_programs(os.environ)

    def find(service: Service, program: str) -> tuple[str, str] | None:
        if "$" in program or (images and service.image):
            return None  # known in the run only, or in the image
        if "/" in program:
            return _named(program, folder / program)
        path = dict(service.env).get("PATH", usual)
        if shutil.which(program, path=path) is not None:
            return None
        known = compiled_programs.elsewhere(program)
        hint = "install it, or write its whole path"
        if known is not None:
            hint = f"it is not on PATH, but here: {known}"
        return f"there is no program {program!r} on this machine", hint

    return find


def _named(program: str, path: Path) -> tuple[str, str] | None:
    if not path.is_file():
        return f"there is no program {program!r}", f"it would be {path}"
    if not os.access(path, os.X_OK):
        return f"{program!r} cannot be executed", f"chmod +x {path}"
    return None
