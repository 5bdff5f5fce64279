"""Tries texts out, within bounds: the same text once, and not more of them than was allowed.

Input: what runs a text once, and what must fail. A text fails if so many of its runs fail that way;
no more of them are made than it takes to know. One that does not compile does not fail. A run that
says nothing about its text does not count, and is made once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from runtime.errors import RunError
from tstorm.shrink.failures import Failure


class SpentError(Exception):
    """There may be no further attempt; the text says why."""


class InterruptedTrialError(Exception):
    """Somebody stopped a run."""


class SilentRunError(RunError):
    """A run says nothing about its text."""


class Runs(Protocol):
    def __call__(self, text: str, /) -> Collection[Failure] | None:
        """What failed in a run of the text; None if it does not compile. InterruptedTrialError,
        SilentRunError."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`needed` of `repeat` runs must fail. `until` is a time of the clock, None: there is none."""

    attempts: int
    needed: int = 1
    repeat: int = 1
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """`fails` of `runs` failed; no runs: it does not compile."""

    number: int
    text: str
    what: str
    runs: int
    fails: int
    failed: bool


class Trials:
    def __init__(
        self,
        run: Runs,
        wanted: Collection[Failure],
        bounds: Bounds,
        clock: Callable[[], float],
        tell: Callable[[Attempt], None],
    ) -> None:
        self.attempts: list[Attempt] = []
        self.remembered = 0  # texts that were asked for again
        self._run = run
        self._wanted = frozenset(wanted)
        self._bounds = bounds
        self._clock = clock
        self._tell = tell
        self._known: dict[bytes, bool] = {}

    @property
    def may_end_earlier(self) -> bool:
        """Whether an earlier end could show what must fail."""
        return not all(one.by_end for one in self._wanted)

    def fails(self, text: str, what: str) -> bool:
        """`what` says what the text is, for people. SpentError, InterruptedTrialError, and
        SilentRunError if two runs in a row were silent."""
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        if digest in self._known:
            self.remembered += 1
            return self._known[digest]
        if len(self.attempts) >= self._bounds.attempts:
            raise SpentError(f"{self._bounds.attempts} attempts were made (--attempts)")
        attempt = self._attempt(text, what)
        self.attempts.append(attempt)
        self._known[digest] = attempt.failed
        self._tell(attempt)
        return attempt.failed

    def _attempt(self, text: str, what: str) -> Attempt:
        bounds, runs, fails = self._bounds, 0, 0
        while fails < bounds.needed and runs - fails <= bounds.repeat - bounds.needed:
            found = self._found(text)
            if found is None:
                break
            runs += 1
            fails += not self._wanted.isdisjoint(found)
        number = len(self.attempts) + 1
        return Attempt(number, text, what, runs, fails, fails >= bounds.needed)

    def _found(self, text: str, *, again: bool = True) -> Collection[Failure] | None:
        if self._bounds.until is not None and self._clock() >= self._bounds.until:
            raise SpentError("the time for it is over (--budget)")
        try:
            return self._run(text)
        except SilentRunError:
            if not again:
                raise
        return self._found(text, again=False)
