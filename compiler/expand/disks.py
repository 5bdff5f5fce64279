"""set disk: what the disks of instances are like (docs/tdl.md, "Disks")."""

from __future__ import annotations

from compiler.declare.steps import StatementStep
from compiler.expand.host_layers import HostLayers
from compiler.expand.members import SeededStream
from compiler.expand.targets import Verb
from compiler.expand.walk import Walk
from compiler.expand.world import EVERY_STATE, HostDisk
from compiler.plan.format import MAX_INT
from tdl import ast

SET_DISK = Verb("set disk", EVERY_STATE, 0, "there")


def set_disk(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.SetDisk)
    nodes = sorted(walk.targets(step, SET_DISK, drawn=False).nodes)
    layers = HostLayers(walk, world.disks, world.set_disks, "disk")
    seeds = SeededStream(walk, step, "disk") if action.fault == "error" else None
    for node in nodes:
        seed = 0 if seeds is None else seeds.now().below(MAX_INT)
        layers.put(step, node, HostDisk(action.fault, action.amount, seed, step.order))
    layers.end_with(step, nodes)
