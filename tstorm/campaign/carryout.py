"""`tstorm run --seeds A..B`: an experiment at each point of a grid, each a run of its own.

Input: a source, options of a run, the grid, and a directory. What a run comes to is told and kept
as it ends. Started again with the same directory, only what is missing is carried out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import RunError
from tstorm import output
from tstorm.campaign import (
    campaign_directory,
    campaign_record,
    jobs,
    shown,
)
from tstorm.campaign.campaign_directory import Campaign
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.results import ExpectationOutcomes, PointResult, never_happened
from tstorm.exit_codes import (
    FAILED,
    INTERRUPTED,
    OK,
    PROGRAMS_FAILED,
    TOO_LATE,
    CommandError,
)

if TYPE_CHECKING:
    from runtime.options import RunOptions
    from tdl.diagnostics import Diagnostic
    from tstorm.campaign.jobs import JobEnd
    from tstorm.campaign.points import Grid, Point
    from tstorm.loading import PlanToRun

_WORST = (INTERRUPTED, FAILED, TOO_LATE, PROGRAMS_FAILED)  # what the command ends with, if any did


@dataclass(frozen=True, slots=True)
class CampaignRequest:
    """What is carried out at every point."""

    source: str
    options: RunOptions
    begun: CampaignRecord | None = None  # the campaign, as it began
    told: set[Diagnostic] = field(default_factory=set)  # warnings: most are those of every seed

    def plan(self, point: Point) -> PlanToRun:
        """CommandError, and PlanError."""
        from tstorm.loading import plan_to_run

        found = plan_to_run(
            self.source,
            point.seed,
            params=dict(point.params),
            told=self.told,
            reseeds=self.options.reseeds,
        )
        known = self.begun.digest_of(point.settings) if self.begun else ""
        if known and campaign_record.source_digest(found.plan) != known:
            raise CommandError("the experiment was changed while its campaign went on")
        return found


def one(asked: CampaignRequest, place: Path, point: Point) -> PointResult:
    """Runs the experiment at that point, without progress."""
    from runtime.launch.launch import run
    from tstorm.command_support import places_of

    try:
        found = asked.plan(point)
        name = f"{found.name}-{point.name}"
        result = run(found.plan, asked.options, places_of(asked.source, str(place), name))
    except RunError as error:
        return PointResult(point, error.exit_code, "failed", message=error.message)
    except CommandError as error:
        return PointResult(
            point, error.code, "failed", message=error.in_one_line or "it does not compile"
        )
    failed = sorted({str(failure["target"]) for failure in result.summary["failures"]})
    return PointResult(
        point,
        result.exit_code,
        result.outcome,
        str(result.summary["verdict"]["state"]),
        tuple(failed),
        ExpectationOutcomes.of(result.summary),
        result.message,
        ran=True,
        figures={
            f"{one['name']} of {one['instance']}": one["value"]
            for one in result.summary.get("figures", ())
            if one["value"] is not None
        },
    )


def search(
    source: str, options: RunOptions, out: str | None, grid: Grid, many: int | None, form: str
) -> None:
    """All of them, `many` at a time. Ends with CommandError if one was not as it should be."""
    asked = CampaignRequest(source, options)
    wanted = compiled(asked, grid)
    asked = replace(asked, begun=wanted)
    place = Path(out) if out else campaign_directory.new_place(wanted.experiment)
    with campaign_directory.opened(place, wanted) as campaign:
        found = _carry_out(campaign, asked, grid, many)
    _show(place, wanted, found, form)
    codes = {row.exit_code for row in found}
    worst = next((code for code in _WORST if code in codes), max(codes, default=OK))
    if len(found) < grid.count:
        worst = INTERRUPTED
    if worst == OK and never_happened(found):
        worst = PROGRAMS_FAILED
    if worst != OK:
        raise CommandError(code=worst)


def compiled(asked: CampaignRequest, grid: Grid) -> CampaignRecord:
    """What does not compile is told once, and first: each combination of parameters is tried."""
    from tstorm.live.publishing import left_out

    name = ""
    digests: dict[str, str] = {}
    for point in grid.firsts():
        found = asked.plan(point)
        if not digests and (note := left_out(found.plan.topology, "with --seeds")):
            output.note(note)
        name = found.name
        digests[point.settings] = campaign_record.source_digest(found.plan)
    usual = next(iter(digests.values()))
    others = {settings: digest for settings, digest in digests.items() if digest != usual}
    return CampaignRecord(name, asked.source, usual, grid, asked.options, others)


def _carry_out(
    campaign: Campaign, asked: CampaignRequest, grid: Grid, many: int | None
) -> list[PointResult]:
    """Results of all points that have one, in the order of the grid."""
    from runtime.launch import cleanup
    from runtime.options import VIRTUAL

    missing = [point for point in grid.points() if point not in campaign.done]
    if campaign.done and missing:
        with output.kept_going(sys.stderr):
            output.note(f"{grid.count - len(missing)} of {grid.count} points are done already")
    if missing:
        cleanup.sweep()  # nothing of a run that was killed writes any more
    for point in missing:
        aside = campaign.clear(point)
        if aside:
            with output.kept_going(sys.stderr):
                anew = f"{point.words} is carried out anew: {campaign.damaged[point]}"
                output.note(f"{anew}; what was there is {aside}")
    work = partial(_at, asked, campaign.place)
    shares = jobs.shares(many, max(len(missing), 1), virtual=asked.options.time == VIRTUAL)
    found = dict(campaign.done)
    for row in _told(jobs.carry_out(work, missing, shares)):
        campaign.add(row)
        found[row.point] = row
    return [found[point] for point in grid.points() if point in found]


def _at(asked: CampaignRequest, place: Callable[[Point], Path], point: Point) -> PointResult:
    return one(asked, place(point), point)


def _told(ended: Iterable[JobEnd[Point, PointResult]]) -> Iterator[PointResult]:
    """What has come of each, as it ends."""
    for job in ended:
        found = job.said or PointResult(job.point, FAILED, "failed", message=job.why)
        with output.kept_going(sys.stderr):
            output.note(shown.line(found))
        yield found


def _show(place: Path, wanted: CampaignRecord, found: Sequence[PointResult], form: str) -> None:
    with output.kept_going(sys.stderr):
        for text in shown.closing(place, wanted, found):
            output.note(text)
    with output.product_kept_going():
        if form == "json":
            output.emit_json([_row(place, one) for one in found])
        else:
            output.path(place)


def _row(place: Path, found: PointResult) -> Mapping[str, object]:
    where = str(place / found.point.name) if found.ran else ""
    return {**found.to_record(), "directory": where}
