"""The one time axis of all series of a page, and the values of a series on it.

A grid has at most MOST_BUCKETS buckets of the same length, fewer where there are many series: a
page holds at most MOST_NUMBERS numbers of them. A series is written as it is shortest:

    {"v": [...]}               a value for each bucket, null where nothing is known
    {"i": [...], "v": [...]}   values of these buckets; the others have none, 0 or the last one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from runtime.nearest_rank import nearest_rank

MOST_BUCKETS = 1000
LEAST_BUCKETS = 60
MOST_NUMBERS = 1_100_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Plan time: bucket n covers step_ns from begin_ns + n * step_ns on."""

    begin_ns: int
    step_ns: int
    count: int

    def bucket(self, at_ns: int) -> int:
        """The one that holds this moment, the nearest one for a moment outside."""
        return min(max((at_ns - self.begin_ns) // self.step_ns, 0), self.count - 1)

    def parts(self, from_ns: int, until_ns: int, amount: int) -> list[tuple[int, int]]:
        """What of an amount that came evenly in (from_ns, until_ns] belongs to which bucket. The
        sum is the amount."""
        first, last = self.bucket(from_ns), self.bucket(until_ns - 1)
        if first == last:
            return [(first, amount)]
        span, found, given = until_ns - from_ns, [], 0
        for bucket in range(first, last):
            end = self.begin_ns + (bucket + 1) * self.step_ns
            whole = amount * (end - from_ns) // span
            found.append((bucket, whole - given))
            given = whole
        return [*found, (last, amount - given)]

    def coarser(self) -> TimeGrid:
        """With buckets of twice the length."""
        return TimeGrid(self.begin_ns, 2 * self.step_ns, -(-self.count // 2))

    def to_record(self) -> dict[str, int]:
        return {"begin_ns": self.begin_ns, "step_ns": self.step_ns, "count": self.count}


def grid(begin_ns: int, end_ns: int, least_step_ns: int, numbers: int) -> TimeGrid:
    """`least_step_ns`: nothing is measured more often; `numbers`: how many each bucket has."""
    span = max(end_ns - begin_ns, 1)
    wanted = min(max(MOST_NUMBERS // max(numbers, 1), LEAST_BUCKETS), MOST_BUCKETS)
    step = max(-(-span // wanted), least_step_ns, 1)
    return TimeGrid(begin_ns, step, max(-(-span // step), 1))


def since(values: dict[int, T], first: int, end: int) -> dict[int, T]:
    """Those of the buckets from `first` on, all of which are before `end`. Where few can be, only
    these are looked at."""
    if not first:
        return values
    if end - first < len(values):
        return {bucket: values[bucket] for bucket in range(first, end) if bucket in values}
    return {bucket: value for bucket, value in values.items() if bucket >= first}


def coarser(values: Mapping[int, int], both: Callable[[int, int], int]) -> dict[int, int]:
    """In buckets of twice the length."""
    found: dict[int, int] = {}
    for bucket, value in values.items():
        half = bucket // 2
        found[half] = both(found[half], value) if half in found else value
    return found


def packed(values: Mapping[int, int], count: int) -> dict[str, Any]:
    """A series of these buckets."""
    if len(values) * 2 > count:
        return {"v": [values.get(bucket) for bucket in range(count)]}
    buckets = sorted(values)
    return {"i": buckets, "v": [values[bucket] for bucket in buckets]}


def percentiles(ordered: Sequence[int], ranks: Sequence[int], of: int) -> list[int]:
    """Of sorted values, each `rank` of `of`; empty without values."""
    return [nearest_rank(ordered, rank, of) for rank in ranks] if ordered else []
