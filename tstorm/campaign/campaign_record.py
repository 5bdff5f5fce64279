"""campaign.json: which experiment is carried out at which points, and with which options.

Whoever goes on with a campaign must mean the same one: `differences` says what is another. Raise
VERSION when a reader of the version before would misunderstand what is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    TEXT,
    Each,
    Shape,
    check,
)
from runtime.options import RunOptions, decode
from tstorm.campaign.points import MOST_POINTS, Grid

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

FORMAT, VERSION = "thunderstorm-campaign", 1
MAX_BYTES = 1 << 24
ATTACHED = "files.tar"  # of a plan: what the text includes, and the files it names
_REMEDY = "give the directory of a campaign"
_SHAPE = Shape(
    {
        "experiment": TEXT,
        "source": TEXT,
        "source_digest": TEXT,
        "source_digests?": Each(TEXT),
        "grid": {"seeds": [COUNT], "params": Each([TEXT])},
        "options": {},
    }
)


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """`source` is the path that was given; `source_digest` is of what it said (source_digest), but
    of combinations of parameters that are in `others`, by the settings of their points: another
    value may include another file."""

    experiment: str
    source: str
    source_digest: str
    grid: Grid
    options: RunOptions
    others: Mapping[str, str] = field(default_factory=dict)

    def digest_of(self, settings: str) -> str:
        return self.others.get(settings, self.source_digest)

    def to_record(self) -> dict[str, Any]:
        seeds = self.grid.seeds
        return {
            "format": FORMAT,
            "version": VERSION,
            "experiment": self.experiment,
            "source": self.source,
            "source_digest": self.source_digest,
            **({"source_digests": dict(self.others)} if self.others else {}),
            "grid": {
                "seeds": [seeds[0], seeds[-1]],
                "params": {name: list(values) for name, values in self.grid.params},
            },
            "options": self.options.to_record(),
        }


def source_digest(plan: Plan) -> str:
    """SHA-256 of the text, of what it includes and of the files that it names: what all plans of a
    campaign have in common whose parameters choose no files; else those of one combination."""
    found = hashlib.sha256()
    attached = plan.raw(ATTACHED) if ATTACHED in plan.names else b""
    for data in (plan.source, attached):
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()


def read(value: Any, place: str) -> CampaignRecord:
    """Foreign data. RunError."""
    if type(value) is not dict or value.get("format") != FORMAT:
        raise RunError(f"{place} is not the record of a campaign", _REMEDY)
    if value.get("version") != VERSION:
        raise RunError(
            f"{place} has version {value.get('version')!r:.40}; this release reads {VERSION}",
            "use the release that made the campaign",
        )
    check(value, _SHAPE, place)
    options = decode(value["options"], f"{place}: options")
    return CampaignRecord(
        value["experiment"],
        value["source"],
        value["source_digest"],
        _grid(value["grid"], place),
        options,
        value.get("source_digests", {}),
    )


def _grid(value: Mapping[str, Any], place: str) -> Grid:
    seeds = value["seeds"]
    if len(seeds) != 2 or not 0 <= seeds[1] - seeds[0] < MOST_POINTS:
        raise RunError(f"{place}: {seeds!r:.60} are not the first and the last seed", _REMEDY)
    params = tuple(sorted((name, tuple(said)) for name, said in value["params"].items()))
    for name, said in params:
        if len(set(said)) < len(said):
            raise RunError(f"{place}: {name!r:.60} has a value twice", _REMEDY)
    grid = Grid(range(seeds[0], seeds[1] + 1), params)
    if not 0 < grid.count <= MOST_POINTS:
        many = f"more than {MOST_POINTS}" if grid.count else "no"
        raise RunError(f"{place}: its grid has {many} points", _REMEDY)
    return grid


def differences(before: CampaignRecord, now: CampaignRecord) -> Iterator[str]:
    """Why the second one does not go on with the first, in words; nothing if it does.

    A grid that has all points of the one before extends it.
    """
    shared = {one.settings for one in now.grid.firsts()} & {
        one.settings for one in before.grid.firsts()
    }
    if any(before.digest_of(one) != now.digest_of(one) for one in shared):
        yield f"the experiment: {before.source} was another text, or files that it names were"
    if not now.grid.covers(before.grid):
        yield f"the grid: {before.grid.words} before, {now.grid.words} now"
    old, new = before.options.to_record(), now.options.to_record()
    for name in sorted(old):
        if old[name] != new[name]:
            yield f"the option {name}: {_said(old[name])} before, {_said(new[name])} now"


def _said(value: object) -> str:
    return "not given" if value in (None, "", {}) else str(value)
