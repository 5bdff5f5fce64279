"""Algorithm 1 of the paper on limited transceivers, request by request; and whom pings should have
reached in a run whose programs ask for links and find ways (examples/satellites/mesh).

Such a run's `sat.N.gnab.0` logs `TIME N asked` (of time.monotonic()), and `TIME N … ms` for an
answer, TIME being when it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


WAY_NS = 500_000_000  # there and back


def changes(run: Path) -> Iterator[tuple[int, frozenset[int], bool]]:
    """When which two were linked, or were no more, as the run's own events say."""
    for line in (run / "events.jsonl").read_text().splitlines():
        one = json.loads(line)
        if one["kind"] == "radio":
            ends = frozenset(int(name.split(".")[1]) for name in one["target"].split("--"))
            yield one["applied_ns"], ends, bool(one["args"]["up"])


def joined(links: set[frozenset[int]], source: int, dest: int) -> bool:
    seen, ahead = {source}, [source]
    for node in ahead:
        fresh = {end for link in links if node in link for end in link} - seen
        seen |= fresh
        ahead += fresh
    return dest in seen


class Ping(NamedTuple):
    """`after_ns`: since the last change of a link, `lost`: whether a link ended then; `before_ns`:
    until the next change. `way`: whether links joined the two."""

    at_ns: int
    way: bool
    answered: bool
    after_ns: int
    before_ns: int
    lost: bool


def pings(run: Path, nodes: int, end_ns: int) -> Iterator[Ping]:
    start_ns = json.loads((run / "manifest.json").read_text())["start_monotonic_ns"]
    known = list(changes(run))
    for source in range(nodes):
        for (at, dest), answered in _asked(run, source).items():
            at_ns = round(float(at) * 1e9) - start_ns
            if not 0 < at_ns < end_ns - WAY_NS:
                continue
            links: set[frozenset[int]] = set()
            past = [one for one in known if one[0] < at_ns]
            for _, ends, up in past:
                (links.add if up else links.discard)(ends)
            last_ns = past[-1][0] if past else 0
            lost = any(when == last_ns and not up for when, _, up in past)
            next_ns = min((when for when, _, _ in known if when >= at_ns), default=end_ns)
            way = joined(links, source, dest)
            yield Ping(at_ns, way, answered, at_ns - last_ns, next_ns - at_ns, lost)


def _asked(run: Path, source: int) -> dict[tuple[str, int], bool]:
    """By when it was asked and whom, whether there was an answer."""
    found: dict[tuple[str, int], bool] = {}
    for line in (run / f"logs/sat.{source}.gnab.0.log").read_text().splitlines():
        at, dest, *words = line.split()
        if dest.isdecimal():  # else it is a daemon's
            found[at, int(dest)] = words[-1] == "ms"
    return found


def judged(run: Path, nodes: int, end_ns: int, calm_ns: int) -> tuple[list[int], int]:
    """Of pairs that are joined, and that are not: how many pings had an answer, and had none; and
    how many were too near to a change to count."""
    counts, near = [0, 0, 0, 0], 0
    for one in pings(run, nodes, end_ns):
        if one.after_ns <= calm_ns or one.before_ns <= WAY_NS:
            near += 1
        else:
            counts[2 * (not one.way) + (not one.answered)] += 1
    return counts, near


def outages_ns(run: Path, nodes: int, end_ns: int) -> list[int]:
    """For each moment at which links ended: for how long from then on, until the next change,
    a ping had no answer though links joined the two."""
    found: dict[int, int] = {}
    for one in pings(run, nodes, end_ns):
        if one.lost:
            began_ns = one.at_ns - one.after_ns
            silent = one.way and not one.answered and one.before_ns > WAY_NS
            found[began_ns] = max(found.get(began_ns, 0), one.after_ns if silent else 0)
    return sorted(found.values())
