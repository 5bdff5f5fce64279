"""The last line of a program's log. Programs write there what they like, and may put something else
in the file's place: nothing but a regular file is read, and nothing reaches a terminal but text.
"""

from __future__ import annotations

from runtime.errors import RunError
from runtime.rundir import logmarks
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import LOGS

TAIL_BYTES = 4096
LINE_CHARACTERS = 200


def last_line(run: HeldDirectory, name: str) -> str:
    """The last line that is not empty and no mark of the run's, cut to a readable length; '' if
    there is none."""
    try:
        data = run.enter(LOGS).tail(name, TAIL_BYTES)
    except (OSError, RunError):
        return ""
    lines = data.decode(errors="replace").split("\n")
    lines = [line for line in lines if line.strip() and logmarks.parse(line) is None]
    return "".join(map(_shown, lines[-1].strip()))[-LINE_CHARACTERS:] if lines else ""


def _shown(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
