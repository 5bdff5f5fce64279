"""Times in the block of a `when`: `now`, `+5s`, or none for at once. They count from the firing.

Input: the tokens of a line. Output: those that the grammar has, in which `now` is 0s and `+5s` is
5s, and a line without a time begins with `at 0s`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tdl.diagnostics import Sink
from tdl.tokens.lexer import Token


def from_the_firing(tokens: Sequence[Token], sink: Sink) -> list[Token]:
    """Nothing after a report (TS0331)."""
    first = tokens[0]
    if first.type not in ("AT", "FROM"):
        at = first._replace(type="AT", text="at", width=0)
        return [at, at._replace(type="VALUE", text="0s"), *tokens]
    found = list(tokens)
    places = (1, 3) if first.type == "FROM" and [one.type for one in found[2:3]] == ["TO"] else (1,)
    for place in places:
        if place >= len(found):
            break
        time = found[place]
        if time.text == "now":
            found[place] = time._replace(type="VALUE", text="0s", width=len(time.text))
        elif time.type == "VALUE" and time.text.startswith("+"):
            found[place] = time.within("VALUE", 1)
        elif time.type == "VALUE":
            message = f"{time.text} is a time of the experiment, and nobody knows when this happens"
            hint = f"write +{time.text.lstrip('-')}: so long after it was seen"
            sink.error("TS0331", time.span, message, hint)
            return []
    return found
