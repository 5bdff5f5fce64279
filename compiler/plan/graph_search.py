"""What several rooms ask of graphs whose nodes are numbers: strongly connected components, by
Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972) without recursion; and the
easiest way between two nodes, by Dijkstra's. Both are linear in edges, but for Dijkstra's heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

Key = tuple[Any, ...]  # how hard a way is, then what decides between ways that are as hard
Ahead = Callable[[int, Key, int], Iterable[tuple[Key, int, int]]]


def components(nodes: Iterable[int], ahead: Callable[[int], Iterable[int]]) -> Iterator[list[int]]:
    """All that can be reached from `nodes`, in reverse topological order: edges lead to the same or
    to an earlier component. `ahead`: where edges lead from a node."""
    seen: dict[int, int] = {}  # order of the first visit
    low: dict[int, int] = {}
    closed: set[int] = set()
    stack: list[int] = []
    for root in nodes:
        if root in seen:
            continue
        trail = [(root, iter(ahead(root)))]
        while trail:
            node, further = trail[-1]
            if node not in seen:
                seen[node] = low[node] = len(seen)
                stack.append(node)
            for far in further:
                if far not in seen:
                    trail.append((far, iter(ahead(far))))
                    break
                if far not in closed and seen[far] < low[node]:
                    low[node] = seen[far]
            else:
                trail.pop()
                if trail and low[node] < low[trail[-1][0]]:
                    low[trail[-1][0]] = low[node]
                if low[node] == seen[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    closed.update(component)
                    yield component


def easiest_way(src: int, dst: int, start: Key, ahead: Ahead) -> list[tuple[int, int]] | None:
    """The edges and the nodes they lead to, in order; None if there is no way. `start`: the key of
    `src`. `ahead`: of a node, its key and the edge by which it was reached (-1 for `src`), what can
    be reached next: the key of that way, the node, the edge."""
    best = {src: start}
    came: dict[int, tuple[int, int]] = {}  # the edge, and where it begins
    heap = [(*start, src, -1, -1)]
    while heap:
        *key, node, edge, before = heappop(heap)
        if node in came:
            continue
        came[node] = edge, before
        if node == dst:
            break
        for more, far, out in ahead(node, tuple(key), edge):
            if far not in came and (far not in best or more < best[far]):
                best[far] = more
                heappush(heap, (*more, far, out, node))
    if dst not in came:
        return None
    way = []
    while node != src:
        edge, before = came[node]
        way.append((edge, node))
        node = before
    return way[::-1]
