"""Places for discs that are linked, by stress majorization, so that none overlaps another.

Input: the radius of each disc, links between them with the distance that each wants between two
middles. Everything is in points and connected. Output: a place for each, the same on each call.

1. Distances between any two are those of the shortest path.
2. A first guess is classical scaling (Torgerson, "Multidimensional scaling", Psychometrika 17,
   1952), its two axes by power iteration from a fixed start.
3. Majorization moves one disc at a time to where the others want it, weights being 1/distance²
   (Gansner, Koren, North, "Graph Drawing by Stress Majorization", GD 2004, section 2.3).
4. Discs that overlap push each other apart; what is left after that is scaled away.
5. In a small network discs and the links that cross them push each other aside, as far as it goes.
6. All is turned so that it is wider than high.

Sums are numpy's own and not BLAS's, whose order depends on how many processors there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Links = Mapping[tuple[int, int], float]  # (a, b) with a < b: the distance that is wanted

_POWERS = 60  # rounds of power iteration: a guess needs no more
_WORK = 60_000  # moves of majorization
_STILL = 1e-5  # a mean step, as a share of the mean distance, that ends it
_FREE = 0.25  # of the discs overlap no other before they are pushed apart
_PUSHES, _SHARED = 40, 12  # rounds, and moves in each with the same list of neighbours
_FEW, _ASIDE = 10_000, 300  # discs times links of a small network; rounds of pushing links aside
_SLACK = 1e-6


def places(radii: Sequence[float], links: Links, margin: float) -> list[tuple[float, float]]:
    """One for each disc; two discs are `margin` apart or more."""
    if len(radii) == 1:
        return [(0.0, 0.0)]
    sizes = np.array(radii, dtype=float) + margin / 2
    wanted = _distances(len(radii), links)
    found = _majorized(_guess(wanted), wanted)
    found = _apart(_loosened(found, sizes), sizes)
    if len(radii) * len(links) <= _FEW:
        found = _apart(_beside(found, sizes, np.array(sorted(links))), sizes)
    found = _level(found)
    return [(float(x), float(y)) for x, y in found]


def _distances(count: int, links: Links) -> Any:
    """Of shortest paths between any two: each takes over from its neighbours until nothing gets
    shorter."""
    around: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    for (a, b), length in sorted(links.items()):
        around[a].append((b, length))
        around[b].append((a, length))
    order = _outwards(around)
    near = [np.array([other for other, _ in one]) for one in around]
    lengths = [np.array([[length] for _, length in one]) for one in around]
    found = np.full((count, count), np.inf)
    np.fill_diagonal(found, 0.0)
    changed = True
    while changed:
        changed = False
        for node in (*order, *reversed(order)):
            better = np.minimum(found[node], (found[near[node]] + lengths[node]).min(axis=0))
            if (better < found[node] - _SLACK).any():
                found[node] = better
                changed = True
    return np.minimum(found, found.T)


def _outwards(around: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
    """Breadth first, from the one with most neighbours."""
    first = max(range(len(around)), key=lambda node: (len(around[node]), -node))
    order, seen = [first], {first}
    for node in order:
        for other, _ in around[node]:
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order


def _guess(wanted: Any) -> Any:
    square = wanted**2
    means = square.mean(axis=0)
    inner = (means[:, None] + means[None, :] - square - means.mean()) / 2
    numbers = np.arange(1, len(wanted) + 1)
    first, long = _axis(inner, np.sin(numbers))
    inner -= first[:, None] * first[None, :] * long
    second, wide = _axis(inner, np.sin(2.0 * numbers))
    # What is linked alike has one place so far: a little apart, so that majorization can part it.
    aside = np.sqrt(long) / len(wanted) / 1000
    across, along = np.sin(2.4 * numbers) * aside, np.cos(2.4 * numbers) * aside
    return np.stack([first * np.sqrt(long) + along, second * np.sqrt(wide) + across], axis=1)


def _axis(matrix: Any, start: Any) -> tuple[Any, float]:
    """The eigenvector of the largest eigenvalue, and that."""
    axis, value = _dominant(matrix, start, 0.0)
    if value < 0:  # it is only the one farthest from 0: moved there, the largest is
        axis, value = _dominant(matrix, start, -value)
    return axis, max(value, 0.0)


def _dominant(matrix: Any, start: Any, shift: float) -> tuple[Any, float]:
    axis, value = start + 0.1, 0.0
    for _ in range(_POWERS):
        axis = axis / max(float(np.sqrt((axis**2).sum())), _SLACK)
        grown = (matrix * axis[None, :]).sum(axis=1)
        value = float((grown * axis).sum())
        axis = grown + shift * axis
    return axis / max(float(np.sqrt((axis**2).sum())), _SLACK), value


def _majorized(found: Any, wanted: Any) -> Any:
    count = len(found)
    far = np.where(wanted > 0, wanted, 1.0)
    weights = np.where(wanted > 0, far**-2, 0.0)
    whole = weights.sum(axis=1)
    enough = wanted.mean() * _STILL * count
    for _ in range(min(max(_WORK // count, 30), 400)):
        moved = 0.0
        for node in range(count):
            away = found[node] - found
            length = np.maximum(np.sqrt((away**2).sum(axis=1)), _SLACK)
            pull = found + away * (wanted[node] / length)[:, None]
            place = (pull * weights[node][:, None]).sum(axis=0) / whole[node]
            moved += float(np.abs(place - found[node]).sum())
            found[node] = place
        if moved < enough:
            break
    return found


def _loosened(found: Any, sizes: Any) -> Any:
    """Scaled so that a share of the discs overlaps no other."""
    first, second, length = _near(found, sizes, 1.0)
    crowded = np.ones(len(found))
    factor = (sizes[first] + sizes[second]) / np.maximum(length, _SLACK)
    np.maximum.at(crowded, first, factor)
    np.maximum.at(crowded, second, factor)
    return found * float(np.sort(crowded)[int(_FREE * (len(found) - 1))])


def _apart(found: Any, sizes: Any) -> Any:
    for _ in range(_PUSHES):
        before = found
        found = _pushed(found, sizes)
        if found is before:
            break
    first, second, length = _near(found, sizes, 1.0)
    if not len(first):
        return found
    need = (sizes[first] + sizes[second]) / np.maximum(length, _SLACK)
    return found * float(need.max())


def _pushed(found: Any, sizes: Any) -> Any:
    """Some moves of discs that overlap; the same array if none does."""
    first, second, _ = _near(found, sizes, 1.3)
    need = sizes[first] + sizes[second]
    for turn in range(_SHARED):
        away = found[second] - found[first]
        length = np.maximum(np.sqrt((away**2).sum(axis=1)), _SLACK)
        missing = np.maximum(need - length, 0.0)
        if not (missing > _SLACK).any():
            break
        if not turn:
            found = found.copy()
        step = away * (missing * 0.51 / length)[:, None]
        np.add.at(found, second, step)
        np.add.at(found, first, -step)
    return found


def _beside(found: Any, sizes: Any, links: Any) -> Any:
    """Discs move away from links of others, and the links from them."""
    first, second = links[:, 0], links[:, 1]
    numbers = np.arange(len(found))[:, None]
    own = (numbers == first[None, :]) | (numbers == second[None, :])
    for _ in range(_ASIDE):
        start, along = found[first], found[second] - found[first]
        square = np.maximum((along**2).sum(axis=1), _SLACK)
        from_start = found[:, None, :] - start[None, :, :]
        part = np.clip((from_start * along[None, :, :]).sum(axis=2) / square[None, :], 0.0, 1.0)
        away = from_start - part[:, :, None] * along[None, :, :]
        length = np.maximum(np.sqrt((away**2).sum(axis=2)), _SLACK)
        missing = np.where(own, 0.0, np.maximum(sizes[:, None] - length, 0.0))
        if not (missing > _SLACK).any():
            break
        across = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.sqrt(square)[:, None]
        aside = np.where((length < 1e-3)[:, :, None], across[None, :, :], away / length[:, :, None])
        step = aside * (missing * 0.25)[:, :, None]
        found = found + step.sum(axis=1)
        np.add.at(found, first, -(step * (1 - part)[:, :, None]).sum(axis=0))
        np.add.at(found, second, -(step * part[:, :, None]).sum(axis=0))
        found = _pushed(found, sizes)
    return found


def _level(found: Any) -> Any:
    """Turned so that the longest way through it is from left to right."""
    xs, ys = (found - found.mean(axis=0)).T
    turn = 0.5 * np.arctan2(2 * (xs * ys).sum(), (xs**2 - ys**2).sum())
    cos, sin = np.cos(turn), np.sin(turn)
    return np.stack([xs * cos + ys * sin, ys * cos - xs * sin], axis=1)


def _near(found: Any, sizes: Any, reach: float) -> tuple[Any, Any, Any]:
    """Pairs that are nearer than their sizes times `reach`, with their distance."""
    xs, ys = found[:, 0], found[:, 1]
    length = np.hypot(xs[:, None] - xs[None, :], ys[:, None] - ys[None, :])
    first, second = np.nonzero(np.triu(length < (sizes[:, None] + sizes[None, :]) * reach, 1))
    return first, second, length[first, second]
