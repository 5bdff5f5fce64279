"""What a link between nodes that move has while it is up: its delays, rates and losses over time.

They are a trace of the link (compiler/plan/parts/traces.py), or one value where nothing changes.
Means, by which routes are found, are of the time in which it is up until the experiment ends, and
are what it has while it is down. Where nobody knows when that is, a link that stays up has the
means of what it has in the end, which lasts longer than all before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

from compiler.mobility.sight import by_distance
from compiler.plan.format import MAX_INT
from compiler.plan.parts.motion import Motion
from compiler.plan.parts.traces import Rows, TraceRow
from tdl import ast

LIGHT_MM_PER_MS = 299_792_458  # and m/s
STEP_NS = 100_000
FOREVER = MAX_INT


class Stretch(NamedTuple):
    """A time in which it is up; one without an end is the last."""

    from_ns: int
    to_ns: int
    squares: list[tuple[int, int]]  # time, square of the distance in mm


class ByDistance(NamedTuple):
    """Values by field of a link's state, and the trace where they change, with its means."""

    fixed: dict[str, int]
    trace: Rows | None = None
    means: tuple[int, ...] = ()


def latency_ns(square: int) -> int:
    """Of light, from the square of the distance in mm, rounded half up."""
    return (isqrt(square) * 10**6 + LIGHT_MM_PER_MS // 2) // LIGHT_MM_PER_MS


def follow(
    stretches: Sequence[Stretch], motion: Motion, said: ast.Mobility, quit_ns: int | None
) -> ByDistance:
    """`quit_ns` is when the experiment ends, where that is known."""
    fields = _fields(motion, said)
    if not fields:
        return ByDistance(_fixed(said))
    known = min(max(motion.end_ns, motion.times[-1] + 1), MAX_INT)
    end = known if quit_ns is None else quit_ns
    within = _until(end, stretches)
    kept = [list(_kept(one, fields, motion, said)) for one in within]
    values = {row.values for rows in kept for row in rows}
    if len(values) == 1:
        return ByDistance({**_fixed(said), **dict(zip(fields, *values, strict=True))})
    stays = quit_ns is None and stretches[-1].to_ns == FOREVER
    mean = kept[-1][-1].values if stays else _mean(within, kept)
    rows = [TraceRow(0, mean)] if within[0].from_ns else []
    for stretch, held in zip(within, kept, strict=True):
        rows += held
        rows.append(TraceRow(stretch.to_ns, mean))
    rows = [
        row for row, after in zip(rows, [*rows[1:], None], strict=True) if _lasts(row, after, end)
    ]
    return ByDistance(_fixed(said), Rows(fields, end, rows), mean)


def _until(end: int, stretches: Sequence[Stretch]) -> list[Stretch]:
    """What there is of them before the end; of those that are all later, the first value."""
    found = [
        Stretch(one.from_ns, min(one.to_ns, end), [row for row in one.squares if row[0] < end])
        for one in stretches
        if one.from_ns < end
    ]
    first = stretches[0]
    return found or [first._replace(squares=first.squares[:1])]


def _lasts(row: TraceRow, after: TraceRow | None, end: int) -> bool:
    return row.at_ns < end if after is None else row.at_ns < after.at_ns


def _fields(motion: Motion, said: ast.Mobility) -> tuple[str, ...]:
    """What depends on the distance, in the order of traces."""
    loses = bool(motion.losses) or any(row[2] for row in motion.rates)
    found = (
        ("rate_bps", bool(motion.rates)),
        ("delay_ns", said.latency_ns is None),
        ("loss_ppb", loses),
    )
    return tuple(field for field, wanted in found if wanted)


def _fixed(said: ast.Mobility) -> dict[str, int]:
    found = {
        "rate_bps": said.rate_bps,
        "delay_ns": said.latency_ns,
        "loss_ppb": said.loss_ppb,
    }
    return {field: value for field, value in found.items() if value}


def _kept(
    stretch: Stretch, fields: Sequence[str], motion: Motion, said: ast.Mobility
) -> list[TraceRow]:
    """Of those that differ from the one before by less than a step of latency in nothing else, the
    first."""
    step = STEP_NS if said.latency_step_ns is None else said.latency_step_ns
    place = fields.index("delay_ns") if "delay_ns" in fields else -1
    found: list[TraceRow] = []
    for at, square in stretch.squares:
        values = _values(square, fields, motion)
        if found:
            old = found[-1].values
            same = [a == b for i, (a, b) in enumerate(zip(old, values, strict=True)) if i != place]
            if all(same) and (place < 0 or abs(old[place] - values[place]) < step):
                continue
        found.append(TraceRow(at, values))
    return found


def _values(square: int, fields: Sequence[str], motion: Motion) -> tuple[int, ...]:
    found = {"delay_ns": latency_ns(square)} if "delay_ns" in fields else {}
    if motion.rates:
        _, found["rate_bps"], found["loss_ppb"] = by_distance(motion.rates, isqrt(square))
    if motion.losses:
        found["loss_ppb"] = by_distance(motion.losses, isqrt(square))[1]
    return tuple(found[field] for field in fields)


def _mean(stretches: Sequence[Stretch], kept: Sequence[list[TraceRow]]) -> tuple[int, ...]:
    total, whole = [0] * len(kept[0][0].values), 0
    for stretch, rows in zip(stretches, kept, strict=True):
        ends = [*(row.at_ns for row in rows[1:]), stretch.to_ns]
        for row, end in zip(rows, ends, strict=True):
            whole += end - row.at_ns
            total = [
                sum_ + v * (end - row.at_ns) for sum_, v in zip(total, row.values, strict=True)
            ]
    if not whole:
        return kept[0][0].values
    return tuple(one // whole for one in total)
