"""What is drawn for probes, by number (compiler/plan/numbered_draws.py)."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.plan.numbered_draws import bits, mix

__all__ = ["below", "bits", "mix", "shuffled"]


def below(key: int, number: int, bound: int) -> int:
    """In [0, bound), bound at most 2^64."""
    return bits(key, number) * bound >> 64


def shuffled(items: Iterable[int], key: int) -> list[int]:
    """Fisher and Yates."""
    found = list(items)
    for place in range(len(found) - 1, 0, -1):
        other = below(key, place, place + 1)
        found[place], found[other] = found[other], found[place]
    return found
