"""What was done to a running experiment by hand, as texts that its plan's source includes.

Each action is a text of its own, `do@1`, `do@2`, …, at the end of the source: so the plan of a run
that was steered compiles like any other, and each event says which action made it.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(r"\r\n?|\n")  # as the language has it
_NAME = re.compile(r"do@([1-9][0-9]{0,8})")


def name_of(number: int) -> str:
    """What the text of an action is called; numbers begin at 1."""
    return f"do@{number}"


def number_of(file: str) -> int:
    """Of the action whose text this is; 0: of none."""
    found = _NAME.fullmatch(file)
    return int(found[1]) if found else 0


def lines_of(text: str) -> list[str]:
    """Of an action's text: what the language takes for lines, and nothing else that may look like
    their end."""
    found = _LINE_END.split(text)
    return found if found[-1] else found[:-1]
