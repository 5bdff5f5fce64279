"""Within the statements that are left: fewer rounds, parts, names, properties, occurrences.

Input: a text that fails, trials, and what a text means. Output: a text that still fails, without
any single part of which it does not, as far as that was tried out.
Algorithm: one kind of part after the other, the coarsest first; of each kind the choices from the
end of the text to its beginning, so that the places of those to come stay right; each by ddmin
(ddmin.py). Texts that do not compile or have more events are not run. Intervals are halved last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from tstorm.shrink import ddmin, loops, occurrences, pieces, windows
from tstorm.shrink.text import Place

if TYPE_CHECKING:
    from tstorm.shrink.script import Script
    from tstorm.shrink.subset import Subset
    from tstorm.shrink.text_meaning import TextMeaning
    from tstorm.shrink.trials import Trials


class Best(Protocol):
    text: str


class _Placed(Protocol):
    @property
    def at(self) -> Place: ...


_Found = TypeVar("_Found", bound=_Placed)


@dataclass(slots=True)
class Finer:
    """`best` has the shortest text so far."""

    best: Best
    reading: TextMeaning
    trials: Trials

    def search(self) -> None:
        """SpentError, InterruptedTrialError."""
        for find in (loops.rounds, pieces.clauses, pieces.names, pieces.properties):
            for choice in self._from_the_end(find):
                self._chosen(choice)
        for choice in self._from_the_end(lambda now: occurrences.occurrences(now, self.reading)):
            self._chosen(choice)
        for window in self._from_the_end(lambda now: windows.windows(now, self.reading)):
            windows.narrower(window, self._narrowed)

    def _from_the_end(self, find: Callable[[Script], Iterator[_Found]]) -> Iterator[_Found]:
        """What there is in the text as it has become, one after the other."""
        below: Place | None = None
        while True:
            left = [
                one
                for one in find(self.reading.script(self.best.text))
                if below is None or one.at < below
            ]
            if not left:
                return
            last = max(left, key=lambda one: one.at)
            below = last.at
            yield last

    def _chosen(self, choice: Subset) -> None:
        def fails(kept: Sequence[int]) -> bool:
            text = choice.text(kept) if kept else None  # the statement is needed
            what = f"{len(kept)} of {choice.count} {choice.what}"
            return text is not None and self._is_no_larger(text) and self._tried(text, what)

        if choice.possible():
            ddmin.minimise(range(choice.count), fails)

    def _is_no_larger(self, text: str) -> bool:
        """One part less may bring events back that it kept from happening, or close a link from the
        beginning on (Reading.closed)."""
        reading, best = self.reading, self.best.text
        events, before = reading.events(text), reading.events(best)
        closed, known = reading.closed(text), reading.closed(best)
        if events is None or before is None or closed is None or known is None:
            return False
        return events <= before and closed <= known

    def _narrowed(self, text: str, what: str) -> bool:
        return self.reading.plan(text) is not None and self._tried(text, what)

    def _tried(self, text: str, what: str) -> bool:
        failed = self.trials.fails(text, what)
        if failed:
            self.best.text = text
        return failed
