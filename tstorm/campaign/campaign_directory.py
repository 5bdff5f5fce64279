"""A campaign's directory: campaign.json, results.jsonl, and a run directory for each point.

One command works in it at a time (tstorm.campaign.kept_directory). Runs that were killed leave
directories without a result; they are removed, and their points are carried out anew. The record
and the results are on the disk before the command goes on; what runs write is not. So after a power
cut a run may have lost its end although its result is there: its point is not done then.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import RunError
from runtime.json_schema import parse
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import MANIFEST, MAX_BYTES, SUMMARY
from tstorm.campaign import campaign_record, points, results
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.kept_directory import LineLog, worked_in
from tstorm.campaign.points import Point
from tstorm.campaign.results import PointResult

_DRAFT = f".{points.CAMPAIGN_FILE}."


def load(path: str | Path) -> tuple[HeldDirectory, CampaignRecord, dict[Point, PointResult]]:
    """A campaign to look at, whoever works in it. RunError."""
    try:
        held = HeldDirectory.hold(Path(os.path.realpath(path)))
    except OSError as error:
        raise RunError(
            f"cannot read {path}: {error.strerror}", "give a campaign's directory"
        ) from (error)
    return held, _record(held), results.read(held)


def _record(held: HeldDirectory) -> CampaignRecord:
    place = str(held / points.CAMPAIGN_FILE)
    return campaign_record.read(
        parse(held.read(points.CAMPAIGN_FILE, campaign_record.MAX_BYTES), place), place
    )


class Campaign:
    """A directory that is being worked in. `done`: results of points that need no run any more;
    `damaged`: points that have a result, and why their run directory is none."""

    def __init__(
        self, held: HeldDirectory, done: Mapping[Point, PointResult], damaged: Mapping[Point, str]
    ) -> None:
        self.path = held.path
        self.done, self.damaged = done, damaged
        self._held = held
        self._results = LineLog(held, results.FILE)

    def place(self, point: Point) -> Path:
        return self.path / point.name

    def clear(self, point: Point) -> str:
        """Makes room for its run: what a killed one has left goes; one that is damaged is put
        aside. Returns the name that this has now, '' if there is none. RunError."""
        if not self._held.has(point.name):
            return ""
        try:
            if point in self.damaged:
                return self._put_aside(point.name)
            self._held.remove(point.name)  # a link, or a file
            if self._held.has(point.name):
                shutil.rmtree(point.name, dir_fd=self._held.descriptor)
        except OSError as error:
            place = self.place(point)
            raise RunError(
                f"{place} is half done and cannot be removed: {error.strerror}", "remove it"
            ) from error
        return ""

    def _put_aside(self, name: str) -> str:
        number = 1
        while self._held.has(aside := f"{name}.damaged-{number}"):
            number += 1
        self._held.rename(name, aside)
        return aside

    def add(self, found: PointResult) -> None:
        """RunError: a campaign whose results cannot be kept ends."""
        self._results.add(results.line(found))

    def close(self) -> None:
        self._results.close()


@contextmanager
def opened(path: Path, wanted: CampaignRecord) -> Iterator[Campaign]:
    """Begins the campaign there, or goes on with it. RunError, also if it is another one."""
    begin = lambda held: Campaign(held, *_begin(held, path, wanted))  # noqa: E731
    with worked_in(path, begin) as campaign:
        yield campaign


def new_place(name: str) -> Path:
    """Where a campaign goes that nobody has named a directory for."""
    safe, stamp = rundir.experiment_name(name), rundir.utc_stamp()
    for attempt in range(1, 1000):
        found = rundir.default_path(safe, stamp, attempt)
        if not found.exists():
            return found
    raise RunError(f"there are too many runs of {safe} with the time {stamp}", "give --out DIR")


def _begin(
    held: HeldDirectory, path: Path, wanted: CampaignRecord
) -> tuple[dict[Point, PointResult], dict[Point, str]]:
    """What is done already, and what is damaged. The record is written first, and whole. RunError,
    OSError."""
    if not held.has(points.CAMPAIGN_FILE):
        if any(not name.startswith(_DRAFT) for name in held.names()):
            raise RunError(f"{path} is not empty, and no campaign", "give --out a new directory")
        held.remove_drafts()
        held.write(points.CAMPAIGN_FILE, rundir.encode_json(wanted.to_record()), lasting=True)
        held.write(results.FILE, b"", lasting=True)
        return {}, {}
    before = _record(held)
    differing = list(campaign_record.differences(before, wanted))
    if differing:
        raise RunError(
            f"{path} has another campaign; what differs: {'; '.join(differing)}",
            "give --out a new directory, or say the same again (more seeds may be added)",
        )
    found = results.read(held)
    whole = results.lines(list(found.values()))  # without a line that was cut
    held.write(results.FILE, whole, lasting=True)
    if before.grid != wanted.grid:
        held.write(points.CAMPAIGN_FILE, rundir.encode_json(wanted.to_record()), lasting=True)
    ended = {point: one for point, one in found.items() if one.is_done and held.has(point.name)}
    faults = {point: _fault(held.path / point.name) for point in ended}
    damaged = {point: fault for point, fault in faults.items() if fault}
    return {point: one for point, one in ended.items() if not faults[point]}, damaged


def _fault(place: Path) -> str:
    """Why this is not the directory of a run that has ended; '' if it is. What else is wrong with
    it is for whoever reads it: it may be of another release."""
    try:
        run = rundir.recorded(place)
        for name in (MANIFEST, SUMMARY):
            told = parse(run.read(name, MAX_BYTES[name]), str(run / name))
            if type(told) is not dict or "outcome" not in told:
                return f"{run / name} does not say how the run ended"
    except RunError as error:
        return error.message
    return ""
