"""Looks for the shortest text that still fails: fewer statements, an earlier end, less of each.

Input: a script, trials, what a text means, and when the failure was decided. Output: the shortest
text that failed, also where the attempts were not enough to be sure that there is no shorter one.
Algorithm: ddmin (`minimise`) over the statements of the timeline; then the end of the experiment is
halved between what was too early and what was late enough, to within a tenth of the time, unless
only the end decides; then the statements that are left are shrunk themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from runtime.errors import RunError
from tstorm import units
from tstorm.shrink import loops, occurrences, pieces, windows
from tstorm.shrink.script import Script
from tstorm.shrink.text import Place, Range, Subset
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import InterruptedTrialError, SpentError, Trials
from tstorm.shrink.windows import ShrunkWindow

STEP_NS = 100_000_000  # ends are whole tenths of a second
INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Shrunk:
    """`text` is the shortest so far, and `end_ns` its end if that is another one. `confirmed`: it
    failed here, too. `stopped` says why the search is not complete, '' if it is; `error` is what
    this machine could not do then."""

    script: Script
    text: str
    end_ns: int | None = None
    confirmed: bool = False
    stopped: str = ""
    error: RunError | None = None


def search(
    script: Script, trials: Trials, reading: TextMeaning, decided_ns: int | None = None
) -> Shrunk:
    found = Shrunk(script, script.text)
    try:
        found.confirmed = trials.fails(script.text, "everything")
        if found.confirmed:
            kept = _fewer(found, trials, reading)
            _shorter(found, kept, trials, decided_ns)
            Finer(found, reading, trials).search()
    except SpentError as spent:
        found.stopped = str(spent)
    except (InterruptedTrialError, KeyboardInterrupt):
        found.stopped = INTERRUPTED
    except RunError as error:  # hours may have gone into what is there
        found.stopped, found.error = error.message, error
    return found


def _fewer(found: Shrunk, trials: Trials, reading: TextMeaning) -> Sequence[Range]:
    count, closed = len(found.script.events), reading.closed(found.script.text)

    def fails(kept: Sequence[Range]) -> bool:
        text = found.script.keeping(kept)
        if (reading.closed(text) or frozenset()) - (closed or frozenset()):
            return False  # without its `leave`, a `join` would be the cause
        failed = trials.fails(text, f"{len(kept)} of {count} statements")
        if failed:
            found.text = text
        return failed

    return minimise(found.script.events, fails)


def _shorter(found: Shrunk, kept: Sequence[Range], trials: Trials, decided_ns: int | None) -> None:
    """The moment that decided is tried first: most failures need nothing that comes later."""
    if found.script.quit is None or not trials.may_end_earlier:
        return
    early_ns, late_ns = 0, found.script.end_ns
    tried_ns = _rounded(decided_ns or 0) + STEP_NS if decided_ns else 0
    while late_ns - early_ns > max(late_ns // 10, STEP_NS):
        if not early_ns < tried_ns < late_ns:
            tried_ns = max(_rounded((early_ns + late_ns) // 2), early_ns + STEP_NS)
        if tried_ns >= late_ns:
            return
        text = found.script.keeping(kept, tried_ns)
        if trials.fails(text, f"an end at {units.duration(tried_ns)}"):
            found.text = text
            found.end_ns = late_ns = tried_ns
        else:
            early_ns = tried_ns
        tried_ns = 0


def _rounded(time_ns: int) -> int:
    """Up to a whole step."""
    return -(-time_ns // STEP_NS) * STEP_NS


# Within the statements that are left: fewer rounds, parts, names, properties, occurrences.
#
# Input: a text that fails, trials, and what a text means. Output: a text that still fails, without
# any single part of which it does not, as far as that was tried out.
# Algorithm: one kind of part after the other, the coarsest first; of each kind the choices from the
# end of the text to its beginning, so that the places of those to come stay right; each by
# `minimise`. Texts that do not compile or have more events are not run. Intervals are halved last.


_Found = TypeVar("_Found", Subset, ShrunkWindow)


@dataclass(slots=True)
class Finer:
    """`best` has the shortest text so far."""

    best: Shrunk
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
            minimise(range(choice.count), fails)

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


# Which of many things a failure needs: delta debugging.
#
# Input: a list, and whether a failure comes with a part of it. Output: a part with which it comes,
# and without any single item of which it does not.
# Algorithm: parts, then what is left without each part, are tried; whatever still fails is divided
# on, else parts are made smaller. Failures need not be monotone, nor every part possible.
# Source: A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
# Transactions on Software Engineering 28(2), 2002, figure 3.

Item = TypeVar("Item")


def minimise(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """`fails(items)` is true, and not asked again. Nothing at all is tried first: one test more."""
    left = list(items)
    if left and fails([]):
        return []
    parts = 2
    while len(left) >= 2:
        reduced = _reduced(left, parts, fails)
        if reduced is not None:
            left, parts = reduced
        elif parts < len(left):
            parts = min(2 * parts, len(left))
        else:
            break
    return left


def _reduced(
    left: list[Item], parts: int, fails: Callable[[Sequence[Item]], bool]
) -> tuple[list[Item], int] | None:
    """What is left to go on with, and in how many parts; None if everything is needed so far."""
    bounds = list(_bounds(len(left), parts))
    for begin, end in bounds:
        if fails(left[begin:end]):
            return left[begin:end], 2
    if parts > 2:  # of two parts, one is what is left without the other
        for begin, end in bounds:
            rest = left[:begin] + left[end:]
            if fails(rest):
                return rest, max(parts - 1, 2)
    return None


def _bounds(count: int, parts: int) -> Iterator[tuple[int, int]]:
    """Of parts that differ by one in size at most."""
    for number in range(parts):
        yield count * number // parts, count * (number + 1) // parts
