"""A run directory's plan becomes a longer one, in one step; the one that the run began with stays
beside it (PLANNED).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compiler.plan.storage import outdir, scratch
from runtime.errors import RunError, unwritten
from runtime.rundir.runfiles import LONGER_PLAN, PLAN, PLANNED


def keep(directory: Path, files: Mapping[str, bytes], *, is_first: bool) -> None:
    """`is_first`: what is there is the plan that the run began with. RunError."""
    try:
        with scratch.filled(directory, LONGER_PLAN, files) as path:
            put_in_place(directory, path, is_first=is_first)
    except OSError as error:
        raise unwritten(error) from error


def put_in_place(directory: Path, path: Path, *, is_first: bool) -> None:
    """The same of a plan that lies at `path`, in the same directory. RunError."""
    plan, planned = directory / PLAN, directory / PLANNED
    try:
        swapped = outdir.exchange(path, plan)  # what it was is removed by who has left this
        if swapped and is_first:
            path.rename(planned)
        elif is_first:
            plan.rename(planned)
            path.rename(plan)
        elif not swapped:
            raise RunError("two folders cannot be swapped here, which a second action takes")
    except OSError as error:
        raise unwritten(error) from error


def take_back(directory: Path, path: Path, *, is_first: bool) -> None:
    """Undoes put_in_place(). RunError."""
    plan, planned = directory / PLAN, directory / PLANNED
    try:
        if is_first:
            plan.rename(path)
            planned.rename(plan)
        else:
            outdir.exchange(path, plan)
    except OSError as error:
        raise unwritten(error) from error
