"""What differs between two runs, as told: one place, both sides of it, and how much else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

SHOWN_CHARACTERS = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunDifference:
    """`what` is 'event', 'link', 'pair', 'sample', 'packet', 'log', 'file', 'file of packets',
    'manifest' or 'summary'."""

    what: str
    subject: str  # the link, pair, instance or file
    at_ns: int | None  # since the start, of the first moment; None: it has none
    first: str  # what the first run has there, '' if nothing
    second: str
    more: int = 0  # further lines, figures or entries that differ

    def to_record(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "subject": self.subject,
            "at_ns": self.at_ns,
            "recorded": self.first,
            "replayed": self.second,
            "more": self.more,
        }


def first_difference(
    pairs: Iterable[tuple[T | None, T | None]],
) -> tuple[T | None, T | None, int] | None:
    """The first pair whose sides differ, and how many pairs after it do; None if none does."""
    found: tuple[T | None, T | None] | None = None
    more = 0
    for mine, theirs in pairs:
        if mine == theirs:
            continue
        if found is None:
            found = (mine, theirs)
        else:
            more += 1
    return None if found is None else (*found, more)


def shortened(text: str) -> str:
    """Text that is foreign data, at a length that can be read."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
