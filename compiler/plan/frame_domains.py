"""Between which end points programs decide the way: those with routers between them.

What hears each other, over links, bridges and lans, is one domain. An end point that carries frames
ends it: packets go on into another domain where a router's programs send them, of which a plan
knows nothing. So it has paths within domains only. Links that programs ask for join nothing, since
programs decide when they are up. Linear in nodes and links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.plan.parts.led_links import led_links
from compiler.plan.types import Node, Topology


class FrameDomains:
    """`domain`: of each node, by the lowest node in it; `any`: whether anything carries frames."""

    def __init__(self, nodes: Sequence[Node], ends: Iterable[tuple[int, int]]) -> None:
        self.domain = list(range(len(nodes)))
        for src, dst in ends:
            low, high = sorted((self._root(src), self._root(dst)))
            self.domain[high] = low
        self.domain = [self._root(node) for node in range(len(nodes))]
        self._with_frames = {self.domain[at] for at, node in enumerate(nodes) if node.frames}

    @classmethod
    def of(cls, topology: Topology) -> FrameDomains:
        led = led_links(topology)
        links = enumerate(topology.links)
        return cls(topology.nodes, ((one.src, one.dst) for at, one in links if at not in led))

    def _root(self, node: int) -> int:
        while self.domain[node] != node:
            self.domain[node] = self.domain[self.domain[node]]
            node = self.domain[node]
        return node

    @property
    def any(self) -> bool:
        return bool(self._with_frames)

    def by_programs(self, src: int, dst: int) -> bool:
        """Whether only routers lead from one to the other."""
        here, there = self.domain[src], self.domain[dst]
        return here != there and here in self._with_frames and there in self._with_frames

    def pairs_by_programs(self, ends: Sequence[int]) -> int:
        """How many ordered pairs of these there are."""
        counts: dict[int, int] = {}
        for end in ends:
            if self.domain[end] in self._with_frames:
                counts[self.domain[end]] = counts.get(self.domain[end], 0) + 1
        return sum(counts.values()) ** 2 - sum(count**2 for count in counts.values())
