"""Hunts: draws storms, runs several at a time, keeps what comes of them, and makes finds of those
that fail, until there is no more time.

Input: a directory that is worked in, and what draws the storm of a number. What is known already is
not carried out again. A failure of a known find (the same expectations and programs failed, and the
storm has all kinds of faults that the find took) counts as that find and is not shrunk; of the
others those that come to the same when they are shrunk are one. Finds are begun once all earlier
storms have ended, and kept in the order of their storms, so they do not depend on which process is
faster.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

from runtime.errors import RunError
from tstorm.campaign import jobs
from tstorm.hunt.hunt_directory import DRAFT
from tstorm.hunt.hunt_results import FAILED, SILENT, FindResult, StormResult
from tstorm.hunt.storms import Storm

if TYPE_CHECKING:
    from pathlib import Path

    from tstorm.hunt.hunt_directory import HuntDirectory

SILENT_MOST = 8  # storms in a row that say nothing: then none will


class Work(Protocol):
    """Carries out storms and finds, each in a process of its own. None: somebody stopped it.
    RunError where a find cannot be kept."""

    def storm(self, storm: Storm) -> StormResult | None: ...

    def find(self, found: StormResult, draft: Path) -> FindResult | None: ...


class Refused(NamedTuple):
    """Why a process could not do it."""

    why: str
    remedy: str


Task = Storm | StormResult  # to be run, or to be made a find of
Said = StormResult | FindResult | Refused | None


@dataclass(slots=True)
class Hunting:
    """`draw` gives the storm of a number, or NoStormError; `is_over` says whether no further storm
    begins; `tell` hears of each result."""

    hunt: HuntDirectory
    draw: Callable[[int], Storm]
    work: Work
    is_over: Callable[[int], bool]
    tell: Callable[[StormResult | FindResult], None]
    interrupted: bool = False
    _number: int = 0  # of the next storm
    _going: dict[int, Task] = field(default_factory=dict)
    _held: dict[int, tuple[StormResult, FindResult]] = field(default_factory=dict)  # by storm
    _ended_below: int = 0  # all storms with smaller numbers have ended
    _dry: bool = False  # there is no task until something that goes on has ended
    _silent: int = 0

    def carry_out(self, shares: Sequence[list[int]]) -> None:
        """RunError, NoStormError."""
        while True:
            self._dry = False
            for job in jobs.carry_out(self._do, self._tasks(), shares):
                task = job.point
                self._going.pop(_key(task), None)
                self._ended(task, job.said, job.why)
            if self._going or not self._dry:  # something was stopped, or kept from beginning
                self.interrupted = True
                return
            if not self._is_ready():
                return

    def _do(self, task: Task) -> Said:
        """In a process of its own."""
        try:
            if isinstance(task, Storm):
                return self.work.storm(task)
            return self.work.find(task, self._draft(task))
        except RunError as error:
            return Refused(error.message, error.remedy)

    def _draft(self, found: StormResult) -> Path:
        return self.hunt.place_of_finds / f"{DRAFT}{found.storm.number}"

    def _tasks(self) -> Iterator[Task]:
        while (task := self._next()) is not None:
            self._going[_key(task)] = task
            yield task
        self._dry = True

    def _next(self) -> Task | None:
        for found in self._unfound():
            return found
        while self._number in self.hunt.storms:
            self._number += 1
        if self.is_over(self._number):
            return None
        self._number += 1
        return self.draw(self._number - 1)

    def _is_ready(self) -> bool:
        """Whether there is something to do, when nothing goes on."""
        return any(True for _ in self._unfound()) or not self.is_over(self._number)

    def _unfound(self) -> Iterator[StormResult]:
        """Storms that failed of which no find was made. One that fails as another one that goes on
        waits for what comes of that."""
        shrinking = {_failed(one) for one in self._going.values() if isinstance(one, StormResult)}
        shrinking |= {_failed(one) for one, _ in self._held.values()}
        settled = self._settled()
        for found in self._missing():
            number = found.storm.number
            if number >= settled:
                return
            if _failed(found) in shrinking:
                continue
            known = self._known(found)
            if known is None:
                yield found
                return
            again = FindResult(number, known.find, faults_before=len(found.storm.faults))
            self.hunt.add(again)
            self.tell(again)
            self._keep_in_order()

    def _missing(self) -> Iterator[StormResult]:
        """Storms that failed of which no find is kept, in their order."""
        for number in sorted(self.hunt.storms):
            found = self.hunt.storms[number]
            if found.outcome == FAILED and number not in self.hunt.finds:
                yield found

    def _settled(self) -> float:
        """Storms with smaller numbers have ended, but for those that will not begin any more."""
        while self._ended_below in self.hunt.storms:
            self._ended_below += 1
        begun = [one.number for one in self._going.values() if isinstance(one, Storm)]
        waits = [] if self.is_over(self._ended_below) else [self._ended_below]
        return min((*begun, *waits), default=inf)

    def _known(self, found: StormResult) -> FindResult | None:
        """The find that this is one more case of."""
        kinds = set(found.storm.kinds)
        for one in self.hunt.finds.values():
            first = self.hunt.storms[one.storm]
            if one.is_first and _failed(first) == _failed(found) and set(one.kinds) <= kinds:
                return one
        return None

    def _ended(self, task: Task, said: Said, why: str) -> None:
        """RunError: then nothing is kept of it, and it is done anew by who goes on."""
        if isinstance(said, Refused):
            raise RunError(said.why, said.remedy)
        if isinstance(task, Storm):
            found = (
                said if isinstance(said, StormResult) else StormResult(task, SILENT, message=why)
            )
            self.hunt.add(found)
            self.tell(found)
            self._count_silent(found)
        else:
            number = task.storm.number
            made = said if isinstance(said, FindResult) else FindResult(number, 0, message=why)
            self._held[number] = task, made
        self._keep_in_order()

    def _keep_in_order(self) -> None:
        """What is held, as far as nothing before it is missing."""
        for found in list(self._missing()):
            if found.storm.number not in self._held:
                return
            self._keep(*self._held.pop(found.storm.number))

    def _count_silent(self, found: StormResult) -> None:
        self._silent = self._silent + 1 if found.outcome == SILENT else 0
        if self._silent >= SILENT_MOST:
            raise RunError(
                f"{SILENT_MOST} storms in a row say nothing; the last one: {found.message}",
                "see whether the experiment runs as it is: tstorm run … --time virtual",
            )

    def _keep(self, task: StormResult, said: FindResult) -> None:
        """A find that is none, or is an earlier one, has no folder."""
        draft = self._draft(task)
        found = said
        if said.is_first:
            same = next(filter(lambda one: _is_same(one, said), self.hunt.finds.values()), None)
            number = 1 + max((one.find for one in self.hunt.finds.values()), default=0)
            found = replace(said, find=number) if same is None else _again(said, same)
        if found.is_first:
            try:
                draft.rename(self.hunt.folder(found.find))
            except OSError as error:
                raise RunError(f"{draft} cannot be kept: {error.strerror}") from error
        else:
            with suppress(OSError):
                shutil.rmtree(draft)
        self.hunt.add(found)
        self.tell(found)


def _key(task: Task) -> int:
    """Storms and finds of them are not told apart by their numbers alone."""
    return task.number if isinstance(task, Storm) else -1 - task.storm.number


def _failed(found: StormResult) -> frozenset[tuple[str, str, bool]]:
    return frozenset((one.what, one.name, one.by_end) for one in found.failed)


def _is_same(one: FindResult, other: FindResult) -> bool:
    return one.is_first and (one.failures, one.kinds) == (other.failures, other.kinds)


def _again(said: FindResult, first: FindResult) -> FindResult:
    return replace(said, find=first.find, is_first=False)
