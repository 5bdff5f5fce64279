"""What each row should be: closed forms of its network, without any measuring.

Rates of links are of IP bytes (docs/limits.md). A TCP segment with time stamps carries 1,448 bytes
in a packet of 1,500; an ACK, of 52 bytes, goes the other way and takes nothing from the data.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from bench.engine.wiring import ETHERNET_BYTES, MSS_BYTES, MTU_BYTES

PAYLOAD = MSS_BYTES / MTU_BYTES  # of the rate, what a program gets


def goodput_bps(rate_bps: float) -> float:
    """What a program gets of a link that is full of one TCP flow."""
    return rate_bps * PAYLOAD


def ethernet_bps(rate_bps: float) -> int:
    """The rate to give a qdisc, which counts 14 bytes more a packet, for the same rate of IP."""
    return round(rate_bps * (MTU_BYTES + ETHERNET_BYTES) / MTU_BYTES)


def copy_seconds(size_bytes: int, rate_bps: float, background_bps: float) -> float:
    """To copy a file by TCP through what other traffic leaves of a link."""
    return size_bytes * 8 / goodput_bps(rate_bps - background_bps)


def jitter_ratio(samples_ms: Sequence[float], configured_ms: float) -> float:
    """Standard deviation of round trips with jitter on the way there only, over what was asked."""
    return statistics.pstdev(samples_ms) / configured_ms


def middle_ratio(samples_ms: Sequence[float], configured_ms: float) -> float:
    """As `jitter_ratio`, of the normal distribution that the middle half of the round trips has:
    single late ones do not move it."""
    low, _, high = statistics.quantiles(samples_ms, n=4)
    return (high - low) / (2 * statistics.NormalDist().inv_cdf(0.75)) / configured_ms


def mean_squared(errors: Sequence[float]) -> float:
    """Of errors, in the square of their unit."""
    return statistics.fmean(error * error for error in errors)


def shape_falls(values: Sequence[float], slack: float) -> bool:
    """Whether each is at most the one before it and `slack` of it, and the last below the first."""
    steps = itertools.pairwise(values)
    return values[-1] < values[0] and all(b <= a * (1 + slack) for a, b in steps)


def shape_grows(values: Sequence[float], slack: float) -> bool:
    """Whether each is at least the one before it less `slack`, and the last above the first."""
    steps = itertools.pairwise(values)
    return values[-1] > values[0] and all(b >= a * (1 - slack) for a, b in steps)


def update_ms(one_way_ms: float) -> float:
    """A commit that a far replica has to confirm takes one round trip to it."""
    return 2 * one_way_ms


def deviation(observed: float, baseline: float) -> float:
    """The paper's error of a rate: 1 - observed / bare metal. Positive: too little."""
    return 1 - observed / baseline
