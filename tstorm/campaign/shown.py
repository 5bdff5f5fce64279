"""A campaign in words: a line for each point, what failed, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tstorm import output
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.points import Point
from tstorm.campaign.results import PointResult, never_happened
from tstorm.text import optiontext

MOST_COMMANDS = 20  # that the end of a campaign shows; `tstorm inspect` shows all
MOST_NEVER = 50  # names that are shown
HEAD = ("POINT", "OUTCOME", "VERDICT", "EXPECTATIONS", "WHAT FAILED")


def line(found: PointResult) -> str:
    """What came of a point, when it has ended."""
    failed = [] if found.is_interrupted else [*found.failed, *found.expected.failed]
    what = f"; failed: {', '.join(failed)}" if failed else ""
    why = f"; {found.message}" if found.message else ""
    return f"{found.point.words}: {found.outcome}{what}{why}"


def closing(place: Path, record: CampaignRecord, found: Sequence[PointResult]) -> Iterator[str]:
    """What never happened, what there is to do about failures, and about what is missing, then the
    line that sums up."""
    yield from never(found, record.grid.count)
    bad = [row for row in found if row.is_bad]
    for row in bad[:MOST_COMMANDS]:
        yield f"{row.point.words} again: {command(place, record, row)}"
    if len(bad) > MOST_COMMANDS:
        more = optiontext.line(["tstorm", "inspect", str(place)])
        yield f"… and {len(bad) - MOST_COMMANDS} more: {more}"
    if sum(not row.is_interrupted for row in found) < record.grid.count:
        yield f"the rest: {going_on(place, record)}"
    yield summary(found, record.grid.count)


def never(found: Sequence[PointResult], count: int) -> Iterator[str]:
    """What has to happen in some run, and did in none."""
    ended = sum(not row.is_interrupted for row in found)
    runs = "the one run" if ended == 1 else f"any of {ended} runs"
    some = runs if ended == count else f"{runs} of {count}"
    names = never_happened(found)
    yield from (f"never happened in {some}: {name}" for name in names[:MOST_NEVER])
    if len(names) > MOST_NEVER:
        yield f"never happened in {some}: … and {len(names) - MOST_NEVER} more"


def summary(found: Sequence[PointResult], count: int) -> str:
    """How many were not as they should be, and which."""
    ended = [row for row in found if not row.is_interrupted]
    bad = [row.point for row in ended if row.is_bad]
    what = "points" if any(row.point.params for row in found) else "seeds"
    ran = f"{len(ended)} {what} ran"
    parts = [ran if len(ended) == count else f"{len(ended)} of {count} {what} ran"]
    parts.append(f"{len(bad)} with failures: {_listed(bad)}" if bad else "none with failures")
    missed = len(never_happened(found))
    if missed:
        parts.append(f"{'something' if missed == 1 else f'{missed} things'} never happened")
    return "; ".join(parts)


def _listed(points: Sequence[Point]) -> str:
    """`1, 4..6, 9`; where there are parameters, those of each group first."""
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for point in points:
        groups.setdefault(point.params, []).append(point.seed)
    shown = [
        ranges(seeds) if not params else f"{_settings(params)} seeds {ranges(seeds)}"
        for params, seeds in groups.items()
    ]
    return " and ".join(shown)


def _settings(params: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params)


def ranges(numbers: Iterable[int]) -> str:
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


def command(place: Path, record: CampaignRecord, found: PointResult) -> str:
    """What a shell is given to carry the point out again: its run replays exactly; one that never
    was is begun anew."""
    if found.ran:
        return optiontext.line(["tstorm", "replay", str(place / found.point.name)])
    words = ["tstorm", "run", record.source, "--seed", str(found.point.seed)]
    for name, value in found.point.params:
        words += ["--param", f"{name}={value}"]
    return optiontext.line([*words, *optiontext.arguments(record.options)])


def going_on(place: Path, record: CampaignRecord) -> str:
    """What a shell is given to carry out what is missing."""
    seeds = record.grid.seeds
    words = ["tstorm", "run", record.source, "--seeds", f"{seeds[0]}..{seeds[-1]}"]
    for name, values in record.grid.params:
        words += ["--param", f"{name}={','.join(values)}"]
    return optiontext.line([*words, *optiontext.arguments(record.options), "--out", str(place)])


def table(place: Path, record: CampaignRecord, results: Mapping[Point, PointResult]) -> None:
    """All points, then what failed, on stdout."""
    found = [results[point] for point in record.grid.points() if point in results]
    for text in never(found, record.grid.count):
        output.line(text)
    output.line(f"campaign: {record.experiment}; {record.grid.words}")
    output.line(f"directory: {place}")
    output.line(summary(found, record.grid.count))
    output.line("")
    own = list(dict.fromkeys(name for row in found for name in row.figures))
    output.emit_table((*HEAD[:-1], *own, HEAD[-1]), (_row(row, own) for row in found))
    bad = [row for row in found if row.is_bad]
    if bad:
        output.line("")
        output.emit_table(
            ("FAILED", "AGAIN"), ((row.point.words, command(place, record, row)) for row in bad)
        )


def _row(found: PointResult, own: Sequence[str]) -> Sequence[str]:
    """`own`: names of the experiment's figures."""
    expected = found.expected
    count = expected.passed + len(expected.failed) + expected.not_measured
    parts = f"{expected.passed} of {count} passed" if count else "-"
    what = ", ".join([*found.failed, *expected.failed]) or found.message or "-"
    figures = (found.figures.get(name, "-") for name in own)
    return (
        *(found.point.words, found.outcome, found.verdict.upper() or "-", parts),
        *(*figures, what),
    )


def to_json(
    place: Path, record: CampaignRecord, results: Mapping[Point, PointResult]
) -> dict[str, Any]:
    found = [results[point] for point in record.grid.points() if point in results]
    rows = [{**row.to_record(), "again": command(place, record, row)} for row in found]
    whole = {"campaign": record.to_record(), "directory": str(place), "live": False}
    missing = record.grid.count - len(rows)
    return {**whole, "points": rows, "missing": missing, "never": never_happened(found)}
