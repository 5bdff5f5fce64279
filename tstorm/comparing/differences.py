"""What differs between two sides, how far, and how sure that is.

Input: sides, of which the first is what the others are compared with. Output: a row for each figure
that both have.
Algorithm: of campaigns each run gives one value for a figure. Medians are compared; of what a run
either is or is not (a verdict, a failure) shares. Where both sides have a figure of the same seeds,
each run is compared with the one of its seed, which has the same timeline and draws: the
probability that chance alone makes such a difference is that of Wilcoxon's test (ranks.py).
Else it is that of Mann and Whitney's (ranks.py). Of single runs the round trips and losses of their
probes are compared. Intervals are in intervals.py; all probabilities of a comparison together are
adjusted by Holm's method (ranks.py), but for figures that are the same on both sides for each seed,
or in all runs: no chance could make these differ. A difference is one that has less than 5 % then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from runtime.nearest_rank import MEDIAN, P99
from tstorm.comparing import intervals, ranks
from tstorm.comparing.comparison_sides import ComparisonSide
from tstorm.comparing.metrics import Metric, MetricKind
from tstorm.comparing.run_metrics import RunMetrics

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """`first` and `second` are medians or shares, of `counts` values. What could not be said is
    None: one value a side has neither an interval nor a probability. `paired`: each seed was
    compared with itself, and `shift` is the median of the differences. `tested`: the probability
    is one of those that are adjusted for their number. `open`: of a loss, probes beside those that
    are counted, of which nobody knows whether they were lost."""

    other: int  # number of the second side
    group: str  # parameters
    metric: Metric
    counts: tuple[int, int]
    first: float
    second: float
    interval: tuple[float, float] | None = None
    probability: float | None = None
    adjusted: float | None = None
    tested: bool = False
    paired: bool = False
    shift: float | None = None
    open: tuple[int, int] = (0, 0)

    @property
    def change(self) -> float:
        return self.second - self.first if self.shift is None else self.shift

    @property
    def differs(self) -> bool:
        return self.adjusted is not None and self.adjusted < LEVEL


def between(sides: Sequence[ComparisonSide]) -> list[MetricDifference]:
    """By side, then by group and metric."""
    found = [
        row for number, side in enumerate(sides[1:], 1) for row in _pair(sides[0], side, number)
    ]
    tested = [row.probability for row in found if row.tested and row.probability is not None]
    adjusted = iter(ranks.adjusted(tested))
    return [replace(row, adjusted=next(adjusted)) if row.tested else row for row in found]


def _pair(first: ComparisonSide, second: ComparisonSide, number: int) -> Iterator[MetricDifference]:
    one_run = not first.is_campaign
    for group, ours, theirs in _groups(first, second):
        metrics = {metric for run in (*ours, *theirs) for metric in run.values}
        for metric in sorted(metrics):
            row = (
                _of_runs(metric, ours[0], theirs[0])
                if one_run
                else _of_campaigns(metric, ours, theirs)
            )
            if row is not None:
                yield replace(row, other=number, group=group)


def _groups(
    first: ComparisonSide, second: ComparisonSide
) -> Iterator[tuple[str, list[RunMetrics], list[RunMetrics]]]:
    """Like with like; where each side has other parameters, but one of each, these are compared."""
    if _only_values_differ(first, second):
        (ours,), (theirs,) = first.groups.values(), second.groups.values()
        yield "", ours, theirs
        return
    for group in first.groups:
        if group in second.groups:
            yield group, first.groups[group], second.groups[group]


def _only_values_differ(first: ComparisonSide, second: ComparisonSide) -> bool:
    return (
        len(first.groups) == len(second.groups) == 1 and first.groups.keys() != second.groups.keys()
    )


def _values(metric: Metric, runs: Sequence[RunMetrics]) -> list[float]:
    """A program that is nowhere said to have failed has not, if its run came to its end."""
    if metric.kind == MetricKind.PROGRAM:
        return [run.values.get(metric, 0.0) for run in runs if run.is_whole or metric in run.values]
    return [run.values[metric] for run in runs if metric in run.values]


def _of_campaigns(
    metric: Metric, ours: Sequence[RunMetrics], theirs: Sequence[RunMetrics]
) -> MetricDifference | None:
    first, second = _values(metric, ours), _values(metric, theirs)
    if not first or not second:
        return None
    counts = len(first), len(second)
    both = _by_seed(metric, ours, theirs)
    if metric.is_share:
        means = sum(first) / counts[0], sum(second) / counts[1]
        row = MetricDifference(0, "", metric, counts, *means, _of_shares(first, second, both))
    else:
        medians = intervals.median(first), intervals.median(second)
        row = MetricDifference(0, "", metric, counts, *medians, _of_medians(first, second, both))
        row = replace(row, open=(_open(metric, ours), _open(metric, theirs)))
    if min(counts) < 2:
        return replace(row, interval=None)
    apart = [there - here for here, there in both]
    if both:
        row = replace(row, paired=True)
        row = row if metric.is_share else replace(row, shift=intervals.median(apart))
        found = ranks.probability_of_pairs(apart)
    else:
        found = ranks.probability(first, second)
    if len({*first, *second}) == 1 or (both and not any(apart)):
        return replace(row, probability=1.0, adjusted=1.0)  # whatever chance did: no test to count
    return replace(row, probability=found, tested=True)


def _open(metric: Metric, runs: Sequence[RunMetrics]) -> int:
    return sum(run.open.get(metric, 0) for run in runs)


def _by_seed(
    metric: Metric, ours: Sequence[RunMetrics], theirs: Sequence[RunMetrics]
) -> list[tuple[float, float]]:
    """The values of each seed on both sides; nothing where not all of both sides have one."""
    sides = []
    for runs in (ours, theirs):
        known = [one for one in runs if metric.kind == MetricKind.PROGRAM or metric in one.values]
        values = zip((one.seed for one in known), _values(metric, known), strict=True)
        sides.append(dict(values))
        if len(sides[-1]) < max(len(known), 2):
            return []
    first, second = sides
    if first.keys() != second.keys():
        return []
    return [(first[seed], second[seed]) for seed in sorted(first)]


def _of_shares(
    first: Sequence[float], second: Sequence[float], both: Sequence[tuple[float, float]]
) -> intervals.Interval:
    if both:
        return intervals.of_paired_shares([(bool(here), bool(there)) for here, there in both])
    return intervals.of_shares((round(sum(first)), len(first)), (round(sum(second)), len(second)))


def _of_medians(
    first: Sequence[float], second: Sequence[float], both: Sequence[tuple[float, float]]
) -> intervals.Interval:
    if both:
        return intervals.of_median([there - here for here, there in both])
    return intervals.of_difference(first, second)


def _of_runs(metric: Metric, ours: RunMetrics, theirs: RunMetrics) -> MetricDifference | None:
    first, second = _values(metric, [ours]), _values(metric, [theirs])
    if not first or not second:
        return None
    row = MetricDifference(0, "", metric, (1, 1), first[0], second[0])
    if metric in ours.counts and metric in theirs.counts:
        row = replace(row, open=(_open(metric, [ours]), _open(metric, [theirs])))
        return _lost(row, ours.counts[metric], theirs.counts[metric])
    if metric not in ours.samples or metric not in theirs.samples:
        return row
    samples = ours.samples[metric], theirs.samples[metric]
    row = replace(row, counts=(len(samples[0]), len(samples[1])))
    if metric.kind == MetricKind.RTT_P99:  # the test is one of the whole distribution: said once
        return replace(row, interval=intervals.of_difference(*samples, P99))
    interval = intervals.of_difference(*samples, MEDIAN)
    found = ranks.probability(*samples)
    return replace(row, interval=interval, probability=found, tested=True)


def _lost(
    row: MetricDifference, ours: tuple[int, int], theirs: tuple[int, int]
) -> MetricDifference:
    """It differs only if it does whatever became of open ones: were all of them lost, or none."""
    cases = list(product(_cases(ours, row.open[0]), _cases(theirs, row.open[1])))
    spans = [intervals.of_shares(*case) for case in cases]
    changes = [there[0] / there[1] - here[0] / here[1] for here, there in cases]
    same = min(changes) >= 0 or max(changes) <= 0
    return replace(
        row,
        counts=(ours[1], theirs[1]),
        interval=(min(low for low, _ in spans) * 1e9, max(high for _, high in spans) * 1e9),
        probability=max(_chance(*case) for case in cases) if same else 1.0,
        tested=True,
    )


_Count = tuple[int, int]  # lost, of how many


def _cases(count: _Count, open_: int) -> list[_Count]:
    lost, whole = count
    return [(lost, whole + open_), (lost + open_, whole + open_)] if open_ else [count]


def _chance(ours: _Count, theirs: _Count) -> float:
    first, second = ([1.0] * lost + [0.0] * (whole - lost) for lost, whole in (ours, theirs))
    return ranks.probability(first, second)


def notes(sides: Sequence[ComparisonSide], found: Sequence[MetricDifference]) -> Iterator[str]:
    """What a reader must know to read the rows."""
    if not sides[0].is_campaign:
        yield (
            "one run a side says nothing about other seeds, and probes of one run are not"
            " independent: compare campaigns (tstorm run --seeds)"
        )
    yield from _of_open(found, one_run=not sides[0].is_campaign)
    tests = sum(row.tested for row in found)
    for number, side in enumerate(sides[1:], 1):
        missing = sorted(sides[0].groups.keys() ^ side.groups.keys())
        if _only_values_differ(sides[0], side):
            yield _said(sides[0]) + " is compared with " + _said(side)
        elif missing:
            yield f"only one of {sides[0].name} and {side.name} has: {'; '.join(missing)}"
        rows = [row for row in found if row.other == number and row.tested]
        if sides[0].is_campaign and rows and min(map(_least, rows)) * tests >= LEVEL:
            most = max(rows, key=lambda row: min(row.counts))
            yield _too_few(most, tests)


def _of_open(found: Sequence[MetricDifference], *, one_run: bool) -> Iterator[str]:
    rows = [row for row in found if any(row.open)]
    if rows:
        first, second = (sum(row.open[side] for row in rows) for side in range(2))
        only = "the shares are of the others"
        if one_run:
            only += ", and a loss differs only if it does whatever became of these"
        yield (
            f"of {first:,} and {second:,} probes nobody knows whether they were lost, since a run"
            f" or an instance ended too soon after them: {only}"
        )


def _said(side: ComparisonSide) -> str:
    (group,) = side.groups
    return f"{group} of {side.name}" if group else side.name


def _least(row: MetricDifference) -> float:
    """The smallest probability that values of so many runs can have."""
    return ranks.least_of_pairs(row.counts[0]) if row.paired else ranks.least(*row.counts)


def _too_few(row: MetricDifference, tests: int) -> str:
    runs = f"{row.counts[0]} and {row.counts[1]} runs"
    enough = min(row.counts)
    while (
        ranks.least_of_pairs(enough) if row.paired else ranks.least(enough, enough)
    ) * tests >= LEVEL:
        enough += 1
    return (
        f"{runs} are too few for {tests} figures: no difference could be told from chance; add"
        f" seeds ({enough} may be enough)"
    )
