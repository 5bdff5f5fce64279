"""The properties of a link: the one table that plans, limits, paths, datapaths and texts follow.

A new property is a field of LinkState, a row of PROPERTIES and, where it composes along a path, a
field of Totals, at the same place in the order of each. docs/howto/add-a-link-property.md has the
rest. Change anything here and bump FORMAT_VERSION in compiler/plan/format.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from compiler.plan.format import DISTRIBUTIONS, MAX_INT, PPB

_DAY_NS = 86_400 * 10**9


class Along(Enum):
    """What the values of links become along a path (compiler/plan/paths/path_properties.py)."""

    LEAST = "the least, where 0 means unlimited"
    SUM = "the sum"
    SQUARES = "the root of the sum of the squares"
    SHARES = "1 - product of (1 - share)"


class LinkState(NamedTuple):
    """The properties of one link direction in one epoch. A tuple, since nothing is made and
    compared as often."""

    up: bool  # usable: not taken down, and both its ends present
    rate_bps: int  # what is left for traffic (background already taken off), 0 = unlimited
    delay_ns: int
    jitter_ns: int
    loss_ppb: int
    queue_bytes: int
    distribution: str  # of DISTRIBUTIONS; meaningless at jitter 0


@dataclass(frozen=True, slots=True)
class Property:
    field: str  # of LinkState, with the unit at its end
    word: str  # what datapaths call it
    most: int = 0  # of one link; the language and the datapaths allow as much
    along: Along | None = None  # None: a path has what one of its links has
    stored: int = MAX_INT  # the largest number that a plan can hold
    words: tuple[str, ...] = ()  # in place of a number


PROPERTIES = (
    Property("rate_bps", "rate", 10**13, Along.LEAST),
    Property("delay_ns", "delay", _DAY_NS, Along.SUM),
    Property("jitter_ns", "jitter", _DAY_NS, Along.SQUARES),
    Property("loss_ppb", "loss", PPB, Along.SHARES, stored=PPB),
    Property("queue_bytes", "queue", 1 << 30),
    Property("distribution", "dist", words=DISTRIBUTIONS),
)
NUMBERS = tuple(row for row in PROPERTIES if not row.words)
COMPOSED = tuple(row for row in PROPERTIES if row.along)
BY_FIELD = {row.field: row for row in PROPERTIES}
BY_WORD = {row.word: row for row in PROPERTIES}

T = TypeVar("T")


class Totals(NamedTuple, Generic[T]):
    """One thing for each property that composes along a path, in the order of COMPOSED."""

    rate_bps: T
    delay_ns: T
    jitter_ns: T
    loss_ppb: T
