"""Measured delays as the distribution of a jitter: as a plan has them, and what follows from them.

A table has the deviations from the mean at 4,097 points of the inverse distribution function, in
2^-20 of a standard deviation: point i is where the part i / 4,096 of all delays ends, the first and
the last half an interval inside. Between points it is linear, and on the whole it has mean 0 and
deviation 1. Content of a plan, in lines of ASCII (docs/plan.md, Tables of delays).

A link names a table by what a state has as its `distribution`: the beginning of its digest and the
figures that judges of a run need, which follow from the table.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from compiler.plan.format import ATTACHED, DISTRIBUTIONS, PlanError
from compiler.plan.parts.traces import filled
from compiler.plan.properties import MEASURED

if TYPE_CHECKING:
    from compiler.plan.types import PlannedDelays

PARTS = 4096
ONE = 1 << 20  # a standard deviation
MOST_DEVIATIONS = 128  # pktd takes no more (tcal_c/common/limits.h)
MOST_FALL = (1 << 31) - 1  # of the process behind it, in the same unit (docs/pktd.md)
_KIND = "delays"


class Measured(NamedTuple):
    """What the name of a table tells."""

    digest: str  # its beginning
    kurtosis: float
    early: float  # deviations below the mean of the earliest
    apart: int  # deviations of time from one packet to the next that met another jitter


@dataclass(frozen=True)
class DelayTable:
    """`mean_ns` and `deviation_ns` are those of the file; 0 of one that has a shape alone."""

    mean_ns: int
    deviation_ns: int
    points: tuple[int, ...]

    @cached_property
    def data(self) -> bytes:
        words = (str(-self.points[0]), *(str(b - a) for a, b in pairwise(self.points)))
        lines = (f"{_KIND} {self.mean_ns} {self.deviation_ns}", *filled(words))
        return "".join(line + "\n" for line in lines).encode("ascii")

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def name(self) -> str:
        """For plans and datapaths."""
        parts = (_fourth(a / ONE, b / ONE) for a, b in pairwise(self.points))
        fourth = math.fsum(parts) / PARTS  # the same in every Python
        early = math.ceil(-100 * self.points[0] / ONE)
        apart = -(-self.fall // ONE) + 1
        return f"measured-{self.digest[:16]}-{math.ceil(100 * fourth)}-{early}-{apart}"

    @property
    def fall(self) -> int:
        """From the highest to the lowest of the process that is behind it."""
        return slowed(self.points)[-1]


def _fourth(a: float, b: float) -> float:
    """The mean of the fourth powers of all between them."""
    return (a**4 + a**3 * b + a * a * b * b + a * b**3 + b**4) / 5


def slowed(points: Sequence[int]) -> list[int]:
    """The same points of the process behind a table (docs/pktd.md, Delay and jitter): no interval
    is narrower than it, and where its density grows towards longer delays they are wider, so that
    the logarithm of its distribution function is concave."""
    most, widths = 0, [0]
    for i, (a, b) in enumerate(pairwise(points)):
        most = max(most, (b - a) * (2 * i + 1))
        widths.append(-(-most // (2 * i + 1)))
    return list(accumulate(widths))


def decode(data: bytes) -> DelayTable:
    """PlanError for anything but what `data` of a table is."""
    try:
        kind, mean, deviation = data[: data.index(b"\n")].decode("ascii").split(" ")
        below, *widths = map(int, data[data.index(b"\n") :].decode("ascii").split())
        found = DelayTable(int(mean), int(deviation), tuple(accumulate((-below, *widths))))
        same = kind == _KIND and found.data == data and is_sound(found)
    except ValueError:
        same = False
    if not same:
        raise PlanError(ATTACHED, "a table of delays is not as tstorm writes it")
    return found


def is_sound(table: DelayTable) -> bool:
    """Whether pktd takes it."""
    points = table.points
    if table.mean_ns < 0 or table.deviation_ns < 0:
        return False
    ascends = len(points) == PARTS + 1 and all(a <= b for a, b in pairwise(points))
    bound = MOST_DEVIATIONS * ONE
    return ascends and -bound <= points[0] <= 0 <= points[-1] <= bound and table.fall <= MOST_FALL


@lru_cache(1024)
def measured(distribution: str) -> Measured | None:
    """None for one that is not measured."""
    if distribution in DISTRIBUTIONS or not re.fullmatch(MEASURED, distribution):
        return None
    _, digest, kurtosis, early, apart = distribution.split("-")
    return Measured(digest, int(kurtosis) / 100, int(early) / 100, int(apart))


def file_of(distribution: str, planned: Iterable[PlannedDelays]) -> str:
    """What a source calls the file; '' of one that is not measured. Files may have one table."""
    found = measured(distribution)
    names = (one.name for one in planned if found and one.digest.startswith(found.digest))
    return " or ".join(names)


def is_known(distribution: str, digests: Iterable[str]) -> bool:
    """Whether it is not measured, or a table with one of these digests."""
    found = measured(distribution)
    return found is None or any(digest.startswith(found.digest) for digest in digests)
