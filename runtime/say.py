"""How messages write lists and numbers of things. Text only, nothing is decided here."""

from __future__ import annotations

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
