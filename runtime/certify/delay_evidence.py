"""What some probes of one pair prove about its path: figures that chance does not explain.

Each figure is a one-sided confidence bound: a path is at least so late, loses at least so much more
than planned. Of few probes that is nothing. For paths without jitter quantiles decide (no
assumption about how late a machine is); for paths with jitter the mean and the deviation do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.certify import binomial
from runtime.certify.expected_delay import ExpectedDelay
from runtime.certify.judged_probes import JudgedProbe

FEW_OF_MEAN, FEW_OF_HEAVY_MEAN = 30, 100
FEW_OF_DEVIATION, FEW_OF_HEAVY_DEVIATION = 100, 1000
RARE = 0.001  # of probes, that something else made them early
HALF = 0.5
LONG_BURSTS = 2  # how much more a burst of losses may weigh than their variance says
EXACT = 0.5  # the "chance" where there is none: a quantile is that of the probes, be it of one


@dataclass(frozen=True, slots=True)
class DelayEvidence:
    """None: too few probes to say anything. Times in ns, of arrivals beside the planned delay."""

    late_ns: int | None = None
    early_ns: int | None = None
    tail_ns: int | None = None
    jitter_ppm: int | None = None
    more_loss_ppb: int | None = None
    less_loss_ppb: int | None = None


def figures(
    probes: Sequence[JudgedProbe], planned: ExpectedDelay, alarm: float, *, exact: bool = False
) -> DelayEvidence:
    """`alarm`: the chance that each of them may be beyond its truth by chance. `exact`: delays have
    no chance in them but jitter, as in virtual time."""
    arrived = [(probe, probe.delay_ns) for probe in probes if probe.delay_ns is not None]
    over = _over(probes, planned)
    strays = [late_ns - planned.apart_ns for late_ns in over]
    plain = sorted(delay - planned.delay_ns - probe.wait.least_ns for probe, delay in arrived)
    more, less = _loss(probes, planned, alarm)
    if planned.jitter_ns:
        late, early = _mean(arrived, planned, alarm)
        jitter = _deviation(arrived, planned, alarm)
        return DelayEvidence(late, early, None, jitter, more, less)
    sure = EXACT if exact else alarm
    return DelayEvidence(
        late_ns=_late(over, planned, sure),
        early_ns=_early(plain, sure),
        tail_ns=_at_least(strays, 0.99, sure),
        more_loss_ppb=more,
        less_loss_ppb=less,
    )


def late(probes: Sequence[JudgedProbe], planned: ExpectedDelay, alarm: float) -> int | None:
    """How late half of them surely were, without jitter."""
    return _late(_over(probes, planned), planned, alarm)


def _late(over: Sequence[int], planned: ExpectedDelay, alarm: float) -> int | None:
    apart_ns = planned.apart_ns if planned.apart_share >= HALF else 0
    return _at_least([late_ns - apart_ns for late_ns in over], HALF, alarm)


def _over(probes: Sequence[JudgedProbe], planned: ExpectedDelay) -> list[int]:
    """How late each was that arrived, beyond what queues explain, in order."""
    return sorted(
        probe.delay_ns - planned.delay_ns - probe.wait.most_ns
        for probe in probes
        if probe.delay_ns is not None
    )


def _at_least(ordered: Sequence[int], part: float, alarm: float) -> int | None:
    """The quantile is surely no less than this."""
    low, high = 0, len(ordered)  # the largest rank below which so few could not be by chance
    while low < high:
        middle = (low + high + 1) // 2
        if binomial.at_most(middle - 1, len(ordered), part) <= alarm:
            low = middle
        else:
            high = middle - 1
    return ordered[low - 1] if low else None


def _early(ordered: Sequence[int], alarm: float) -> int | None:
    """More than a few of 1,000 were earlier than planned by at least this."""
    if len(ordered) < binomial.needed(alarm):
        return None
    rank = 1
    while rank < len(ordered) and binomial.at_least(rank, len(ordered), RARE) > alarm:
        rank += 1
    return -ordered[rank - 1]


def _mean(
    arrived: Sequence[tuple[JudgedProbe, int]], planned: ExpectedDelay, alarm: float
) -> tuple[int | None, int | None]:
    few = FEW_OF_HEAVY_MEAN if planned.heavy else FEW_OF_MEAN
    calm = [(probe, delay) for probe, delay in arrived if not probe.wait.crowded]
    count = moments([probe for probe, _ in calm], planned)
    if count < few or planned.cut:
        return None, None
    usual_ns = planned.delay_ns + planned.apart_mean_ns
    values = [delay - usual_ns - probe.wait.least_ns for probe, delay in calm]
    mean = math.fsum(values) / len(values)
    waits = math.fsum(one.wait.most_ns - one.wait.least_ns for one, _ in calm) / len(calm)
    unsure = binomial.deviations(alarm) * max(planned.deviation_ns, _spread(values, mean))
    unsure /= math.sqrt(count)
    return round(mean - waits - unsure), round(-mean - unsure)


def moments(probes: Sequence[JudgedProbe], planned: ExpectedDelay) -> int:
    """How many of them, in order of time, chance holds for: jitter takes its time to change
    (docs/pktd.md, Delay and jitter), so those close to each other met the same."""
    apart_ns = planned.jitter_ns * planned.apart
    count, next_ns = 0, 0
    for probe in probes:
        if probe.sent_ns >= next_ns:
            count, next_ns = count + 1, probe.sent_ns + apart_ns
    return count


def _spread(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _deviation(
    arrived: Sequence[tuple[JudgedProbe, int]], planned: ExpectedDelay, alarm: float
) -> int | None:
    few = FEW_OF_HEAVY_DEVIATION if planned.heavy else FEW_OF_DEVIATION
    calm = [
        (probe, delay)
        for probe, delay in arrived
        if not probe.wait.crowded and probe.wait.most_ns * 4 <= planned.deviation_ns
    ]
    count = moments([probe for probe, _ in calm], planned)
    if count < few or planned.cut or planned.mixed:
        return None
    values = [delay for _, delay in calm]
    ratio = _spread(values, math.fsum(values) / len(values)) / planned.deviation_ns
    unsure = binomial.deviations(alarm) * math.sqrt((planned.kurtosis - 1) / count) / 2
    return max(0, round((abs(ratio - 1) - unsure * max(ratio, 1.0)) * 1e6))


def _loss(
    probes: Sequence[JudgedProbe], planned: ExpectedDelay, alarm: float
) -> tuple[int | None, int | None]:
    """Losses that come in bursts are reckoned as fewer ones of fewer probes, by their variance;
    where there are many, as half of that again, since a burst may be much longer than most."""
    counted = [probe for probe in probes if probe.tells_loss and not probe.wait.may_drop]
    lost = sum(probe.delay_ns is None for probe in counted)
    share, clump = planned.loss_ppb / 1e9, planned.clump
    many = lost > len(counted) * share
    clump *= LONG_BURSTS if many and clump > 1 else 1
    whole = math.ceil(len(counted) / clump)
    if whole < binomial.needed(alarm):
        return None, None
    least, most = share, share
    if many:
        least = _bisect(lambda chance: binomial.at_least(int(lost / clump), whole, chance) < alarm)
    elif planned.loss_ppb:
        some = math.ceil(lost / clump)
        most = _bisect(lambda chance: binomial.at_most(some, whole, chance) >= alarm)
    return max(0, round((least - share) * 1e9)), max(0, round((share - most) * 1e9))


def _bisect(holds: Callable[[float], bool]) -> float:
    """The end of the interval from 0 on in which it holds."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
