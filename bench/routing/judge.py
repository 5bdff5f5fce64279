"""What was measured against what is to be reached, and how it grows with the size.

A target belongs to one size; where that was not measured (--quick), it is not judged. Exponents are
slopes of least squares of log(value) over log(size): 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.tables import Record

MB = 1_000_000
MIB = 1 << 20
GROWTH_SIZES = (1000, 2000, 4000)


@dataclass(frozen=True, slots=True)
class Target:
    """`value` of the row of `part` (ours, where several tools have one) at `size`."""

    what: str
    size: int
    part: str
    value: Callable[[Record], float]
    bound: float
    unit: str
    least: bool = False  # the bound is the least that will do


TARGETS = (
    Target("all pairs composed", 4000, "all-pairs", lambda row: row["wall_s"], 0.5, "s"),
    Target("1,000 events, states and routes", 4000, "repair", lambda row: row["wall_s"], 3, "s"),
    Target("tstorm compile", 4000, "compile", lambda row: row["wall_s"], 8, "s"),
    Target(
        *("its peak memory", 4000, "compile"), lambda row: row["peak_mib"] * MIB / MB, 600, "MB"
    ),
    Target("its plan", 4000, "compile", lambda row: row["plan_bytes"] / MB, 30, "MB"),
    Target("against recomputing", 4000, "ratio", lambda row: row["ratio"], 50, "×", least=True),
    Target("tstorm paths --at", 4000, "query", lambda row: row["wall_s"], 0.3, "s"),
    Target("tstorm compile", 10_000, "compile", lambda row: row["wall_s"], 60, "s"),
)


def targets(rows: Sequence[Record]) -> list[Record]:
    """One row for each target whose size was measured, and one for the agreement at every size."""
    made: list[Record] = []
    for target in TARGETS:
        found = [row for row in rows if (row["part"], row["size"]) == (target.part, target.size)]
        if not found:
            continue
        value = target.value(found[0])
        made.append(
            {
                "part": "target",
                "what": f"{target.what}, {target.size} elements",
                "bound": f"{'≥' if target.least else '≤'} {target.bound:g} {target.unit}",
                "measured": f"{value:.3g} {target.unit}",
                "met": value >= target.bound if target.least else value <= target.bound,
            }
        )
    return made + [_agreement(row) for row in rows if row["part"] == "agreement"]


def _agreement(row: Record) -> Record:
    differences = len(row["differences"])
    return {
        "part": "target",
        "what": f"agreement with networkx, {row['size']} elements",
        "bound": "no difference",
        "measured": f"{differences or 'none'} in {row['pairs']:,} paths of {row['epochs']} epochs",
        "met": differences == 0,
    }


def growths(rows: Sequence[Record]) -> list[Record]:
    """The exponents of all that was measured at each of GROWTH_SIZES."""
    series: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in _values(row):
            series.setdefault(name, []).append((row["size"], value))
    return [
        {"part": "growth", "what": name, "exponent": round(exponent(points), 2)}
        for name, all_points in series.items()
        if len(points := [p for p in all_points if p[0] in GROWTH_SIZES]) == len(GROWTH_SIZES)
    ]


def _values(row: Record) -> Iterable[tuple[str, float]]:
    part = row["part"]
    if part == "compile":
        yield "tstorm compile: time", row["wall_s"]
        yield "tstorm compile --no-manifests: time", row["without_manifests"]["wall_s"]
        yield "tstorm compile: peak memory", row["peak_mib"]
        yield "plan: size", row["plan_bytes"]
    elif part == "query":
        yield "tstorm paths: time", row["wall_s"]
    elif part == "all-pairs":
        yield f"all pairs: {row['tool']}, {row['over']}", row["all_wall_s"]
    elif part == "repair":
        yield "one event: tstorm", row["mean_ms"]
    elif part == "recompute":
        yield f"one event: {row['tool']}, {row['over']}", row["mean_ms"]


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Slope of the straight line through (log x, log y). At least two different x, all positive."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    above = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / sum((x - mean_x) ** 2 for x, _ in logs)
