"""The options of a run as a command line says them: what `tstorm run` is to be given again.

Input: RunOptions. Output: arguments for each option that is not as by default, in the order of the
rows. What only tests ask for has no option and is left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from runtime.options import DEFAULTS, RunOptions, flag_of
from runtime.thresholds import BYTES, NS, PPB, PPM, THRESHOLDS
from tstorm import units

UNSAID = frozenset(row.name for row in fields(RunOptions) if not row.metadata.get("asked"))


def arguments(options: RunOptions) -> list[str]:
    changed = [(row, getattr(options, row.name)) for row in fields(RunOptions)]
    return [
        word
        for row, value in changed
        if value != getattr(DEFAULTS, row.name) and row.name not in UNSAID
        for word in _argument(row, value)
    ]


def _argument(row: Field[Any], value: Any) -> Iterator[str]:
    asked = row.metadata["asked"]
    flag = flag_of(row, asked[0])
    if asked[0].value:
        yield next(flag_of(row, one) for one in asked if one.value == value)
    elif row.type == "bool":
        yield flag if value else flag.replace("--", "--no-", 1)
    else:
        for shown in _shown(row, value):
            yield from (flag, shown)


def _shown(row: Field[Any], value: Any) -> Sequence[str]:
    """As the option reads it; several where it is said several times."""
    kind = row.metadata["asked"][0].kind
    if kind in _KINDS:
        return _KINDS[kind](value)
    return [units.duration(value) if row.name.endswith("_ns") else str(value)]


def _clock(value_ns: int) -> list[str]:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value_ns // 1000)
    return [start.isoformat().replace("+00:00", "Z")]


def _cpu(value: int) -> list[str]:
    return [f"model={(Decimal(value) / 10**9).normalize():f}"]


def _thresholds(value: Mapping[str, int]) -> list[str]:
    shown: Mapping[str, Callable[[int], str]] = {
        NS: units.duration,
        BYTES: units.size,
        PPB: units.probability,
        PPM: lambda ppm: units.probability(ppm * 1000),
    }
    return [
        f"{name}={shown[THRESHOLDS[name].unit](figure)}" for name, figure in sorted(value.items())
    ]


def _reseeds(value: Mapping[str, int]) -> list[str]:
    moments = sorted((int(at_ns), seed) for at_ns, seed in value.items())
    return [f"{units.duration(at_ns)}={seed}" for at_ns, seed in moments]


_KINDS: Mapping[str, Callable[[Any], list[str]]] = {
    "cpu model": _cpu,
    "instant": _clock,
    "threshold": _thresholds,
    "reseed": _reseeds,
}


def line(words: Sequence[str]) -> str:
    """Words as a shell takes them."""
    return shlex.join(words)
