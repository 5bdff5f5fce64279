"""Lines of the run's own in the logs of instances: when the timeline did something to the instance.

They stand on lines of their own: where a program has not ended its last line, the mark ends it, and
says so, since that line would look like a whole one. A reader tells them by how they begin.

    [tstorm] 12.345678901 s: crash
    [tstorm] 12.345678901 s: crash (the line before had no end)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "[tstorm] "
BEFORE_START = "before 0 s"
SETUP = "setup"  # how marks of a setup begin: it ends by itself
_NO_END = " (the line before had no end)"
_MARK = re.compile(rf"\[tstorm\] (?:(-?\d+)\.(\d{{9}}) s|before 0 s): (.*?)({re.escape(_NO_END)})?")


@dataclass(frozen=True, slots=True)
class Mark:
    """`at_ns` is since time 0, None for what was before it. `cut`: the program had not ended the
    line before."""

    at_ns: int | None
    text: str
    cut: bool = False

    @property
    def tears(self) -> bool:
        """The line before is not known to be whole; a setup has ended by itself."""
        return self.cut and not self.text.startswith(SETUP)

    @property
    def goes_on(self) -> bool:
        """The program may write on."""
        return self.text in ("leave", "pause", "resume")


def words(at_ns: int | None, text: str) -> str:
    when = BEFORE_START if at_ns is None or at_ns < 0 else _seconds(at_ns)
    return f"{PREFIX}{when}: {text}"


def _seconds(at_ns: int) -> str:
    return f"{at_ns // 10**9}.{at_ns % 10**9:09} s"


def line(text: str, *, cut: bool) -> bytes:
    """`cut`: the line before it has no end."""
    flat = " ".join(text.splitlines()) + (_NO_END if cut else "")
    return ("\n" if cut else "").encode() + flat.encode("utf-8", "backslashreplace") + b"\n"


def parse(text: str) -> Mark | None:
    """A line of a log without its end; None for a line of the program's."""
    found = _MARK.fullmatch(text)
    if found is None:
        return None
    seconds, rest, what, no_end = found.groups()
    at_ns = None if seconds is None else int(seconds) * 10**9 + int(rest)
    return Mark(at_ns, what, no_end is not None)
