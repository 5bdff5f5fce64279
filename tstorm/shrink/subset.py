"""What of a text can be chosen: some of several parts of it, of which others go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tstorm.shrink.text import Place


@dataclass(frozen=True, slots=True)
class Subset:
    """`text` makes the text with these parts only, by their numbers in order; None: it cannot be
    written. `what` the parts are, for people; `at` is where the first one stands. `possible` is
    asked once, before anything is tried."""

    at: Place
    what: str
    count: int
    text: Callable[[Sequence[int]], str | None]
    possible: Callable[[], bool] = lambda: True
