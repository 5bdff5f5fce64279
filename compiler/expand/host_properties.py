"""set clock, set drift, set disk: what statements make of a property of instances' hosts.

It is the host's: it stays while no program runs there, and who joins again finds it as it is. What
an interval makes of it lies above what was there before, and is taken away at its end.

A clock says `run's time + offset + drift * (run's time - since)`, in whole ns, rounded down. What
disks are like: docs/tdl.md, "Disks".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compiler.declare.steps import StatementStep
from compiler.expand.members import SeededStream
from compiler.expand.targets import Verb
from compiler.expand.walk import Walk
from compiler.expand.world import EVERY_STATE, HostClock, HostDisk
from compiler.phrases import moment
from compiler.plan.format import MAX_INT
from tdl import ast

SET_CLOCK = Verb("set clock", EVERY_STATE, 0, "there")
SET_DISK = Verb("set disk", EVERY_STATE, 0, "there")


class _Layer(Protocol):
    @property
    def order(self) -> int:
        """Of the step that has set it."""


L = TypeVar("L", bound=_Layer)


@dataclass(frozen=True, slots=True)
class _HostLayers(Generic[L]):
    """`layers`: by node, the lowest first. `change`: makes them others, by an event. `what`: the
    property, for messages."""

    walk: Walk
    layers: Mapping[int, list[L]]
    change: Callable[[int, list[L]], None]
    what: str

    def put(self, step: StatementStep, node: int, layer: L) -> None:
        below = self.layers.get(node, []) if step.end_ns is not None else []
        self.change(node, [*below, layer])

    def end_with(self, step: StatementStep, nodes: Sequence[int]) -> None:
        """What the step has put there goes at the end of its interval, if it has one."""
        if nodes and step.end_ns is not None:
            self.walk.later(
                step.end_ns, step, lambda _: self._take(step, nodes), closing=True, bound=True
            )

    def _take(self, step: StatementStep, nodes: Sequence[int]) -> None:
        world = self.walk.world
        for node in nodes:
            layers = self.layers[node]
            others = [one for one in layers if one.order != step.order]
            if len(others) == len(layers):
                what = f"the {self.what} of {world.names[node]!r}"
                message = f"{what} was set again by another statement"
                message += f", so it is not set back at {moment(world.now)}"
                hint = "check what happens to it in the meantime"
                self.walk.warning(step, "TS0912", message, hint)
            elif layers[-1].order != step.order:
                layers[:] = others  # an interval that began later goes on
            else:
                self.change(node, others)


def set_clock(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.SetClock)
    nodes = sorted(walk.targets(step, SET_CLOCK, drawn=False).nodes)
    layers = _HostLayers(walk, world.clocks, world.set_clocks, "clock")
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


def set_disk(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.SetDisk)
    nodes = sorted(walk.targets(step, SET_DISK, drawn=False).nodes)
    layers = _HostLayers(walk, world.disks, world.set_disks, "disk")
    seeds = SeededStream(walk, step, "disk") if action.fault == "error" else None
    for node in nodes:
        seed = 0 if seeds is None else seeds.now().below(MAX_INT)
        layers.put(step, node, HostDisk(action.fault, action.amount, seed, step.order))
    layers.end_with(step, nodes)
