"""The properties of a link or path as words of a line (docs/pktd.md, docs/tcal.md), for both
datapaths."""

from __future__ import annotations

from compiler.plan.properties import NUMBERS, PROPERTIES, LinkState

NOTHING = " ".join(f"{row.word}=0" for row in NUMBERS)


def properties(state: LinkState) -> str:
    """All but `up`."""
    return " ".join(
        [f"{row.word}={value}" for row, value in zip(PROPERTIES, state[1:], strict=True)]
    )


def differences(before: LinkState, after: LinkState) -> str:
    """Those that differ."""
    both = zip(PROPERTIES, before[1:], after[1:], strict=True)
    return " ".join([f"{row.word}={new}" for row, old, new in both if new != old])
