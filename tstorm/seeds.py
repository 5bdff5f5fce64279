"""`tstorm run --seeds A..B`: an experiment with one seed after the other, each a run of its own.

What a run comes to is told as it ends; the table at the end has them in the order of the seeds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exits import FAILED, INTERRUPTED, OK, PROGRAMS_FAILED, TOO_LATE, CommandError
from tstorm.parameters import MOST_SEED

if TYPE_CHECKING:
    from runtime.options import RunOptions
    from tstorm.seedjobs import Ended

MOST = 10_000
_NUMBER = re.compile(r"[0-9]{1,19}")
_WORST = (INTERRUPTED, FAILED, TOO_LATE, PROGRAMS_FAILED)  # what the command ends with, if any did


class SeedsType(click.ParamType[range]):
    """`A..B`, both included."""

    name = "range of seeds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        if isinstance(value, range):
            return value
        first, dots, last = value.partition("..")
        if not (dots and _NUMBER.fullmatch(first) and _NUMBER.fullmatch(last)):
            self.fail(f"{value!r:.60} is no range of seeds such as 1..100", param, ctx)
        least, most = int(first), int(last)
        if most > MOST_SEED:
            self.fail(f"{most} is too large: seeds go up to {MOST_SEED}", param, ctx)
        count = most - least + 1
        if not 0 < count <= MOST:
            self.fail(f"{value} has {max(count, 0)} seeds; 1 to {MOST} are possible", param, ctx)
        return range(least, most + 1)


@dataclass(frozen=True, slots=True)
class Found:
    """What the run of a seed came to."""

    seed: int
    code: int  # what `tstorm run` would have ended with
    outcome: str
    verdict: str
    failed: tuple[str, ...]  # instances whose program failed
    directory: str
    message: str = ""


def one(
    source: str, options: RunOptions, out: str | None, params: Mapping[str, str], seed: int
) -> Found:
    """Runs the experiment with that seed, without progress."""
    from runtime.errors import RunError
    from runtime.judge import outcomes
    from runtime.launch.launch import run
    from tstorm.loading import plan_to_run
    from tstorm.running import places_of

    try:
        found = plan_to_run(source, seed, params=params)
        target = str(Path(out) / f"seed-{seed}") if out else None
        result = run(found.plan, options, places_of(source, target, f"{found.name}-seed-{seed}"))
    except RunError as error:
        return Found(seed, error.exit_code, "failed", "", (), "", error.message)
    except CommandError as error:
        return Found(seed, error.code, "failed", "", (), "", error.message or "it does not compile")
    failed = sorted({str(failure["target"]) for failure in result.summary["failures"]})
    state = str(result.summary["verdict"]["state"])
    directory = str(result.directory)
    message = result.message
    if outcomes.any_failed(result.summary):
        message = "; ".join(filter(None, (message, outcomes.counted(result.summary))))
    return Found(seed, result.exit_code, result.outcome, state, tuple(failed), directory, message)


def search(
    source: str,
    options: RunOptions,
    out: str | None,
    seeds: range,
    jobs: int | None,
    form: str,
    params: Mapping[str, str],
) -> None:
    """All of them, `jobs` at a time. Ends with CommandError if one was not as it should be."""
    from runtime.options import VIRTUAL
    from tstorm import seedjobs
    from tstorm.loading import plan_to_run

    plan_to_run(source, seeds[0], params=params)  # what does not compile is told once, and first
    if out:
        _make(Path(out))
    work = partial(one, source, options, out, params)
    shares = seedjobs.shares(jobs, len(seeds), virtual=options.time == VIRTUAL)
    found = sorted(_told(seedjobs.carry_out(work, seeds, shares)), key=lambda row: row.seed)
    _show(found, seeds, form)
    codes = {row.code for row in found}
    worst = next((code for code in _WORST if code in codes), max(codes, default=OK))
    if len(found) < len(seeds):
        worst = INTERRUPTED
    if worst != OK:
        raise CommandError(code=worst)


def _told(ended: Iterable[Ended]) -> Iterator[Found]:
    """What has come of each, as it ends."""
    for job in ended:
        found = job.said or Found(job.seed, FAILED, "failed", "", (), "", job.why)
        with output.kept_going(sys.stderr):
            output.note(_line(found))
        yield found


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        used = any(directory.iterdir())
    except OSError as error:
        raise CommandError(f"error: {directory}: {error.strerror}") from error
    if used:
        raise CommandError(f"error: {directory} is not empty\nhint: name a new directory")


def _line(found: Found) -> str:
    programs = f"; failed: {', '.join(found.failed)}" if found.failed else ""
    why = f"; {found.message}" if found.message else ""
    return f"seed {found.seed}: {found.outcome}{programs}{why}"


def _show(found: Sequence[Found], seeds: range, form: str) -> None:
    with output.kept_going(sys.stderr):
        output.note(_summary(found, seeds))
    with output.product_kept_going():
        if form == "json":
            output.emit_json([_record(row) for row in found])
            return
        for row in found:
            if row.directory:
                output.path(Path(row.directory))


def _record(found: Found) -> Mapping[str, Any]:
    return {**asdict(found), "failed": list(found.failed)}


def _summary(found: Sequence[Found], seeds: range) -> str:
    """First how many were not as they should be, and which."""
    bad = [row.seed for row in found if row.code != OK or row.failed]
    missing = len(seeds) - len(found)
    parts = [f"{len(found)} of {len(seeds)} seeds ran" if missing else f"{len(found)} seeds ran"]
    if bad:
        parts.append(f"{len(bad)} with failures: {_ranges(bad)}")
    else:
        parts.append("none with failures")
    return "; ".join(parts)


def _ranges(numbers: Iterable[int]) -> str:
    """`1, 4..6, 9`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] + 1 == number:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(
        f"{a}..{b}" if b > a + 1 else ", ".join(map(str, sorted({a, b}))) for a, b in spans
    )
