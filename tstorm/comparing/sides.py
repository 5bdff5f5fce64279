"""The sides of a comparison: runs, or campaigns. Input: paths. Output: figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runtime.errors import RunError
from runtime.foreign import REMEDY
from runtime.judge.verdict import VALID
from runtime.rundir import rundir
from tstorm.campaign import directory
from tstorm.campaign.places import is_campaign
from tstorm.comparing import figures
from tstorm.comparing.figures import Figures

_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Side:
    """`groups`: the figures of each run, by the parameters of its point (nothing: there are none).
    `without`: how many points of a campaign have no result."""

    name: str
    is_campaign: bool
    groups: dict[str, list[Figures]] = field(default_factory=dict)
    without: int = 0

    @property
    def runs(self) -> list[Figures]:
        return [one for group in self.groups.values() for one in group]

    def doubts(self) -> Iterator[str]:
        """What to know before its figures are believed."""
        others = [one for one in self.runs if one.verdict != VALID]
        if others and self.is_campaign:
            named = ", ".join(
                f"seed {one.seed} {one.verdict.upper()}" for one in others[:_MOST_NAMED]
            )
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            runs = f"{len(others)} of {len(self.runs)} runs are not VALID"
            yield f"{self.name}: {runs}: {named}{more}"
        elif others:
            yield f"{self.name} is {others[0].verdict.upper()}, not VALID"
        if self.without:
            yield f"{self.name}: {self.without} points have no result; the others are compared"


def load(paths: Sequence[str]) -> list[Side]:
    """RunError for what is neither a run nor a campaign, and for some of both."""
    kinds = [is_campaign(path) for path in paths]
    if any(kinds) and not all(kinds):
        mixed = f"{paths[kinds.index(True)]} is a campaign and {paths[kinds.index(False)]} is none"
        raise RunError(mixed, "compare runs with runs, or campaigns with campaigns")
    return [
        _campaign(path) if kind else _run(path) for path, kind in zip(paths, kinds, strict=True)
    ]


def _run(path: str) -> Side:
    return Side(path, False, {"": [figures.of(rundir.recorded(path))]})


def _campaign(path: str) -> Side:
    held, record, results = directory.load(path)
    side = Side(path, True)
    without = 0
    for point in record.grid.points():
        if point not in results or not results[point].is_done:
            without += 1
            continue
        settings = ", ".join(f"{name}={value}" for name, value in point.params)
        place = Path(held.path) / point.name
        run = figures.of(rundir.recorded(place))
        if run.seed != point.seed:
            raise RunError(f"{place} has seed {run.seed}: it is the run of another point", REMEDY)
        side.groups.setdefault(settings, []).append(run)
    if not side.groups:
        raise RunError(
            f"{path} has no run that has ended", "carry it out first: tstorm run --seeds"
        )
    return Side(path, True, side.groups, without)
