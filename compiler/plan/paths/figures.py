"""The properties of a stretch of links before rounding, and how they are rounded in the end.

Stretches add up without loss, in any grouping: delay = sum of delays; jitter = sqrt(sum of jitter
squared); loss = 1 - product of (1 - loss); rate = least rate, where 0 means unlimited. Rounding is
half up, once. Source: docs/plan.md (Composing a path).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt
from typing import NamedTuple

from compiler.plan.format import PPB
from compiler.plan.properties import LinkState


class Stretch(NamedTuple):
    """Exact sums over some links that are all up."""

    delay_ns: int
    jitter_square: int
    kept: int  # product of (PPB - loss) over the lossy links
    lossy: int  # how many those are
    rate_bps: int  # 0 = unlimited

    @property
    def jitter_ns(self) -> int:
        """The square root, rounded half up (a tie cannot occur: (r + 1/2)^2 is no integer)."""
        root = isqrt(self.jitter_square)
        return root + 1 if self.jitter_square > root * root + root else root

    @property
    def loss_ppb(self) -> int:
        """PPB * (1 - kept / PPB^lossy), rounded half up."""
        if not self.lossy:
            return 0
        whole, unit = PPB**self.lossy, PPB ** (self.lossy - 1)
        rounded: int = (2 * (whole - self.kept) + unit) // (2 * unit)
        return rounded


NOTHING = Stretch(0, 0, 1, 0, 0)


def of_link(state: LinkState) -> Stretch:
    loss = state.loss_ppb
    return Stretch(
        state.delay_ns,
        state.jitter_ns * state.jitter_ns,
        PPB - loss if loss else 1,
        1 if loss else 0,
        state.rate_bps,
    )


def joined(a: Stretch, b: Stretch) -> Stretch:
    """`a` and then `b`."""
    return Stretch(
        a.delay_ns + b.delay_ns,
        a.jitter_square + b.jitter_square,
        a.kept * b.kept,
        a.lossy + b.lossy,
        min(a.rate_bps or b.rate_bps, b.rate_bps or a.rate_bps),
    )


def of_links(states: Iterable[LinkState]) -> Stretch:
    total = NOTHING
    for state in states:
        total = joined(total, of_link(state))
    return total
