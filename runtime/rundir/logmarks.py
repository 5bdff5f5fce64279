"""Lines of the run's own in the logs of instances: when the timeline did something to the instance.

They stand on lines of their own: where a program has not ended its last line, the mark ends it. A
reader tells them by how they begin.

    [tstorm] 12.345678901 s: crash
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "[tstorm] "
BEFORE_START = "before 0 s"
_MARK = re.compile(r"\[tstorm\] (?:(-?\d+)\.(\d{9}) s|before 0 s): (.*)")


@dataclass(frozen=True, slots=True)
class Mark:
    """`at_ns` is since time 0, None for what was before it."""

    at_ns: int | None
    text: str


def words(at_ns: int | None, text: str) -> str:
    when = BEFORE_START if at_ns is None or at_ns < 0 else _seconds(at_ns)
    return f"{PREFIX}{when}: {text}"


def _seconds(at_ns: int) -> str:
    return f"{at_ns // 10**9}.{at_ns % 10**9:09} s"


def line(text: str, *, cut: bool) -> bytes:
    """`cut`: the line before it has no end."""
    flat = " ".join(text.splitlines())
    return ("\n" if cut else "").encode() + flat.encode("utf-8", "backslashreplace") + b"\n"


def parse(text: str) -> Mark | None:
    """A line of a log without its end; None for a line of the program's."""
    found = _MARK.fullmatch(text)
    if found is None:
        return None
    seconds, rest, what = found.groups()
    return Mark(None if seconds is None else int(seconds) * 10**9 + int(rest), what)
