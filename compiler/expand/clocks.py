"""set clock, set drift: how far the real-time clocks of instances are off the run's.

A clock says `run's time + offset + drift * (run's time - since)`, in whole ns, rounded down.
"""

from __future__ import annotations

from compiler.declare.steps import StatementStep
from compiler.expand.host_layers import HostLayers
from compiler.expand.targets import Verb
from compiler.expand.walk import Walk
from compiler.expand.world import EVERY_STATE, HostClock
from compiler.plan.format import MAX_INT
from tdl import ast

SET_CLOCK = Verb("set clock", EVERY_STATE, 0, "there")


def set_clock(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.SetClock)
    nodes = sorted(walk.targets(step, SET_CLOCK, drawn=False).nodes)
    layers = HostLayers(walk, world.clocks, world.set_clocks, "clock")
    for node in nodes:
        clock = _changed(world.clock(node), action, world.now, step.order)
        if abs(clock.offset_ns) > MAX_INT:
            message = f"with this the clock of {world.names[node]!r} is off by more than 292 years"
            walk.error(step, "TS0261", message, "lower the steps")
            return
        layers.put(step, node, clock)
    layers.end_with(step, nodes)


def _changed(before: HostClock, action: ast.SetClock, now_ns: int, order: int) -> HostClock:
    offset_ns = before.offset_at(now_ns)
    if action.offset_ns is not None:
        offset_ns = {
            ast.Op.ADD: offset_ns + action.offset_ns,
            ast.Op.SUB: offset_ns - action.offset_ns,
        }.get(action.op, action.offset_ns)
    drift_ppb = before.drift_ppb if action.drift_ppb is None else action.drift_ppb
    return HostClock(offset_ns, drift_ppb, now_ns, order)
