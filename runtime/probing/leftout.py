"""What is said of pairs that are not probed."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.probing import budget
from runtime.probing.pairs import MOST_PAIRS
from runtime.probing.record import Header


def left_out(header: Header) -> Iterator[str]:
    if header.of > MOST_PAIRS:
        yield f"{len(header.pairs):,} of {header.of:,} pairs of instances are probed"
    if header.not_probed:
        first = " to ".join(header.not_probed[0])
        yield (
            f"{len(header.not_probed):,} pairs of instances ({first} …) are not probed: a"
            f" {budget.PART:,}th of the rate of their links is too little for a probe in"
            f" {budget.SLOWEST_NS // 10**9} s"
        )
