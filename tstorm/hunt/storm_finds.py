"""Makes a find of a storm that failed: what is left of its faults when all that is not needed is
gone, run once more with its page, in a folder of its own.

Input: a request and the result of a storm. Output: a FindResult, and a draft of its folder.
Algorithm: faults that begin after the failure was decided go first, without an attempt of their
own. Then delta debugging over faults (tstorm.shrink.search.minimise), each of which is one
statement or a pair; a text fails if a run of it does with one of `repeat` seeds, the storm's own
first. Then one attempt to end right behind the failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import RunError, unwritten
from runtime.launch.launch import run
from runtime.options import INTERRUPTED
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from tstorm.hunt.hunt_results import FailedAt, FindResult, StormResult
from tstorm.hunt.storms import SEEDS, below, generator
from tstorm.shrink import failures
from tstorm.shrink.failures import Failure
from tstorm.shrink.search import STEP_NS, minimise
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import (
    Bounds,
    InterruptedTrialError,
    Runs,
    SpentError,
    TrialRunner,
    Trials,
)
from tstorm.text import optiontext
from tstorm.why import answer

if TYPE_CHECKING:
    from tstorm.hunt.storm_runs import HuntRequest
    from tstorm.hunt.storms import Fault
    from tstorm.shrink.script import Script

TEXT, RUN, COMMAND, ABOUT = "repro.tdl", "run", "command", "find.json"


@dataclass(slots=True)
class Reseeded:
    """Runs each text with another seed each time, the same ones for every text. `failed` has the
    seed with which a text failed as it is wanted."""

    runners: Sequence[tuple[int, Runs]]
    wanted: frozenset[Failure]
    counts: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> Mapping[Failure, int | None] | Sequence[Failure] | None:
        seed, runner = self.runners[self.counts.get(text, 0) % len(self.runners)]
        found = runner(text)
        self.counts[text] = self.counts.get(text, 0) + 1
        if found is not None and not self.wanted.isdisjoint(found):
            self.failed.setdefault(text, seed)
        return None if found is None else list(found)


@dataclass(frozen=True, slots=True)
class ShrunkStorm:
    """What is left of a storm: faults, the text with them, and the seed with which it failed."""

    faults: tuple[Fault, ...]
    text: str
    seed: int
    stopped: str = ""


def seeds(storm_seed: int, count: int) -> list[int]:
    """Of the runs of each text."""
    random = generator(storm_seed)
    return [storm_seed, *(below(random, SEEDS) for _ in range(count - 1))]


def made(asked: HuntRequest, found: StormResult, draft: Path) -> FindResult | None:
    """None if somebody stopped it. RunError if the folder cannot be written."""
    wanted = frozenset(map(_failure, found.failed))
    own_seeds = seeds(found.storm.seed, asked.repeat)
    reseeded = Reseeded([(seed, _runner(asked, seed)) for seed in own_seeds], wanted)
    trials = Trials(
        reseeded,
        wanted,
        Bounds(asked.attempts, 1, asked.repeat),
        time.monotonic,
        lambda _attempt: None,
    )
    message = "it did not fail again: something in it is drawn elsewhere"
    try:
        left = shrunk(found, asked.text, _reading(asked).script, trials, reseeded)
        if left is not None and not _written(asked, left, wanted, draft):
            left, message = None, "when it was run once more, to be kept, it did not fail"
    except (InterruptedTrialError, KeyboardInterrupt):
        return None
    before, runs = len(found.storm.faults), sum(one.runs for one in trials.attempts)
    attempts = len(trials.attempts)
    if left is None:
        return FindResult(
            found.storm.number, 0, faults_before=before, attempts=attempts, runs=runs,
            message=message,
        )  # fmt: skip
    return FindResult(
        storm=found.storm.number,
        find=0,
        is_first=True,
        failures=tuple(one.words for one in sorted(wanted)),
        kinds=tuple(sorted({one.kind for one in left.faults})),
        seed=left.seed,
        faults_before=before,
        faults=len(left.faults),
        attempts=attempts,
        runs=runs,
        message=left.stopped,
    )


def shrunk(
    found: StormResult,
    text: Callable[[Sequence[Fault]], str],
    read: Callable[[str], Script],
    trials: Trials,
    reseeded: Reseeded,
) -> ShrunkStorm | None:
    """None if it did not fail again."""
    kept: Sequence[Fault] = found.storm.faults
    stopped = ""
    shortest: str | None = None

    def fails(some: Sequence[Fault]) -> bool:
        nonlocal kept
        failed = trials.fails(text(some), f"{len(some)} faults")
        if failed:
            kept = some
        return failed

    try:
        decided = decided_ns(found.failed)
        early = [one for one in kept if decided is None or one.begin_ns <= decided]
        if not (len(early) < len(kept) and fails(early)) and not fails(kept):
            return None
        kept = minimise(kept, fails)
        shortest = _ended(read(text(kept)), decided, trials)
    except SpentError as spent:
        stopped = f"not complete: {spent}"
    except RunError as error:
        stopped = f"not complete: {error.message}"
    best = shortest or text(kept)
    if best not in reseeded.failed:
        return None
    return ShrunkStorm(tuple(kept), best, reseeded.failed[best], stopped)


def decided_ns(failed: Sequence[FailedAt]) -> int | None:
    """When the last of them was; None if any is decided by the end, or it is not known."""
    if any(one.by_end or one.at_ns < 0 for one in failed):
        return None
    return max((one.at_ns for one in failed), default=None)


def _ended(whole: Script, decided: int | None, trials: Trials) -> str | None:
    """The text with an end right behind the failure, if it fails so, too."""
    if decided is None or not trials.may_end_earlier:
        return None
    end_ns = (decided // STEP_NS + 1) * STEP_NS
    if whole.quit is None or end_ns >= whole.end_ns:
        return None
    shorter = whole.keeping(whole.events, end_ns)
    return shorter if trials.fails(shorter, "an earlier end") else None


def _failure(one: FailedAt) -> Failure:
    return Failure(one.what, one.name, one.by_end)


def _reading(asked: HuntRequest, seed: int | None = None) -> TextMeaning:
    return TextMeaning(asked.sources, asked.params, seed)


def _runner(asked: HuntRequest, seed: int) -> TrialRunner:
    reading = _reading(asked, seed)
    return TrialRunner(asked.source, reading, asked.options, asked.name, asked.end_ns)


def _written(
    asked: HuntRequest, left: ShrunkStorm, wanted: frozenset[Failure], draft: Path
) -> bool:
    """Carries it out once more, with a page, and keeps it if it fails. RunError."""
    from tstorm.command_support import places_of

    plan = _reading(asked, left.seed).plan(left.text)
    assert plan is not None, "a text that failed compiles"
    options = replace(asked.options, page=True, packets=True)
    try:
        draft.mkdir()
        result = run(plan, options, places_of(asked.source, str(draft / RUN), asked.name))
        if result.outcome == INTERRUPTED:
            raise InterruptedTrialError
        if wanted.isdisjoint(failures.of(result.summary, options, plan)):
            return False
        held = HeldDirectory.hold(draft.resolve())
        held.write(TEXT, left.text.encode())
        about = {
            "failures": [one.words for one in sorted(wanted)],
            "seed": left.seed,
            "faults": [one.kind for one in left.faults],
            "params": dict(asked.params),
        }
        held.write(ABOUT, rundir.encode_json(about))
        held.write(COMMAND, again(asked, left.seed).encode())
        (draft / COMMAND).chmod(0o755)  # it is a script
    except OSError as error:
        raise unwritten(error) from error
    return True


def again(asked: HuntRequest, seed: int) -> str:
    """A script that carries the text out in the folder in which the experiment is, whose files it
    names."""
    words = ["tstorm", "run", "-", "--seed", str(seed)]
    for name, value in asked.params.items():
        words += ["--param", f"{name}={value}"]
    words += optiontext.arguments(asked.options)
    beside = optiontext.line(["cd", str(Path(asked.source).resolve().parent)])
    return (
        "#!/bin/sh\n# The run that failed, once more: tstorm replay run --check\n"
        f'text=$(cd "$(dirname "$0")" && pwd)/{TEXT}\n'
        f'{beside} && {optiontext.line(words)} <"$text"\n'
    )


# When a find was decided: `tstorm why` of its run, kept in its folder.

WHY_WORDS, WHY_PAGE = "why.txt", "page.html"


def is_explained(folder: Path) -> bool:
    return (folder / WHY_WORDS).exists()


def explain(folder: Path, branches: int, many: int | None) -> bool:
    """Writes why.txt and page.html; where it cannot be known, why not. Whether somebody stopped
    it. RunError if nothing can be written."""
    run = str(folder / RUN)
    page = None
    try:
        found = answer.answered(run, branches, many, lambda _one: None)
        if found.stopped:
            return True
        lines = list(found.text())
        page = answer.page(found)
    except RunError as error:
        lines = [f"it is not known when this was decided: {error.message}"]
    try:
        held = HeldDirectory.hold(folder.resolve())
        if page is not None:
            held.write(WHY_PAGE, page.encode())
        held.write(WHY_WORDS, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise unwritten(error) from error
    return False
