"""Which storm comes next: a new one, or a change of one that reached something new.

Storm n is drawn from the seed of the hunt, n, and what the storms up to n - LAG have reached. So
the storms are the same however many run at a time, and however often the hunt was interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tstorm.hunt.storms import Drawing, Storm, generator

if TYPE_CHECKING:
    from random import Random

    from compiler.expect.storm_space import StormSpace

LAG = 8  # storms that may be drawn ahead of what came of the ones before: so many run at a time
CHANGED = 0.6  # of the storms are changes of earlier ones
ATTEMPTS = 50  # storms in a row that are no experiment


class NoStormError(Exception):
    """With these bounds few storms are experiments. The text says why the last one is none."""


@dataclass(slots=True)
class Guidance:
    """`refused` says why a storm is no experiment, '' if it is one. `blind`: no storm is a change
    of another."""

    space: StormSpace
    seed: int
    refused: Callable[[Storm], str]
    blind: bool = False
    seen: Counter[str] = field(default_factory=Counter)  # by how many storms each was reached
    kept: list[tuple[Storm, tuple[str, ...]]] = field(default_factory=list)
    changes: Counter[int] = field(default_factory=Counter)  # of storms that were kept

    def take(self, storm: Storm, reached: Sequence[str]) -> int:
        """What came of a storm, in the order of their numbers. How much of it is new."""
        new = [one for one in reached if one not in self.seen]
        self.seen.update(reached)
        if storm.parent >= 0:
            self.changes[storm.parent] += 1
        if new:
            self.kept.append((storm, tuple(reached)))
        return len(new)

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
        drawing = Drawing(self.space, random)
        if self.blind or not self.kept or random.random() >= CHANGED:
            return drawing.storm(number)
        return drawing.changed(self._parent(random), number)

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
