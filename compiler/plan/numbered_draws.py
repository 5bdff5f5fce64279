"""Draws by number, as the engine makes them (docs/pktd.md, Draws): any one without those before."""

from __future__ import annotations

from collections.abc import Iterable

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    """The output function of SplitMix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


def bits(key: int, number: int) -> int:
    """64 bits: output `number`, from 0, of the generator of this key."""
    start = mix((key + _STEP) & _MASK)
    return mix((start + (number + 1) * _STEP) & _MASK)


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
