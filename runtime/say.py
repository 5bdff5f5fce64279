"""How messages write lists and numbers of things. Text only, nothing is decided here."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(count: int, word: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def some(texts: Sequence[str], most: int, between: str = ", ", word: str = "") -> str:
    """The first ones, and how many more there are: `a, b and 3 more`, or with a word for them
    `a, b and 3 more pods`."""
    more = len(texts) - most
    if more <= 0:
        return between.join(texts)
    rest = number(more, f"more {word}") if word else f"{more:,} more"
    return f"{between.join(texts[:most])} and {rest}"


def digits(value: float, count: int = 3) -> str:
    """With so many significant digits, without zeros at its end, and never with an exponent: of
    what is larger all digits before the point."""
    scale = 0 if value == 0 else math.floor(math.log10(abs(value)))
    text = f"{value:.{max(count - 1 - scale, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(time_ns: int) -> str:
    """A time that somebody has stated, exactly: `0 s`, `0.000004 s`, `1234567.5 s`."""
    whole, rest = divmod(time_ns, 10**9)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".") + " s"
