"""A cumulative counter between its samples: it grows evenly in the time that each of them tells of,
and otherwise not (runtime/rundir/sample_reader.py)."""

from __future__ import annotations

from bisect import bisect_right

_BITS_NS = 8 * 10**9


class CounterGrowth:
    """Times are ns of one clock. A counter that fell has begun anew, at 0."""

    __slots__ = ("_counted", "_since_ns", "_sums", "_until_ns")

    def __init__(self) -> None:
        self._since_ns: list[int] = []
        self._until_ns: list[int] = []
        self._sums: list[int] = []  # of all growth until then
        self._counted = 0

    def add(self, since_ns: int, until_ns: int, count: int) -> None:
        """It has come to `count` in this time. What is not after the one before is left out."""
        last_ns = self._until_ns[-1] if self._until_ns else since_ns
        if until_ns <= last_ns:
            return
        count = max(count, 0)
        grown = count - self._counted if count >= self._counted else count
        self._sums.append(self._sums[-1] + grown if self._sums else grown)
        self._since_ns.append(max(since_ns, last_ns))
        self._until_ns.append(until_ns)
        self._counted = count

    def by(self, at_ns: int) -> int:
        """By how much it had grown by then, rounded down."""
        place = bisect_right(self._until_ns, at_ns)
        before = self._sums[place - 1] if place else 0
        if place == len(self._until_ns) or at_ns <= self._since_ns[place]:
            return before
        since_ns, until_ns = self._since_ns[place], self._until_ns[place]
        grown = self._sums[place] - before
        return before + grown * (at_ns - since_ns) // (until_ns - since_ns)

    def bps(self, from_ns: int, to_ns: int) -> int:
        """The mean rate of a counter of bytes, `from_ns` < `to_ns` of the run's own time."""
        return (self.by(to_ns) - self.by(from_ns)) * _BITS_NS // (to_ns - from_ns)
