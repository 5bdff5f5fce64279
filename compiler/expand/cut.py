"""Which side of a partition every node is on, so that the fewest links are cut.

Input: an undirected graph with weights, and groups of nodes that must be apart. Output: a side for
every node (-1: it cannot reach any group). Nodes of no group go where the cut is smallest:

1. Nodes of no group with a single neighbour go with it (cutting their link never helps).
2. Two groups: a minimum cut (exact). Of all minimum cuts, the one nearest to the second group, so
   that ties go to the group written first.
3. More groups: for each group in turn, the minimum cut between it and all others; its side of the
   cut is in some minimum multiway cut (Dahlhaus et al., The Complexity of Multiterminal Cuts, 1994,
   lemma 3), so it is settled. What no group has claimed falls into parts without a link between
   them. Each is tried out in full where that is at most TRIALS assignments (exact), else it starts
   with the group of the costliest cut and single nodes move while that helps (at most twice the
   minimum).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from compiler.expand.mincut import Graph, far_side

TRIALS = 20_000


def assign(
    nodes: int,
    edges: Sequence[tuple[int, int]],
    weights: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> tuple[list[int], bool]:
    """The side of each node in 0..nodes-1, and whether no cut is smaller for certain.

    Groups are disjoint and not empty.
    """
    side = [-1] * nodes
    for number, group in enumerate(groups):
        for node in group:
            side[node] = number
    graph: Graph = [{} for _ in range(nodes)]
    for (a, b), weight in zip(edges, weights, strict=True):
        graph[a][b] = graph[a].get(b, 0) + weight
        graph[b][a] = graph[b].get(a, 0) + weight
    leaves = _strip(graph, side)
    costs = _claim(graph, side, len(groups))
    rest = _undecided(graph, side, leaves)
    exact = True
    for part in _parts(graph, rest):
        if len(groups) ** len(part) <= TRIALS:
            _try_all(graph, side, part, len(groups))
        else:
            _improve(graph, side, part, costs)
            exact = False
    for leaf, neighbour in reversed(leaves):
        side[leaf] = side[neighbour]
    return side, exact


def _strip(graph: Graph, side: Sequence[int]) -> list[tuple[int, int]]:
    """Removes unnamed nodes with one neighbour, repeatedly; returns (node, neighbour) in order."""
    found: list[tuple[int, int]] = []
    waiting = [node for node in range(len(graph)) if side[node] < 0 and len(graph[node]) == 1]
    for node in waiting:  # grows while it is read
        if len(graph[node]) != 1:
            continue
        neighbour = next(iter(graph[node]))
        found.append((node, neighbour))
        del graph[neighbour][node]
        graph[node].clear()
        if side[neighbour] < 0 and len(graph[neighbour]) == 1:
            waiting.append(neighbour)
    return found


def _claim(graph: Graph, side: list[int], groups: int) -> list[int]:
    """Gives each group its side of the cut to all others; returns the weights of these cuts."""
    costs = []
    for group in range(groups):
        own = [node for node, at in enumerate(side) if at == group]
        others = [node for node, at in enumerate(side) if at >= 0 and at != group]
        cost, far = far_side(graph, own, others)
        costs.append(cost)
        reached = _reachable(graph, own, far)
        for node in reached:
            if side[node] < 0:
                side[node] = group
    return costs


def _reachable(graph: Graph, start: Sequence[int], barred: set[int]) -> list[int]:
    seen = dict.fromkeys(start)
    queue = list(start)
    for node in queue:  # grows while it is read
        for other in graph[node]:
            if other not in seen and other not in barred:
                seen[other] = None
                queue.append(other)
    return queue


def _undecided(graph: Graph, side: Sequence[int], leaves: Sequence[tuple[int, int]]) -> list[int]:
    """Nodes without a side that some group can reach, ascending."""
    hanging = {leaf for leaf, _ in leaves}
    decided = [node for node, at in enumerate(side) if at >= 0]
    reached = _reachable(graph, decided, set())
    return sorted(node for node in reached if side[node] < 0 and node not in hanging)


def _parts(graph: Graph, rest: Sequence[int]) -> list[list[int]]:
    """`rest` by what hangs together within it, each ascending."""
    left, found = dict.fromkeys(rest), []
    barred = set(range(len(graph))) - set(rest)
    while left:
        part = sorted(_reachable(graph, [next(iter(left))], barred))
        found.append(part)
        for node in part:
            del left[node]
    return found


def _try_all(graph: Graph, side: list[int], rest: Sequence[int], groups: int) -> None:
    """The cheapest assignment; of equal ones the first, earlier groups and nodes first."""
    free = set(rest)
    best: tuple[int, tuple[int, ...]] | None = None
    for choice in product(range(groups), repeat=len(rest)):
        for node, at in zip(rest, choice, strict=True):
            side[node] = at
        # Links between two free nodes are met twice, so the others count twice too.
        cost = sum(
            weight if other in free else 2 * weight
            for node in rest
            for other, weight in graph[node].items()
            if side[other] != side[node]
        )
        if best is None or cost < best[0]:
            best = (cost, choice)
    assert best is not None
    for node, at in zip(rest, best[1], strict=True):
        side[node] = at


def _improve(graph: Graph, side: list[int], rest: Sequence[int], costs: Sequence[int]) -> None:
    """All to the costliest group, then single moves that strictly help, until none does."""
    costliest = max(range(len(costs)), key=lambda group: (costs[group], -group))
    for node in rest:
        side[node] = costliest
    moved = True
    while moved:
        moved = False
        for node in rest:
            pull = [0] * len(costs)
            for other, weight in graph[node].items():
                pull[side[other]] += weight
            best = max(range(len(costs)), key=lambda group: (pull[group], -group))
            if pull[best] > pull[side[node]]:
                side[node] = best
                moved = True
