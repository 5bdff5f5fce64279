"""The properties of a stretch of links before rounding, and how they are rounded in the end.

Stretches add up without loss, in any grouping: delay = sum of delays; jitter = sqrt(sum of jitter
squared); loss = 1 - product of (1 - loss); rate = least rate, where 0 means unlimited. Rounding is
half up, once. Source: docs/plan.md (Composing a path).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import isqrt
from operator import add, call
from typing import Any, NamedTuple

from compiler.plan.format import PPB
from compiler.plan.properties import COMPOSED, Along, LinkState, Totals

Stretch = Totals[Any]  # exact sums over some links that are all up; parts are as _Way says


class _Way(NamedTuple):
    """How a property composes; its part of a stretch is a number, or a tuple of some."""

    nothing: Any  # the part of no link at all
    of: Callable[[int], Any]  # a link's value -> its part
    join: Callable[[Any, Any], Any]
    total: Callable[[Any], int]  # a part -> the value, rounded


def _least(a: int, b: int) -> int:
    return a if not b or 0 < a < b else b


def _root(square: int) -> int:
    """The square root, rounded half up (a tie cannot occur: (r + 1/2)^2 is no integer)."""
    root = isqrt(square)
    return root + 1 if square > root * root + root else root


def _kept(share: int) -> tuple[int, int]:
    """The product of PPB - share over the links that have one, and how many those are."""
    return (PPB - share, 1) if share else (1, 0)


def _both_kept(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if not (a[1] and b[1]):
        return a if a[1] else b
    return a[0] * b[0], a[1] + b[1]


def _share(part: tuple[int, int]) -> int:
    """PPB * (1 - kept / PPB^count), rounded half up."""
    kept, count = part
    if not count:
        return 0
    whole, unit = PPB**count, PPB ** (count - 1)
    rounded: int = (2 * (whole - kept) + unit) // (2 * unit)
    return rounded


_WAYS = {
    Along.LEAST: _Way(0, int, _least, int),
    Along.SUM: _Way(0, int, add, int),
    Along.SQUARES: _Way(0, lambda value: value * value, add, _root),
    Along.SHARES: _Way((1, 0), _kept, _both_kept, _share),
}
_OURS = tuple(_WAYS[row.along] for row in COMPOSED if row.along)
_OF = tuple(way.of for way in _OURS)
_JOIN = tuple(way.join for way in _OURS)
NOTHING: Stretch = Totals._make(way.nothing for way in _OURS)
# As Totals._make(), which takes twice as long; nothing is made as often as stretches.
_made: Callable[[Iterable[Any]], Stretch] = partial(tuple.__new__, Totals)
ROUNDED = tuple(way.total for way in _OURS)  # of each part, by place


def of_link(state: LinkState) -> Stretch:
    values: tuple[Any, ...] = state[1 : 1 + len(_OURS)]
    return Totals._make(map(call, _OF, values))


def joined(a: Stretch, b: Stretch) -> Stretch:
    """`a` and then `b`."""
    return _made(map(call, _JOIN, a, b))


def of_links(states: Iterable[LinkState]) -> Stretch:
    found = NOTHING
    for state in states:
        found = joined(found, of_link(state))
    return found


def totals(stretch: Stretch) -> Totals[int]:
    """What a stretch amounts to."""
    return Totals._make(map(call, ROUNDED, stretch))
