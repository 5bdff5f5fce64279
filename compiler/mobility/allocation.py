"""Who is linked where nodes have a few transceivers each: the nearest first (Algorithm 1).

At each time, node by node as the file has them: links between nodes that still reach each other
stay; for each transceiver that is free the node asks the nearest that it reaches and is not linked
to, of equal ones the first of the file, until none is free. Who has none free refuses, and it asks
the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compiler.mobility.sight import Pair

Links = Mapping[tuple[int, int], int]  # squares of distances


def nearest(seen: Iterable[list[Pair]], nodes: int, transceivers: int | None) -> Iterator[Links]:
    """Who is linked, by time; without a number of transceivers all who reach each other."""
    links: Links = {}
    for pairs in seen:
        squares = {(pair.a, pair.b): pair.square for pair in pairs}
        links = squares if transceivers is None else _step(links, squares, nodes, transceivers)
        yield links


def _step(before: Links, squares: Links, nodes: int, transceivers: int) -> Links:
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
