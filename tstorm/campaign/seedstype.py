"""`--seeds A..B`: a range of seeds, both ends included; and with `--param NAME=a,b,c`, a grid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from tstorm.campaign.points import MOST_POINTS, Grid
from tstorm.options.option_types import MOST_SEED

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
