"""partition and heal: links between the sides go down, and come up again.

The cut is found by compiler/sides.py. It is one reason for a link to be down: links that are down
for another reason at that moment get it too when they would join two sides, so that nothing that
comes up later opens a way between the groups before `heal`.
"""

from __future__ import annotations

from compiler.say import moment
from compiler.sides import assign
from compiler.steps import Step
from compiler.walk import Walk
from tdl import ast


def partition(walk: Walk, step: Step) -> None:
    world = walk.world
    if not step.groups:  # an undeclared tag, reported
        walk.partitions.append(())
        return
    links = walk.topology.links
    edges, weights = [], []
    heavy = len(links) + 1  # one usable link counts more than all unusable ones together
    for there in range(0, len(links), 2):
        edges.append((links[there].src, links[there].dst))
        usable = world.usable(there) or world.usable(there + 1)
        weights.append(heavy if usable else 1)
    side = assign(len(world.names), edges, weights, step.groups)
    cut = [i for i, (a, b) in enumerate(edges) if side[a] != side[b]]
    if not any(weights[i] == heavy for i in cut) and not walk.model.declared.broken:
        message = f"nothing is cut: there is no way between the groups at {moment(world.now)}"
        walk.warning(step, "TS0911", message)
    directions = tuple(d for i in cut for d in (2 * i, 2 * i + 1))
    for direction in directions:
        world.block(direction)
    walk.partitions.append(directions)


def heal(walk: Walk, step: Step) -> None:
    """Undoes all partitions in force."""
    if not walk.partitions:
        if not _partition_failed(walk, step):
            message = f"nothing is partitioned at {moment(walk.world.now)}"
            walk.sink.error("TS0306", step.statement.span, message, "put a `partition` before it")
        return
    for direction in sorted(d for cut in walk.partitions for d in cut):
        walk.world.unblock(direction)
    walk.partitions.clear()


def _partition_failed(walk: Walk, step: Step) -> bool:
    """An earlier partition was left out because of an error of its own."""
    made = sum(isinstance(s.statement.action, ast.Partition) for s in walk.model.steps)
    written = [d for d in walk.model.declared.dynamics if isinstance(d.action, ast.Partition)]
    early = any(d.start_ns <= step.statement.start_ns for d in written)
    return early and made < len(written)
