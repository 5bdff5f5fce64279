"""partition and heal: links between the sides go down, and come up again; of `partition a->b` in
the directions from a's side to b's.

The cut is found by compiler/expand/cut.py. Instances forward nothing, so those of no group keep all
their links, and so do their radios in an air; the radio of an instance is in its group. The cut is
one reason for a link to be down: links that are down for another reason at that moment get it too
when they would join two sides, so that nothing that comes up later opens a way between the groups
before `heal`. With `only=` the links stay up, and lose these packets.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.declare.steps import StatementStep
from compiler.expand import links
from compiler.expand.bystanders import cut_off
from compiler.expand.cut import assign
from compiler.expand.walk import Cut, Groups, Walk
from compiler.phrases import moment
from compiler.plan.types import Node, Topology
from tdl import ast, some_packets

KNOWN_CUTS = 64


def partition(walk: Walk, step: StatementStep) -> None:
    world = walk.world
    if not step.groups:  # an undeclared tag, reported
        walk.partitions.append((step.order, ()))
        return
    count = len(walk.topology.links)
    usable = bytes(world.usable(d) or world.usable(d + 1) for d in range(0, count, 2))
    cut, ahead, walk.cut_off[step.order], exact = _cut(walk, step.groups, usable)
    if not exact:
        message = f"the {len(step.groups)} groups may be cut apart with more links than it takes"
        hint = "at most twice as many: name more of the bridges in the groups"
        walk.warning(step, "TS0924", message, hint)
    action = step.statement.action
    assert isinstance(action, ast.Partition)
    directions = (
        tuple(ahead) if action.one_way else tuple(d for i in cut for d in (2 * i, 2 * i + 1))
    )
    if not any(world.usable(d) for d in directions) and not walk.model.declared.broken:
        ways = "from the first group to the second" if action.one_way else "between the groups"
        message = f"nothing is cut: there is no way {ways} at {moment(world.now)}"
        walk.warning(step, "TS0911", message)
    if action.only is not None:
        _lose(walk, step, action.only, directions)
    else:
        for direction in directions:
            world.block(direction)
        walk.partitions.append((step.order, directions))
    if step.end_ns is not None:
        walk.later(step.end_ns, step, lambda walk: _end(walk, step), closing=True)


def _end(walk: Walk, step: StatementStep) -> None:
    """Of an interval: this partition ends, unless a `heal` has ended it."""
    mine = [one for one in walk.partitions if one[0] == step.order]
    some = [one for one in walk.class_cuts if one[0] == step.order]
    if not mine and not some:
        message = f"a heal has ended it before {moment(walk.world.now)}"
        walk.warning(step, "TS0912", message, "leave the heal out, or write 'at T partition'")
    for order, directions in mine:
        walk.partitions.remove((order, directions))
        for direction in sorted(directions):
            walk.world.unblock(direction, order)
    for order, cut, directions in some:
        walk.class_cuts.remove((order, cut, directions))
        links.set_back(walk, step, cut, directions, order)


def _lose(walk: Walk, step: StatementStep, only: ast.Only, directions: tuple[int, ...]) -> None:
    """All of these packets, on links that stay as they are."""
    cut = some_packets.cut("partition", step.statement.span, only)
    chosen = [(direction,) for direction in directions]
    after = links.changed_links(walk, step, cut, chosen, f"at {moment(walk.world.now)}")
    if after and not links.hold(walk, step, cut, after, lasts=True):
        links.nothing_changes(walk, step)
    walk.class_cuts.append((step.order, cut, tuple(after)))


def _cut(walk: Walk, groups: Groups, usable: bytes) -> Cut:
    """The pairs of links between the sides, and who else loses somebody by them.

    The same question gets the answer it got before.
    """
    if (groups, usable) not in walk.cuts:
        if len(walk.cuts) >= KNOWN_CUTS:
            walk.cuts.clear()
        topology = walk.topology
        edges = [(link.src, link.dst) for link in topology.links[::2]]
        sides = _with_radios(topology, edges, groups)
        named = {node for group in sides for node in group}
        ways = [
            (i, ends)
            for i, ends in enumerate(edges)
            if all(node in named or _forwards(topology.nodes[node]) for node in ends)
        ]
        # One usable link counts more than all unusable ones together.
        weights = [len(edges) + 1 if usable[i] else 1 for i, _ in ways]
        side, exact = assign(len(topology.nodes), [ends for _, ends in ways], weights, sides)
        cut = [i for i, (a, b) in ways if side[a] != side[b]]
        ahead = [2 * i if side[edges[i][0]] == 0 else 2 * i + 1 for i in cut]
        others = cut_off(topology, usable, cut, groups)
        walk.cuts[groups, usable] = cut, ahead, others, exact
    return walk.cuts[groups, usable]


def _forwards(node: Node) -> bool:
    return node.service < 0 and not node.air


def _with_radios(
    topology: Topology, edges: Sequence[tuple[int, int]], groups: Groups
) -> list[tuple[int, ...]]:
    """The groups, each with the radios of its instances."""
    nodes, radios = topology.nodes, dict[int, list[int]]()
    for a, b in edges:
        if nodes[b].air and not nodes[a].air:  # as links at an air are written
            radios.setdefault(a, []).append(b)
    return [
        tuple(dict.fromkeys((*group, *(one for node in group for one in radios.get(node, ())))))
        for group in groups
    ]


def heal(walk: Walk, step: StatementStep) -> None:
    """Undoes all partitions in force."""
    if not (walk.partitions or walk.class_cuts):
        if not _partition_failed(walk, step):
            message = f"nothing is partitioned at {moment(walk.world.now)}"
            walk.sink.error("TS0306", step.statement.span, message, "put a `partition` before it")
        return
    for direction, by in sorted((d, by) for by, cut in walk.partitions for d in cut):
        walk.world.unblock(direction, by)
    walk.partitions.clear()
    for by, cut, directions in reversed(walk.class_cuts):
        links.set_back(walk, step, cut, directions, by)
    walk.class_cuts.clear()


def _partition_failed(walk: Walk, step: StatementStep) -> bool:
    """An earlier partition was left out because of an error of its own."""
    failed = walk.failed_partition_ns
    return failed is not None and failed <= step.statement.start_ns
