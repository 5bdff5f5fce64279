"""A comparison as a table for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tstorm import output
from tstorm.comparing import differences
from tstorm.comparing.comparison_sides import ComparisonSide, other_settings
from tstorm.comparing.differences import MetricDifference

NONE = "-"


@dataclass(frozen=True, slots=True)
class Comparison:
    sides: Sequence[ComparisonSide]
    rows: Sequence[MetricDifference]

    @property
    def doubts(self) -> list[str]:
        first, *others = self.sides
        found = [one for side in self.sides for one in side.doubts()]
        return found + [one for side in others for one in other_settings(first, side)]

    @property
    def notes(self) -> list[str]:
        return list(differences.notes(self.sides, self.rows))

    @property
    def differing(self) -> int:
        return sum(row.differs for row in self.rows)

    @property
    def closing(self) -> str:
        tested = sum(row.probability is not None for row in self.rows)
        shown = f"{self.differing} of {tested} figures differ significantly"
        return f"{shown} (5% for all together)"

    def of_side(self, number: int) -> list[MetricDifference]:
        """What differs first."""
        rows = [row for row in self.rows if row.other == number]
        return sorted(rows, key=lambda row: (not row.differs, row.group, row.metric))


def compare(paths: Sequence[str], by: str | None = None) -> Comparison:
    """`by`: a parameter of the one campaign, whose values are the sides. RunError."""
    from tstorm.comparing import comparison_sides

    found = (
        comparison_sides.load(paths) if by is None else comparison_sides.load_values(paths[0], by)
    )
    return Comparison(found, differences.between(found))


def cells(row: MetricDifference) -> tuple[str, ...]:
    """What it is, both values, by how much, and how sure that is."""
    metric = row.metric
    between = metric.subject or NONE
    if row.group:
        between = f"{row.group}: {between}"
    interval = NONE
    if row.interval is not None:
        interval = " to ".join(map(metric.difference, row.interval))
    probability = NONE if row.adjusted is None else _probability(row.adjusted)
    return (
        metric.words,
        between,
        metric.said(row.first),
        metric.said(row.second),
        metric.difference(row.change),
        interval,
        probability,
        "differs" if row.differs else "",
    )


HEAD = ("FIGURE", "OF", "FIRST", "SECOND", "DIFFERENCE", "95% INTERVAL", "P", "")
_RIGHT = (2, 3, 4, 6)


def _probability(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def table(found: Comparison, most: int) -> None:
    """At most so many rows for each two sides, 0 for all."""
    for number, side in enumerate(found.sides[1:], 1):
        rows = found.of_side(number)
        shown = rows[:most] if most else rows
        output.line(f"first: {_side(found.sides[0])}; second: {_side(side)}")
        if found.sides[0].is_campaign:
            output.line(pairing(rows))
        output.line("")
        output.emit_table(HEAD, map(cells, shown), right=_RIGHT)
        if len(shown) < len(rows):
            output.line(f"… and {len(rows) - len(shown)} more figures (--limit 0)")
        output.line("")
    output.line(found.closing)


def pairing(rows: Sequence[MetricDifference]) -> str:
    """Which of them were compared seed by seed."""
    tested = [row for row in rows if row.probability is not None]
    paired = sum(row.paired for row in tested)
    if not paired:
        return "unpaired: the sides have other seeds"
    if paired == len(tested):
        return "paired: each run is compared with the one of its seed"
    rest = f"{len(tested) - paired} of {len(tested)} figures"
    return f"paired by seed, but for {rest}, which are not there for all seeds"


def _side(side: ComparisonSide) -> str:
    return f"{side.name} ({len(side.runs)} runs)" if side.is_campaign else side.name


def to_json(found: Comparison) -> dict[str, Any]:
    return {
        "sides": [
            {
                "path": side.name,
                "kind": "campaign" if side.is_campaign else "run",
                "runs": [
                    {"seed": run.seed, "verdict": run.verdict, "outcome": run.outcome}
                    for run in side.runs
                ],
                "without_result": len(side.without),
            }
            for side in found.sides
        ],
        "warnings": found.doubts,
        "notes": found.notes,
        "level": differences.LEVEL,
        "differing": found.differing,
        "figures": list(_records(found)),
    }


def _records(found: Comparison) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        yield {
            "first": 0,
            "second": row.other,
            "params": row.group,
            "figure": row.metric.kind.name.lower(),
            "of": row.metric.subject,
            "unit": "share" if row.metric.is_share else row.metric.unit,
            "counts": list(row.counts),
            "values": [_number(row.first), _number(row.second)],
            "difference": _number(row.change),
            "interval": None if row.interval is None else list(map(_number, row.interval)),
            "p": row.probability,
            "p_holm": row.adjusted,
            "paired": row.paired,
            "differs": row.differs,
            **({"open": list(row.open)} if any(row.open) else {}),
        }


def _number(value: float) -> float | int:
    """Whole where it is; no digits that nobody has measured."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded
