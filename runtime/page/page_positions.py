"""Where nodes that move are over time, for the page: of each at most MOST_POINTS positions, and of
all together MOST_PLACES.

Input: the plan. Output: the nodes, times in ns from 0 on and for each time a position of each node
in m, `null` where it is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.plan.parts import motion
from compiler.plan.reader import Plan

MOST_POINTS, MOST_PLACES = 2_000, 100_000
MM = 1000


def positions(plan: Plan, drawn: Sequence[int]) -> dict[str, Any] | None:
    """None where nothing moves. `drawn`: which of the page's nodes each node of the plan is."""
    if not plan.topology.mobility:
        return None
    (moving,) = plan.topology.mobility
    found = motion.decode(plan.attached.motions[moving.digest])
    most = max(min(MOST_POINTS, MOST_PLACES // len(found.places)), 1)
    every = -(-len(found.times) // most)
    steps = range(0, len(found.times), every)
    return {
        "nodes": [drawn[node] for node in moving.nodes],
        "times": [found.times[step] for step in steps],
        "places": [
            [None if track[step] is None else _metres(track[step]) for track in found.places]
            for step in steps
        ],
    }


def _metres(place: motion.Point | None) -> list[int]:
    return [round(axis / MM) for axis in place or ()]
