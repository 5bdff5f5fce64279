"""All ways that flows between two nodes are shared out over, one by one: fat trees have many.

Input: the links by which packets leave each node. Output: ways, ordered as these links are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compiler.plan.format import ROUTES, PlanError
from compiler.plan.types import Link


def equal_ways(
    start: int,
    end: int,
    leads: Callable[[int], Sequence[int]],
    links: Sequence[Link],
    whose: str,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields how few of the flows take a way, one in so many, and its links. Raises PlanError, in
    the name of `whose` routes they are, for a circle."""
    todo: list[tuple[int, int, tuple[int, ...]]] = [(start, 1, ())]
    while todo:
        node, one_in, way = todo.pop()
        if node == end:
            yield one_in, way
            continue
        if node in [start, *(links[one].dst for one in way)][:-1]:
            raise PlanError(ROUTES, f"{whose} routes in a circle at node {node}")
        equal = leads(node)
        for link in reversed(equal):
            todo.append((links[link].dst, one_in * len(equal), (*way, link)))
