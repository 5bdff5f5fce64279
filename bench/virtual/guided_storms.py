"""Storms that change earlier ones which reached something new: what was tried in place of drawing
each anew, and takes more storms to a bug. It is kept here to be measured with (bench.virtual.hunt).

Storm n is drawn from the seed of the hunt, n, and what the storms up to n - LAG have reached. So
the storms are the same however many run at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from compiler.expect.storm_space import StormSpace
from tstorm.hunt.storms import (
    ATTEMPTS,
    MS,
    SEEDS,
    Drawing,
    Fault,
    NoStormError,
    Storm,
    below,
    generator,
    one_of,
)

LAG = 8  # storms that may be drawn ahead of what came of the ones before: so many run at a time
CHANGED = 0.6  # of the storms are changes of earlier ones
_NEAR = 0.1  # of the time in which faults may be: how far one is moved, mostly less


@dataclass(frozen=True, slots=True)
class ChangedDrawing(Drawing):
    """Draws changes of storms, too."""

    def changed(self, storm: Storm, number: int) -> Storm:
        """Like this one, but for one to three things."""
        faults = list(storm.faults)
        for _ in range(1 + below(self.random, 3)):
            self._change(faults)
        seed = storm.seed if self.random.random() < 0.5 else below(self.random, SEEDS)
        return Storm(number, seed, tuple(sorted(faults)))

    def _change(self, faults: list[Fault]) -> None:
        what = one_of(self.random, ("add", "drop", "move", "move", "last", "other"))
        if what == "add" and len(faults) < self.space.most:
            faults.append(self._fault(one_of(self.random, self.space.kinds)))
            return
        at = below(self.random, len(faults))
        if what == "drop" and len(faults) > 1:
            del faults[at]
        elif what == "last":
            begin_ns = faults[at].begin_ns
            faults[at] = replace(faults[at], end_ns=begin_ns + self._length(begin_ns))
        elif what == "other":
            faults[at] = self._retargeted(faults[at])
        else:
            faults[at] = self._moved(faults[at])

    def _retargeted(self, fault: Fault) -> Fault:
        kind = next(one for one in self.space.kinds if one.word == fault.word)
        return replace(fault, targets=self._targets(kind), value=self._value(kind))

    def _moved(self, fault: Fault) -> Fault:
        """Mostly by little: the moment of a race is near one that was nearly a race."""
        space, length_ns = self.space, fault.end_ns - fault.begin_ns
        reach = (space.end_ns - space.begin_ns) * _NEAR
        by_ns = reach * self.random.random() ** 3 * (1 if self.random.random() < 0.5 else -1)
        latest_ns = space.end_ns - length_ns
        begin_ns = min(max(fault.begin_ns + by_ns, space.begin_ns), latest_ns)
        begin_ns = max(int(begin_ns) // MS * MS, space.begin_ns)
        return replace(fault, begin_ns=begin_ns, end_ns=begin_ns + length_ns)


@dataclass(slots=True)
class Guidance:
    """`refused` says why a storm is no experiment, '' if it is one."""

    space: StormSpace
    seed: int
    refused: Callable[[Storm], str]
    seen: Counter[str] = field(default_factory=Counter)  # by how many storms each was reached
    kept: list[tuple[Storm, tuple[str, ...]]] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)  # of storms that are changes
    changes: Counter[int] = field(default_factory=Counter)  # of storms that were kept

    def take(self, storm: Storm, reached: Sequence[str]) -> None:
        """What came of a storm, in the order of their numbers."""
        new = [one for one in reached if one not in self.seen]
        self.seen.update(reached)
        if storm.number in self.parents:
            self.changes[self.parents[storm.number]] += 1
        if new:
            self.kept.append((storm, tuple(reached)))

    def storm(self, number: int) -> Storm:
        """NoStormError."""
        why = ""
        for attempt in range(ATTEMPTS):
            random = generator(self.seed, number, attempt)
            found = self._drawn(random, number)
            why = self.refused(found)
            if not why:
                return found
        raise NoStormError(why)

    def _drawn(self, random: Random, number: int) -> Storm:
        drawing = ChangedDrawing(self.space, random)
        self.parents.pop(number, None)
        if not self.kept or random.random() >= CHANGED:
            return drawing.storm(number)
        parent = self._parent(random)
        self.parents[number] = parent.number
        return drawing.changed(parent, number)

    def _parent(self, random: Random) -> Storm:
        """Rather one that reached what few have, and that has not been changed often."""
        weights = [self._weight(storm, reached) for storm, reached in self.kept]
        place = random.random() * sum(weights)
        for (storm, _), weight in zip(self.kept, weights, strict=True):
            place -= weight
            if place < 0:
                return storm
        return self.kept[-1][0]

    def _weight(self, storm: Storm, reached: Iterable[str]) -> float:
        rarest = min(self.seen[one] for one in reached)
        return 1 / (rarest * (1 + self.changes[storm.number]))
