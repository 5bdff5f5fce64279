"""Minimum cut between two sets of nodes of an undirected weighted graph (Dinic's algorithm).

Deterministic: the cut that is returned is the one nearest to the sinks, which is the same for every
maximum flow.
"""

from __future__ import annotations

from collections.abc import Sequence

Graph = list[dict[int, int]]  # node -> neighbour -> weight, symmetric


class _Flow:
    """Edges 2e and 2e+1 are each other's reverse."""

    def __init__(self, graph: Graph, sources: Sequence[int], sinks: Sequence[int]) -> None:
        self.source, self.sink = len(graph), len(graph) + 1
        self.out: list[list[int]] = [[] for _ in range(len(graph) + 2)]
        self.to: list[int] = []
        self.room: list[int] = []
        total = 1
        for node, neighbours in enumerate(graph):
            for other, weight in neighbours.items():
                if node < other:
                    self._edge(node, other, weight, weight)
                    total += weight
        for node in sources:
            self._edge(self.source, node, total, 0)
        for node in sinks:
            self._edge(node, self.sink, total, 0)

    def _edge(self, a: int, b: int, there: int, back: int) -> None:
        for start, end, room in ((a, b, there), (b, a, back)):
            self.out[start].append(len(self.to))
            self.to.append(end)
            self.room.append(room)

    def run(self) -> int:
        """Fills the network; returns the flow."""
        flow = 0
        while True:
            level = self._levels()
            if level[self.sink] < 0:
                return flow
            place = [0] * len(self.out)
            while pushed := self._push(level, place):
                flow += pushed

    def _levels(self) -> list[int]:
        level = [-1] * len(self.out)
        level[self.source] = 0
        queue = [self.source]
        for node in queue:  # grows while it is read
            for edge in self.out[node]:
                if self.room[edge] and level[self.to[edge]] < 0:
                    level[self.to[edge]] = level[node] + 1
                    queue.append(self.to[edge])
        return level

    def _push(self, level: Sequence[int], place: list[int]) -> int:
        """One augmenting path along the levels, without recursion; 0 if there is none."""
        path: list[int] = []
        node = self.source
        while node != self.sink:
            edges = self.out[node]
            while place[node] < len(edges):
                edge = edges[place[node]]
                if self.room[edge] and level[self.to[edge]] == level[node] + 1:
                    break
                place[node] += 1
            if place[node] < len(edges):
                path.append(edges[place[node]])
                node = self.to[path[-1]]
            elif path:
                node = self.to[path.pop() ^ 1]
                place[node] += 1
            else:
                return 0
        pushed = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= pushed
            self.room[edge ^ 1] += pushed
        return pushed

    def reaches_sink(self) -> set[int]:
        """The nodes from which more could flow to the sink."""
        seen = {self.sink}
        queue = [self.sink]
        for node in queue:  # grows while it is read
            for edge in self.out[node]:
                other = self.to[edge]
                if self.room[edge ^ 1] and other not in seen:
                    seen.add(other)
                    queue.append(other)
        return seen


def far_side(graph: Graph, sources: Sequence[int], sinks: Sequence[int]) -> tuple[int, set[int]]:
    """The weight of a minimum cut, and the smallest set with the sinks that it cuts off."""
    flow = _Flow(graph, sources, sinks)
    weight = flow.run()
    return weight, flow.reaches_sink() - {flow.source, flow.sink}
