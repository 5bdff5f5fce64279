"""Algorithm 1 of the paper on limited transceivers, request by request, for tests."""

from __future__ import annotations

from compiler.plan.parts.motion import Point


def square_apart(one: Point, two: Point) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, two, strict=True))


class Radios:
    """Algorithm 1 of the paper, request by request."""

    def __init__(self, nodes: int, count: int) -> None:
        self.radios: list[list[int | None]] = [[None] * count for _ in range(nodes)]

    def request(self, source: int, dest: int, radio: int, visible: set[tuple[int, int]]) -> str:
        if self.radios[source][radio] is not None:
            return "busy"
        if (min(source, dest), max(source, dest)) not in visible:
            return "not visible"
        if dest in self.radios[source]:
            return "exists"
        free = [m for m, other in enumerate(self.radios[dest]) if other is None]
        if not free:
            return "no free radio"
        self.radios[source][radio], self.radios[dest][free[0]] = dest, source
        return ""

    def lose(self, visible: set[tuple[int, int]]) -> None:
        for node, radios in enumerate(self.radios):
            for number, other in enumerate(radios):
                if other is not None and (min(node, other), max(node, other)) not in visible:
                    radios[number] = None

    def step(self, visible: set[tuple[int, int]], at: list[Point]) -> set[tuple[int, int]]:
        self.lose(visible)
        for node, radios in enumerate(self.radios):
            others = [other for other in range(len(at)) if other != node]
            others.sort(key=lambda other: (square_apart(at[node], at[other]), other))
            for number in range(len(radios)):
                for other in others:
                    if self.request(node, other, number, visible) in ("", "busy"):
                        break
        return {
            (node, other)
            for node, radios in enumerate(self.radios)
            for other in radios
            if other is not None and node < other
        }
