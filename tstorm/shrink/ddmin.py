"""Which of many things a failure needs: delta debugging.

Input: a list, and whether a failure comes with a part of it. Output: a part with which it comes,
and without any single item of which it does not.
Algorithm: parts, then what is left without each part, are tried; whatever still fails is divided
on, else parts are made smaller. Failures need not be monotone, nor every part possible.
Source: A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
Transactions on Software Engineering 28(2), 2002, figure 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def minimise(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """`fails(items)` is true, and not asked again. Nothing at all is tried first: one test more."""
    left = list(items)
    if left and fails([]):
        return []
    parts = 2
    while len(left) >= 2:
        reduced = _reduced(left, parts, fails)
        if reduced is not None:
            left, parts = reduced
        elif parts < len(left):
            parts = min(2 * parts, len(left))
        else:
            break
    return left


def _reduced(
    left: list[Item], parts: int, fails: Callable[[Sequence[Item]], bool]
) -> tuple[list[Item], int] | None:
    """What is left to go on with, and in how many parts; None if everything is needed so far."""
    bounds = list(_bounds(len(left), parts))
    for begin, end in bounds:
        if fails(left[begin:end]):
            return left[begin:end], 2
    if parts > 2:  # of two parts, one is what is left without the other
        for begin, end in bounds:
            rest = left[:begin] + left[end:]
            if fails(rest):
                return rest, max(parts - 1, 2)
    return None


def _bounds(count: int, parts: int) -> Iterator[tuple[int, int]]:
    """Of parts that differ by one in size at most."""
    for number in range(parts):
        yield count * number // parts, count * (number + 1) // parts
