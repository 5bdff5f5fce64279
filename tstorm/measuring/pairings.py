"""Which pairs of hosts are measured at once: none of a round have a host in common.

A 1-factorisation of the complete graph by the circle method (Kirkman 1847): one place stays, the
others turn by one a round. n hosts take n - 1 rounds; with an odd number there is an empty place,
whose partner waits, and it takes n.
"""

from __future__ import annotations

from collections.abc import Iterator


def rounds(count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Each pair (a < b) of 0 to count - 1 once."""
    places = count + count % 2
    turning = list(range(1, places))
    for _ in range(places - 1):
        circle = [0, *turning]
        pairs = zip(circle[: places // 2], reversed(circle), strict=False)
        yield tuple(sorted((min(a, b), max(a, b)) for a, b in pairs if max(a, b) < count))
        turning.insert(0, turning.pop())
