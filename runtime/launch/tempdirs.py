"""Temporary folders of this user's commands, where `tstorm destroy` and the next run find them.

In $XDG_STATE_HOME/tstorm/scratch (or ~/.local/state/…), beside the records of runs; in /tmp where
locks of that file system are not seen by everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compiler.plan import scratch
from runtime.errors import unwritten
from runtime.launch import userdirs

_STEM = "plan"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is removed at the end, or after a kill by the next sweep(). RunError."""
    with ExitStack() as stack:
        try:
            path = stack.enter_context(scratch.directory(userdirs.scratch(), _STEM))
        except OSError as error:
            raise unwritten(error) from error
        yield path


def sweep() -> None:
    """Removes the folders of dead processes."""
    scratch.sweep(userdirs.scratch(), _STEM)
