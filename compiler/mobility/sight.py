"""Which pairs of nodes reach each other, time by time: the file's word, range, rate and a body; and
which of them are linked.

Positions and squares of distances are exact integers, so nothing depends on the machine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from compiler.plan.parts.motion import Motion, Point


class Pair(NamedTuple):
    """Of nodes `a` < `b`. They sort by distance, and then as the file has them."""

    square: int  # of the distance in mm
    a: int
    b: int


def seen(motion: Motion, range_mm: int | None, body_mm: int | None) -> Iterator[list[Pair]]:
    """The pairs that reach each other, by time."""
    reaches = _reach(motion, range_mm)
    for step in range(len(motion.times)):
        found = _pairs(motion, step)
        if reaches is not None:
            found = [pair for pair in found if reaches(pair.square)]
        if body_mm is not None:
            at = [track[step] for track in motion.places]
            found = [pair for pair in found if not _hidden(at[pair.a], at[pair.b], body_mm)]
        yield found


def _reach(motion: Motion, range_mm: int | None) -> Callable[[int], bool] | None:
    """Whether a square of a distance is within the range and has a rate."""
    most = None if range_mm is None else range_mm**2
    if all(bps for _, bps, _ in motion.rates):
        return None if most is None else most.__ge__
    starts = [mm**2 for mm, _, _ in motion.rates]
    carries = [bool(bps) for _, bps, _ in motion.rates]

    def reaches(square: int) -> bool:
        within = most is None or square <= most
        return within and carries[bisect_right(starts, square) - 1]

    return reaches


def _pairs(motion: Motion, step: int) -> list[Pair]:
    at = [track[step] for track in motion.places]
    if motion.sights is not None:
        numbers = (divmod(number, len(at)) for number in sorted(motion.sights[step]))
        return [Pair(_square(at[a], at[b]), a, b) for a, b in numbers if at[a] and at[b]]
    found: list[Pair] = []
    for a, one in enumerate(at):
        if one is None:
            continue
        x, y, z = one
        found += [
            Pair((x - two[0]) ** 2 + (y - two[1]) ** 2 + (z - two[2]) ** 2, a, b)
            for b, two in enumerate(at[a + 1 :], a + 1)
            if two is not None
        ]
    return found


def _square(one: Point | None, two: Point | None) -> int:
    assert one is not None
    assert two is not None
    return sum((p - q) ** 2 for p, q in zip(one, two, strict=True))


def _hidden(one: Point | None, two: Point | None, body_mm: int) -> bool:
    """Whether the straight line between them comes nearer to the origin than so much."""
    assert one is not None
    assert two is not None
    (ax, ay, az), (bx, by, bz) = one, two
    dx, dy, dz = bx - ax, by - ay, bz - az
    along = -(ax * dx + ay * dy + az * dz)
    length = dx * dx + dy * dy + dz * dz
    own, most = ax * ax + ay * ay + az * az, body_mm * body_mm
    if along <= 0:
        return own < most
    if along >= length:
        return bx * bx + by * by + bz * bz < most
    return own * length - along * along < most * length


def by_distance(rows: Sequence[tuple[int, ...]], distance_mm: int) -> tuple[int, ...]:
    """The row that holds there."""
    return rows[bisect_right(rows, distance_mm, key=lambda row: row[0]) - 1]


# Who is linked where nodes have a few transceivers each: the nearest first (Algorithm 1).
#
# At each time, node by node as the file has them: links between nodes that still reach each other
# stay; for each transceiver that is free the node asks the nearest that it reaches and is not
# linked to, of equal ones the first of the file, until none is free. Who has none free refuses,
# and it asks the next.

Links = Mapping[tuple[int, int], int]  # squares of distances


def nearest(seen: Iterable[list[Pair]], nodes: int, transceivers: int | None) -> Iterator[Links]:
    """Who is linked, by time; without a number of transceivers all who reach each other."""
    links: Links = {}
    for pairs in seen:
        squares = {(pair.a, pair.b): pair.square for pair in pairs}
        links = squares if transceivers is None else _allocated(links, squares, nodes, transceivers)
        yield links


def _allocated(before: Links, squares: Links, nodes: int, transceivers: int) -> Links:
    links = {pair: squares[pair] for pair in before if pair in squares}
    used = Counter(node for pair in links for node in pair)
    reached: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for (a, b), square in squares.items():
        reached[a].append((square, b))
        reached[b].append((square, a))
    for node, others in enumerate(reached):
        if used[node] == transceivers:
            continue
        for square, other in sorted(others):
            pair = (node, other) if node < other else (other, node)
            if used[other] == transceivers or pair in links:
                continue
            links[pair] = square
            used.update(pair)
            if used[node] == transceivers:
                break
    return links
