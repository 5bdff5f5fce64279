"""Strongly connected components of a graph, by Tarjan's algorithm (1972) without recursion.

Input: nodes by number, and of each the nodes to which an edge leads. Output: the components of more
than one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence


def components(count: int, out: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    seen: dict[int, int] = {}
    low: dict[int, int] = {}
    closed: set[int] = set()
    stack: list[int] = []
    for root in range(count):
        if root in seen:
            continue
        trail: list[tuple[int, Iterable[int]]] = [(root, iter(out.get(root, ())))]
        while trail:
            node, ahead = trail[-1]
            if node not in seen:
                seen[node] = low[node] = len(seen)
                stack.append(node)
            for far in ahead:
                if far not in seen:
                    trail.append((far, iter(out.get(far, ()))))
                    break
                if far not in closed:
                    low[node] = min(low[node], seen[far])
            else:
                trail.pop()
                if trail:
                    low[trail[-1][0]] = min(low[trail[-1][0]], low[node])
                if low[node] == seen[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    closed.update(component)
                    if len(component) > 1:
                        yield component
