"""When a find was decided: `tstorm why` of its run, kept in its folder."""

from __future__ import annotations

from pathlib import Path

from runtime.errors import RunError, unwritten
from runtime.rundir.held_directory import HeldDirectory
from tstorm.hunt.storm_finds import RUN
from tstorm.why import answer

WORDS, PAGE = "why.txt", "page.html"


def is_explained(folder: Path) -> bool:
    return (folder / WORDS).exists()


def explain(folder: Path, branches: int, many: int | None) -> bool:
    """Writes why.txt and page.html; where it cannot be known, why not. Whether somebody stopped
    it. RunError if nothing can be written."""
    run = str(folder / RUN)
    page = None
    try:
        found = answer.answered(run, branches, many, lambda _one: None)
        if found.stopped:
            return True
        lines = list(found.text())
        page = answer.page(found)
    except RunError as error:
        lines = [f"it is not known when this was decided: {error.message}"]
    try:
        held = HeldDirectory.hold(folder.resolve())
        if page is not None:
            held.write(PAGE, page.encode())
        held.write(WORDS, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise unwritten(error) from error
    return False
