"""set clock, set drift: how far the real-time clocks of instances are off the run's.

A clock says `run's time + offset + drift * (run's time - since)`, in whole ns, rounded down. It is
its host's: it goes on while no program runs there, and who joins again finds it as it is. What an
interval makes of it lies above what was there before, and is taken away at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.declare.steps import StatementStep
from compiler.expand.targets import Verb
from compiler.expand.walk import Walk
from compiler.expand.world import EVERY_STATE, HostClock
from compiler.phrases import moment
from compiler.plan.format import MAX_INT
from tdl import ast

SET_CLOCK = Verb("set clock", EVERY_STATE, 0, "there")


def set_clock(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.SetClock)
    nodes = sorted(walk.targets(step, SET_CLOCK, drawn=False).nodes)
    for node in nodes:
        clock = _changed(world.clock(node), action, world.now, step.order)
        if abs(clock.offset_ns) > MAX_INT:
            message = f"with this the clock of {world.names[node]!r} is off by more than 292 years"
            walk.error(step, "TS0261", message, "lower the steps")
            return
        below = world.clocks.get(node, []) if step.end_ns is not None else []
        world.set_clocks(node, [*below, clock])
    if nodes and step.end_ns is not None:
        walk.later(step.end_ns, step, lambda: _set_back(walk, step, nodes), closing=True)


def _changed(before: HostClock, action: ast.SetClock, now_ns: int, order: int) -> HostClock:
    offset_ns = before.offset_at(now_ns)
    if action.offset_ns is not None:
        offset_ns = {
            ast.Op.ADD: offset_ns + action.offset_ns,
            ast.Op.SUB: offset_ns - action.offset_ns,
        }.get(action.op, action.offset_ns)
    drift_ppb = before.drift_ppb if action.drift_ppb is None else action.drift_ppb
    return HostClock(offset_ns, drift_ppb, now_ns, order)


def _set_back(walk: Walk, step: StatementStep, nodes: Sequence[int]) -> None:
    world = walk.world
    for node in nodes:
        layers = world.clocks[node]
        others = [one for one in layers if one.order != step.order]
        if len(others) == len(layers):
            what = f"the clock of {world.names[node]!r} was set again by another statement"
            message = f"{what}, so it is not set back at {moment(world.now)}"
            walk.warning(step, "TS0912", message, "check what happens to it in the meantime")
        elif layers[-1].order != step.order:
            world.clocks[node] = others  # an interval that began later goes on
        else:
            world.set_clocks(node, others)
