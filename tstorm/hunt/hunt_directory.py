"""A hunt's directory: hunt.json, results.jsonl, and a folder in `finds` for each find.

One command works in it at a time. Results are on the disk before the hunt goes on; storms run in
places of their own, which go, so that whatever ends the command leaves nothing half done but drafts
of finds, which are removed and made anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.errors import RunError, unwritten
from runtime.json_schema import decoded, encoded, parse
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from tstorm.campaign.kept_directory import LineLog, worked_in
from tstorm.hunt import hunt_results
from tstorm.hunt.hunt_results import FindResult, HuntResult, StormResult

FORMAT, VERSION = "thunderstorm-hunt", 2
RECORD, FINDS, SUMMARY, PAGE = "hunt.json", "finds", "summary.json", "page.html"
MAX_BYTES = 1 << 24
DRAFT = ".draft-"  # begin of the name of a find's folder that is being made
_REMEDY = "give the directory of a hunt"
_OLDER = "use the release that made the hunt"


@dataclass(frozen=True, slots=True)
class HuntRecord:
    """Which hunt it is. Whoever goes on with it must mean the same one."""

    format: str
    version: int
    experiment: str
    source: str
    source_digest: str
    seed: int
    repeat: int
    attempts: int
    params: Mapping[str, str]
    options: Mapping[str, Any]

    def differences(self, now: HuntRecord) -> Iterator[str]:
        if self.source_digest != now.source_digest:
            yield f"the experiment: {self.source} was another text, or files that it names were"
        for name in ("seed", "repeat", "attempts", "params"):
            before, after = getattr(self, name), getattr(now, name)
            if before != after:
                yield f"{name}: {before} before, {after} now"
        for name in sorted(self.options.keys() | now.options.keys()):
            before, after = self.options.get(name), now.options.get(name)
            if before != after:
                yield f"the option {name}: {before} before, {after} now"


@dataclass(slots=True)
class HuntDirectory:
    """A directory that is worked in, and all that is known: `storms` by their numbers, `finds` by
    the numbers of the storms that they came of."""

    held: HeldDirectory
    log: LineLog
    storms: dict[int, StormResult] = field(default_factory=dict)
    finds: dict[int, FindResult] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.held.path

    @property
    def place_of_finds(self) -> Path:
        return self.path / FINDS

    def folder(self, find: int) -> Path:
        return self.place_of_finds / f"{find:04}"

    def add(self, found: HuntResult) -> None:
        """RunError if it cannot be kept."""
        self.log.add(hunt_results.line(found))
        _put(found, self.storms, self.finds)

    def close(self) -> None:
        self.log.close()

    def write_summary(self, summary: Mapping[str, Any], page: str) -> None:
        """RunError."""
        try:
            self.held.write(SUMMARY, rundir.encode_json(summary))
            self.held.write(PAGE, page.encode())
        except OSError as error:
            raise unwritten(error) from error


def _put(found: HuntResult, storms: dict[int, StormResult], finds: dict[int, FindResult]) -> None:
    if isinstance(found, StormResult):
        storms[found.storm.number] = found
    else:
        finds[found.storm] = found


def load(path: str | Path) -> tuple[HuntRecord, dict[int, StormResult], dict[int, FindResult]]:
    """A hunt to look at, whoever works in it. RunError."""
    try:
        held = HeldDirectory.hold(Path(os.path.realpath(path)))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}", _REMEDY) from error
    return _record(held), *_results(held)


def _record(held: HeldDirectory) -> HuntRecord:
    place = str(held / RECORD)
    value = parse(held.read(RECORD, MAX_BYTES), place)
    if type(value) is not dict or value.get("format") != FORMAT:
        raise RunError(f"{place} is not the record of a hunt", _REMEDY)
    if value.get("version") != VERSION:
        version = f"{value.get('version')!r:.40}"
        raise RunError(f"{place} has version {version}; this release reads {VERSION}", _OLDER)
    return decoded(HuntRecord, value, place, _REMEDY)


def _results(held: HeldDirectory) -> tuple[dict[int, StormResult], dict[int, FindResult]]:
    storms: dict[int, StormResult] = {}
    finds: dict[int, FindResult] = {}
    for one in hunt_results.read(held) if held.has(hunt_results.FILE) else ():
        _put(one, storms, finds)
    return storms, finds


@contextmanager
def opened(path: Path, wanted: HuntRecord) -> Iterator[HuntDirectory]:
    """Begins the hunt there, or goes on with it. RunError, also if it is another one."""
    with worked_in(path, lambda held: _begin(held, path, wanted)) as hunt:
        yield hunt


def _begin(held: HeldDirectory, path: Path, wanted: HuntRecord) -> HuntDirectory:
    """With what is known already. RunError, OSError."""
    if not held.has(RECORD):
        held.remove_drafts()
        if held.names():
            raise RunError(f"{path} is not empty, and no hunt", "give --out a new directory")
        held.write(RECORD, rundir.encode_json(encoded(wanted)), lasting=True)
    differing = list(_record(held).differences(wanted))
    if differing:
        raise RunError(
            f"{path} has another hunt; what differs: {'; '.join(differing)}",
            "give --out a new directory, or say the same again",
        )
    storms, finds = _results(held)
    known: list[HuntResult] = [*storms.values(), *finds.values()]
    whole = b"".join(map(hunt_results.line, known))
    held.write(hunt_results.FILE, whole, lasting=True)  # without a line that was cut
    if not held.has(FINDS):
        held.make(FINDS)
    _clear(path / FINDS, {one.find for one in finds.values()})
    return HuntDirectory(held, LineLog(held, hunt_results.FILE), storms, finds)


def _clear(place: Path, known: set[int]) -> None:
    """Drafts, and folders of finds whose result was not kept any more. OSError."""
    for entry in sorted(place.iterdir()):
        drafted = entry.name.startswith(DRAFT)
        lost = entry.name.isdecimal() and int(entry.name) not in known
        if (drafted or lost) and not entry.is_symlink():
            shutil.rmtree(entry)
