"""What shrinking says: each attempt, what came of it, and the command that shows the failure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tstorm import units
from tstorm.text import optiontext

if TYPE_CHECKING:
    from runtime.options import RunOptions
    from tstorm.shrink.failures import Failure
    from tstorm.shrink.search import Shrunk
    from tstorm.shrink.text_meaning import TextMeaning
    from tstorm.shrink.trials import Attempt, Trials

_SIDES = ("before", "after")


def attempt(one: Attempt) -> str:
    if not one.runs:
        return f"attempt {one.number}: {one.what}: does not compile"
    outcome = "fails" if one.failed else "passes"
    runs = f" ({one.fails} of {one.runs} runs)" if one.runs > 1 else ""
    return f"attempt {one.number}: {one.what}: {outcome}{runs}"


def statements(found: Shrunk, reading: TextMeaning) -> tuple[int, int]:
    """Of the timeline, before and after."""
    return len(found.script.events), len(reading.script(found.text).events)


def events(found: Shrunk, reading: TextMeaning) -> tuple[int, int]:
    """That these make."""
    return reading.events(found.script.text) or 0, reading.events(found.text) or 0


def closing(found: Shrunk, trials: Trials, reading: TextMeaning) -> Iterator[str]:
    script = found.script
    tried = f"{len(trials.attempts)} attempts, {sum(one.runs for one in trials.attempts)} runs"
    if not found.confirmed and found.stopped:
        yield f"not complete: {found.stopped}, in {tried}"
        return
    if not found.confirmed:
        yield f"the failure did not come again in {tried}"
        return
    stated, happening = statements(found, reading), events(found, reading)
    yield (
        f"{stated[0]} -> {stated[1]} statements of the timeline,"
        f" {happening[0]} -> {happening[1]} events, in {tried}"
    )
    if found.end_ns is not None:
        yield f"the end: {units.duration(script.end_ns)} -> {units.duration(found.end_ns)}"
    if found.stopped:
        yield f"not complete: {found.stopped}; what is left may still be too much"


def command(file: str, seed: int, params: Mapping[str, str], options: RunOptions) -> str:
    words = ["tstorm", "run", file, "--seed", str(seed)]
    for name, value in params.items():
        words += ["--param", f"{name}={value}"]
    return optiontext.line([*words, *optiontext.arguments(options)])


def to_json(
    found: Shrunk, trials: Trials, reading: TextMeaning, wanted: Collection[Failure], again: str
) -> dict[str, Any]:
    script = found.script
    return {
        "failures": [
            {"what": one.what, "name": one.name, "by_end": one.by_end} for one in sorted(wanted)
        ],
        "confirmed": found.confirmed,
        "stopped": found.stopped,
        "text": found.text,
        "statements": dict(zip(_SIDES, statements(found, reading), strict=True)),
        "events": dict(zip(_SIDES, events(found, reading), strict=True)),
        "end_ns": {"before": script.end_ns, "after": found.end_ns or script.end_ns},
        "attempts": [
            {"what": one.what, "runs": one.runs, "fails": one.fails, "failed": one.failed}
            for one in trials.attempts
        ],
        "remembered": trials.remembered,
        "again": again,
    }
