"""The grid of a campaign, and its points: a seed, and a value for each parameter.

A point has a name, which is the name of its run directory. Parameters may have any values, so what
is not plainly safe in a file's name is written as `%` and two hexadecimal digits for each of its
bytes (as in RFC 3986), and a name that is too long ends with a part of its SHA-256. Two points
never have the same name.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tstorm.options.option_types import MOST_SEED

MOST_POINTS = 10_000
_LONGEST = 120  # characters of a name; file systems take 255 bytes
_DIGITS = 16


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """`params`: names and values as they were given, by name."""

    seed: int
    params: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """`seed-3`, `rtt=20ms,seed-3`: a file's name that leads nowhere else."""
        settings = [f"{_safe(name)}={_safe(value)}" for name, value in self.params]
        whole = ",".join([*settings, f"seed-{self.seed}"])
        if len(whole) <= _LONGEST:
            return whole
        digest = hashlib.sha256(whole.encode("ascii")).hexdigest()[:_DIGITS]
        return f"{whole[: _LONGEST - _DIGITS - 1]}~{digest}"

    @property
    def settings(self) -> str:
        """`loss=1%, rtt=20ms`; empty without parameters. Points that have it in common differ in
        their seeds."""
        return ", ".join(f"{name}={value}" for name, value in self.params)

    @property
    def words(self) -> str:
        """For people: `rtt=20ms, seed 3`."""
        return ", ".join(filter(None, (self.settings, f"seed {self.seed}")))


def _safe(text: str) -> str:
    """Neither `/` nor `,` nor `=`, and no dot in front."""
    found = quote(text, safe="+", errors="surrogatepass").replace("~", "%7E")
    return found.replace(".", "%2E", 1) if found.startswith(".") else found


@dataclass(frozen=True, slots=True)
class Grid:
    """Every seed with every combination of the parameters' values."""

    seeds: range
    params: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and values, by name

    @property
    def count(self) -> int:
        """Of points; of more than MOST_POINTS it is one more than that, however many there are."""
        count = len(self.seeds)
        for _, values in self.params:
            count = min(count * len(values), MOST_POINTS + 1)
        return count

    def points(self) -> Iterator[Point]:
        """In the order in which they are carried out and shown."""
        for one in self.firsts():
            yield from (Point(seed, one.params) for seed in self.seeds)

    def firsts(self) -> Iterator[Point]:
        """The first one of each combination of values."""
        names = [name for name, _ in self.params]
        for values in product(*(values for _, values in self.params)):
            yield Point(self.seeds[0], tuple(zip(names, values, strict=True)))

    def covers(self, other: Grid) -> bool:
        """Whether every point of the other one is a point of this one."""
        mine, others = dict(self.params), dict(other.params)
        inside = other.seeds[0] in self.seeds and other.seeds[-1] in self.seeds
        return (
            inside
            and list(mine) == list(others)
            and all(set(others[name]) <= set(mine[name]) for name in mine)
        )

    @property
    def words(self) -> str:
        """`seeds 1..20; rtt=20ms,40ms`."""
        seeds = f"seeds {self.seeds[0]}..{self.seeds[-1]}"
        return "; ".join([seeds, *(f"{name}={','.join(values)}" for name, values in self.params)])


# Whether a directory is that of a campaign: what commands that look at runs ask first.

CAMPAIGN_FILE = "campaign.json"


def is_campaign(path: str | Path) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISREG((Path(path) / CAMPAIGN_FILE).lstat().st_mode)
    return False


# `--seeds A..B`: a range of seeds, both ends included; and with `--param NAME=a,b,c`, a grid.

MOST = 10_000
_NUMBER = re.compile(r"[0-9]{1,19}")


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


def grid(seeds: range, params: Mapping[str, str]) -> Grid:
    """Every seed with each of the values that a parameter was given. UsageError."""
    found = Grid(seeds, tuple((name, _values(name, params[name])) for name in sorted(params)))
    if found.count > MOST_POINTS:
        raise click.UsageError(f"the grid has more than {MOST_POINTS} points.")
    return found


def _values(name: str, text: str) -> tuple[str, ...]:
    values = tuple(text.split(","))
    if not all(values):
        raise click.UsageError(f"--param {name}={text!r:.60} has an empty value between commas.")
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise click.UsageError(f"--param {name} has {twice[0]!r:.60} twice.")
    return values
