"""When a failure was decided: how often runs fail that are the same until a moment and drawn anew
from then on.

Input: the moments at which anything happened, and what carries out branches. Before the decision
some branches pass; after it none does. The latest moment with a branch that passes is looked for by
bisection. A moment counts as decided if `SURE` branches in a row fail; the one that is found is
tried again as often, and the search goes on behind it if a branch passes. What is left of the
branches shows the course before that, and jumps in it.

Nothing here depends on how many branches are carried out at a time: they are judged in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt

SURE = 8  # branches that all fail, one in 256 times by chance where each fails one in two times
COARSE = 6  # moments before the decision that show the course
_Z = 1.96  # of intervals that hold the probability in 95 of 100 cases
# Of a jump, in standard deviations: many places are tried, so it is more than one test would take.
_JUMP_Z = 3.3

Branches = Callable[[int, int], Iterator[bool]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the branches at one moment so many fail. `place`: of the moment, in the search's list."""

    place: int
    at_ns: int
    runs: int
    fails: int

    @property
    def all_fail(self) -> bool:
        return self.fails == self.runs

    @property
    def is_whole(self) -> bool:
        """Whether as many were looked at as were wanted: not only up to the first that passes."""
        return self.runs >= SURE

    @property
    def share(self) -> float:
        return self.fails / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, in which the probability is in 95 of 100 cases."""
        n, p = self.runs, self.share
        middle = p + _Z * _Z / (2 * n)
        spread = _Z * sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        whole = 1 + _Z * _Z / n
        low, high = (middle - spread) / whole, (middle + spread) / whole
        return max(0.0, min(p, low)), min(1.0, max(p, high))


@dataclass(frozen=True, slots=True)
class Jump:
    """From one moment to the next that was looked at, the probability is another. `before` and
    `after` sum up what is known between this jump and its neighbours. `after` None: the failure
    itself."""

    before: Estimate
    after: Estimate | None


def summed(some: Sequence[Estimate], edge: Estimate) -> Estimate:
    """All of them, as if they were of the moment of one."""
    runs, fails = sum(one.runs for one in some), sum(one.fails for one in some)
    return Estimate(edge.place, edge.at_ns, runs, fails)


def _deviations(before: Estimate, after: Estimate) -> float:
    """How far apart two shares are, in standard deviations of their difference if both were the
    same (the test of two proportions)."""
    runs = before.runs + after.runs
    share = (before.fails + after.fails) / runs
    variance = share * (1 - share) * (1 / before.runs + 1 / after.runs)
    return abs(after.share - before.share) / sqrt(variance) if variance else 0.0


def jumps_in(course: Sequence[Estimate]) -> list[Jump]:
    """By the largest one, and then those on its two sides."""
    found: tuple[float, int, Jump] | None = None
    for at in range(1, len(course)):
        before = summed(course[:at], course[at - 1])
        after = summed(course[at:], course[at])
        apart = _deviations(before, after)
        if apart > _JUMP_Z and (found is None or apart > found[0]):
            found = apart, at, Jump(before, after)
    if found is None:
        return []
    _, at, jump = found
    return [*jumps_in(course[:at]), jump, *jumps_in(course[at:])]


class EnoughError(Exception):
    """No more branches may be carried out."""


@dataclass
class Search:
    """`moments`: sorted, the first is the earliest at which a branch can begin. `branches(at, n)`
    says of each further branch at a moment whether it fails, from the n-th on, without an end.
    `most`: branches that are looked at. `tell` hears of a moment that was looked at."""

    moments: Sequence[int]
    branches: Branches
    most: int
    tell: Callable[[Estimate], None] = lambda _one: None
    left: int = field(init=False)
    known: dict[int, Estimate] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.left = self.most

    def carry_out(self) -> None:
        """As far as `most` allows."""
        try:
            self._look(0, SURE, whole=True)
            if not self.known[0].all_fail:
                self._bisect()
                self._show_the_course()
        except EnoughError:
            return

    @property
    def decided(self) -> tuple[int, int]:
        """The places between which it was decided: the last at which a branch passes, -1 for none,
        and the first after it at which all fail, or the number of moments."""
        low = max((one.place for one in self.known.values() if not one.all_fail), default=-1)
        sure = (p for p, one in self.known.items() if p > low and one.runs >= SURE)
        return low, min(sure, default=len(self.moments))

    @property
    def is_narrow(self) -> bool:
        """Whether there is no moment between these two places."""
        low, high = self.decided
        return high - low <= 1

    @property
    def is_tried_again(self) -> bool:
        """Whether the moment that is found was tried as often again. The failure itself needs no
        branch."""
        _, high = self.decided
        return high not in self.known or self.known[high].runs >= 2 * SURE

    @property
    def course(self) -> list[Estimate]:
        return [self.known[place] for place in sorted(self.known)]

    def jumps(self) -> list[Jump]:
        """In their order; the last is the one with which the failure was decided."""
        low, high = self.decided
        found = jumps_in(self._before)
        return [*found, Jump(self.known[low], self.known.get(high))] if low >= 0 else found

    @property
    def _before(self) -> list[Estimate]:
        """The course before the decision, as far as it was looked at to the end."""
        low, _ = self.decided
        return [one for one in self.course if one.place <= low and one.runs >= SURE]

    def _bisect(self) -> None:
        while True:
            low, high = self.decided
            if high - low > 1:
                self._look((low + high) // 2, SURE, whole=False)
            elif high in self.known and self.known[high].runs < 2 * SURE:
                self._look(high, 2 * SURE, whole=False)
            else:
                return

    def _show_the_course(self) -> None:
        """Moments before the decision, the first and the last among them, and then between those
        between which the probability jumps."""
        low, _ = self.decided
        for place in (low, 0, *(low * part // COARSE for part in range(1, COARSE))):
            self._look(place, SURE, whole=True)
        while True:
            both = [
                (one.before.place, one.after.place) for one in jumps_in(self._before) if one.after
            ]
            wide = [pair for pair in both if pair[1] - pair[0] > 1]
            if not wide:
                return
            self._look(sum(wide[0]) // 2, SURE, whole=True)

    def _look(self, place: int, wanted: int, *, whole: bool) -> None:
        """At so many branches of a moment, those that are known included; not `whole`: no further
        one after the first that passes."""
        at_ns = self.moments[place]
        one = self.known.get(place) or Estimate(place, at_ns, 0, 0)
        branches = self.branches(at_ns, one.runs)
        while one.runs < wanted and (whole or one.all_fail):
            if not self.left:
                raise EnoughError
            self.left -= 1
            one = Estimate(place, at_ns, one.runs + 1, one.fails + next(branches))
            self.known[place] = one
        self.tell(one)
