"""What is compared: a figure of a run, and how it is said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from tstorm import units

_DIGITS = 4  # that are shown


class MetricKind(IntEnum):
    """In the order in which they are shown."""

    VERDICT = 0
    EXPECTATION = 1
    PROGRAM = 2
    OWN = 3
    FIGURE = 4
    MOMENT = 5
    RTT_MEDIAN = 6
    RTT_P99 = 7
    LOSS = 8
    THROUGHPUT = 9


WORDS = {
    MetricKind.VERDICT: "not VALID",
    MetricKind.EXPECTATION: "expectation failed",
    MetricKind.PROGRAM: "program failed",
    MetricKind.OWN: "figure",
    MetricKind.FIGURE: "figure of expectation",
    MetricKind.MOMENT: "moment of expectation",
    MetricKind.RTT_MEDIAN: "RTT, median",
    MetricKind.RTT_P99: "RTT, p99",
    MetricKind.LOSS: "loss",
    MetricKind.THROUGHPUT: "throughput",
}
SHARES = frozenset(
    {MetricKind.VERDICT, MetricKind.EXPECTATION, MetricKind.PROGRAM}
)  # 1 or 0 in a run


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """`subject` is a pair, an instance, an expectation, or a figure and its instance; `unit` is ns,
    bps, ppb or nothing."""

    kind: MetricKind
    subject: str = ""
    unit: str = ""

    @property
    def is_share(self) -> bool:
        return self.kind in SHARES

    @property
    def words(self) -> str:
        return WORDS[self.kind]

    def said(self, value: float) -> str:
        """A value of it, for people."""
        if self.is_share:
            return f"{100 * value:.4g}%"
        return f"{'-' if value < 0 else ''}{_figure(abs(value), self.unit)}"

    def difference(self, value: float) -> str:
        if self.unit == "ppb" or self.is_share:
            parts = value / 1e7 if self.unit == "ppb" else 100 * value
            return f"{parts:+.4g} points"
        return f"{'+' if value > 0 else ''}{self.said(value)}"


def _figure(value: float, unit: str) -> str:
    if not unit:
        return f"{value:.4g}"
    rounded = _rounded(value)
    if unit == "bps":
        return units.rate(rounded) if rounded else "0b"
    return {"ns": units.duration, "ppb": units.probability}[unit](rounded)


def _rounded(value: float) -> int:
    """To so many digits."""
    if value < 1:
        return round(value)
    size: int = 10 ** max(math.floor(math.log10(value)) + 1 - _DIGITS, 0)
    return round(value / size) * size
