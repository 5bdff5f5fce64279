"""The sides of a comparison: runs, campaigns, or the values of a parameter in one campaign.

Input: paths. Output: figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.judge.verdict import VALID
from runtime.options import COMPLETED, INTERRUPTED
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from runtime.say import some
from tstorm import units
from tstorm.campaign import campaign_directory
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.points import Point, is_campaign
from tstorm.campaign.results import PointResult
from tstorm.comparing import run_metrics
from tstorm.comparing.run_metrics import RunMetrics

_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """`groups`: the figures of each run, by the parameters of its point (nothing: there are none).
    `without`: points of a campaign that have no run to its end, and what became of them."""

    name: str
    is_campaign: bool
    groups: dict[str, list[RunMetrics]] = field(default_factory=dict)
    without: Sequence[str] = ()

    @property
    def runs(self) -> list[RunMetrics]:
        return [one for group in self.groups.values() for one in group]

    def doubts(self) -> Iterator[str]:
        """What to know before its figures are believed."""
        others = [one for one in self.runs if one.verdict != VALID]
        if others and self.is_campaign:
            words = [f"seed {one.seed} {one.verdict.upper()}" for one in others]
            named = some(words, _MOST_NAMED)
            yield f"{self.name}: {len(others)} of {len(self.runs)} runs are not VALID: {named}"
        elif others:
            yield f"{self.name} is {others[0].verdict.upper()}, not VALID"
        if self.without:
            points = f"{len(self.without)} of {len(self.runs) + len(self.without)} points"
            named = some(self.without, _MOST_NAMED, "; ")
            yield f"{self.name}: {points} have no run to its end and are left out: {named}"
        if not self.is_campaign:
            yield from (_part(self.name, one) for one in self.runs if not one.is_whole)


def other_settings(first: ComparisonSide, second: ComparisonSide) -> Iterator[str]:
    """What instances of one side took from their machine and those of the other took otherwise:
    TCP's congestion control, buffers and the like. Of a setting that runs of a side differ in, all
    values."""
    ours, theirs = _settings(first), _settings(second)
    differ = [
        f"{name} {_values(theirs[name])} in place of {_values(ours[name])}"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    ]
    if differ:
        yield (
            f"programs of {second.name} had other network settings of their machine than those of"
            f" {first.name}, where their service says none (sysctl=):"
            f" {some(differ, _MOST_NAMED, '; ')}"
        )


def _settings(side: ComparisonSide) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in side.runs:
        for name, value in run.settings.items():
            found.setdefault(name, set()).add(value)
    return found


def _values(found: set[str]) -> str:
    return " or ".join(sorted(found))


def _part(name: str, run: RunMetrics) -> str:
    """What there is of a run that did not come to its end."""
    how = "was interrupted" if run.outcome == INTERRUPTED else run.outcome
    at = "" if run.ended_ns is None else f" at {units.duration(round(run.ended_ns, -6))}"
    return f"{name} {how}{at}: its figures are of a part of the timeline"


def load(paths: Sequence[str]) -> list[ComparisonSide]:
    """RunError for what is neither a run nor a campaign, and for some of both."""
    kinds = [is_campaign(path) for path in paths]
    if any(kinds) and not all(kinds):
        mixed = f"{paths[kinds.index(True)]} is a campaign and {paths[kinds.index(False)]} is none"
        raise RunError(mixed, "compare runs with runs, or campaigns with campaigns")
    return [
        _campaign(path) if kind else _run(path) for path, kind in zip(paths, kinds, strict=True)
    ]


def load_values(path: str, name: str) -> list[ComparisonSide]:
    """The values of a parameter of one campaign, in the order in which they were given.
    RunError."""
    if not is_campaign(path):
        raise RunError(f"{path} is no campaign", "make one: tstorm run --seeds 1..20 --param …")
    held, record, results = campaign_directory.load(path)
    values = dict(record.grid.params).get(name)
    if values is None or len(values) < 2:
        known = ", ".join(one for one, found in record.grid.params if len(found) > 1)
        hint = f"parameters of several values: {known}" if known else "give one several: --param"
        raise RunError(f"{path} has no parameter {name!r} of several values", hint)
    return [_side(f"{name}={value}", held, record, results, {name: value}) for value in values]


def _run(path: str) -> ComparisonSide:
    return ComparisonSide(path, False, {"": [run_metrics.of(rundir.recorded(path))]})


def _campaign(path: str) -> ComparisonSide:
    return _side(path, *campaign_directory.load(path), {})


def _side(
    name: str,
    held: HeldDirectory,
    record: CampaignRecord,
    results: Mapping[Point, PointResult],
    only: Mapping[str, str],
) -> ComparisonSide:
    """Of the points with these values, which groups are not named after."""
    groups: dict[str, list[RunMetrics]] = {}
    without = []
    for point in record.grid.points():
        if any(dict(point.params)[one] != value for one, value in only.items()):
            continue
        others = replace(point, params=tuple(one for one in point.params if one[0] not in only))
        result = results.get(point)
        if result is None or not result.is_done or result.outcome != COMPLETED:
            without.append(f"{others.words} {result.outcome if result else 'is missing'}")
            continue
        place = Path(held.path) / point.name
        run = run_metrics.of(rundir.recorded(place))
        if run.seed != point.seed:
            raise RunError(f"{place} has seed {run.seed}: it is the run of another point", REMEDY)
        if run.is_whole:
            groups.setdefault(others.settings, []).append(run)
        else:
            without.append(f"{others.words} {run.outcome}")
    if not groups:
        raise RunError(
            f"{name} has no run that came to its end: {some(without, _MOST_NAMED, '; ')}",
            "carry it out first: tstorm run --seeds",
        )
    return ComparisonSide(name, True, groups, without)
