"""leave, with what it means of links and bridges in an interval: they are down for all of it.

Which ones is decided at T1, as at an instant; at T2 those come back that no other statement has
touched in this respect. Everything else about leave is in members.py.
"""

from __future__ import annotations

from compiler.declare.steps import StatementStep
from compiler.expand import members
from compiler.expand.targets import LEAVE
from compiler.expand.walk import Walk
from compiler.expand.world import UP
from compiler.phrases import moment


def leave(walk: Walk, step: StatementStep) -> None:
    if not step.outage:
        members.leave(walk, step)
        return
    world = walk.world
    targets = members.now_possible(walk, step, LEAVE)
    bridges = targets.apply(members.pick(walk, step, targets), "leave")
    links = [[d for d in link if world.left_by.get(d) == step.order] for link in targets.links]
    for bridge in bridges:
        world.held_by["leave"][bridge] = step.order
    assert step.end_ns is not None
    if bridges or any(links):
        walk.later(step.end_ns, step, lambda walk: _end(walk, step, bridges, links), closing=True)


def _end(walk: Walk, step: StatementStep, bridges: list[int], links: list[list[int]]) -> None:
    world = walk.world
    for bridge in bridges:
        if world.held_by["leave"].get(bridge) == step.order:
            world.bring(bridge)
        else:
            _kept(walk, step, world.names[bridge], back=world.nodes[bridge] == UP)
    for link in links:
        for direction in sorted(link):
            if world.left_by.get(direction) == step.order:
                world.rejoin(direction)
            else:
                name, back = world.link_names[direction], not world.left[direction]
                _kept(walk, step, name, back=back)


def _kept(walk: Walk, step: StatementStep, name: str, *, back: bool) -> None:
    now = moment(walk.world.now)
    what = "is back already" if back else "has left again by another statement"
    message = f"{name!r} {what} at {now}, so it does not come back by this one"
    walk.warning(step, "TS0912", message, "check what happens to it in the meantime")
