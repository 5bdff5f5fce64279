"""Links between nodes that move: all down at first, then up and down as they reach each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compiler.declare.steps import StatementStep
from compiler.expand.walk import Walk
from compiler.plan.types import direction_name
from tdl import ast


def move(walk: Walk, step: StatementStep) -> None:
    """Where nodes are is one reason for a link to be down; where there are others, it stays so."""
    action = step.statement.action
    assert isinstance(action, ast.Move)
    numbers = {name: number for number, name in enumerate(walk.world.link_names)}
    ways = [
        [numbers[name] for name in (direction_name(a, b), direction_name(b, a)) if name in numbers]
        for a, b in action.links
    ]
    first = [up for at, up, _ in action.changes if not at]
    at_first = {link for up in first for link in up}
    _change(walk, step, (), [way for i, way in enumerate(ways) if i not in at_first])
    for at_ns, up, down in action.changes:
        if at_ns and (walk.quit_ns is None or at_ns < walk.quit_ns):
            chosen = [ways[link] for link in up], [ways[link] for link in down]
            walk.later(at_ns, step, partial(_change, walk, step, *chosen))


def _change(
    walk: Walk, step: StatementStep, up: Sequence[list[int]], down: Sequence[list[int]]
) -> None:
    for way in up:
        for direction in way:
            walk.world.unblock(direction, step.order)
    for way in down:
        for direction in way:
            walk.world.block(direction)
