"""What was done to a running experiment, as texts that its plan's source includes.

Each action is a text of its own, `do@1`, `do@2`, …, at the end of the source: so the plan of a run
that was steered compiles like any other, and each event says which action made it. One that a
`when` has done says which (of those of the text, from 1 on) and its how manieth time that was:
`do@7.2.3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n?|\n")  # as the language has it
_NAME = re.compile(r"do@([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,2})\.([1-9][0-9]{0,4}))?")


class Firing(NamedTuple):
    """Of the `when` that is the first, second … of a text, the first, second … time."""

    reaction: int
    time: int


def name_of(number: int, firing: Firing | None = None) -> str:
    """What the text of an action is called; numbers begin at 1."""
    return f"do@{number}" if firing is None else f"do@{number}.{firing.reaction}.{firing.time}"


@lru_cache(4096)
def number_of(file: str) -> int:
    """Of the action whose text this is; 0: of none."""
    found = _NAME.fullmatch(file)
    return int(found[1]) if found else 0


def firing_of(file: str) -> Firing | None:
    """Of the action whose text this is; None: somebody has done it by hand, or it is none."""
    found = _NAME.fullmatch(file)
    return Firing(int(found[2]), int(found[3])) if found and found[2] else None


def have_fired(files: Iterable[str]) -> bool:
    """Whether a plan with these texts has what its `when` did in a run: it is not done again."""
    return any(map(firing_of, files))


def lines_of(text: str) -> list[str]:
    """Of an action's text: what the language takes for lines, and nothing else that may look like
    their end."""
    found = _LINE_END.split(text)
    return found if found[-1] else found[:-1]
