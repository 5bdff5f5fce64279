"""What statements make of a property of instances' hosts, such as their clocks and disks.

It is the host's: it stays while no program runs there, and who joins again finds it as it is. What
an interval makes of it lies above what was there before, and is taken away at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compiler.declare.steps import StatementStep
from compiler.expand.walk import Walk
from compiler.phrases import moment


class Layer(Protocol):
    @property
    def order(self) -> int:
        """Of the step that has set it."""


L = TypeVar("L", bound=Layer)


@dataclass(frozen=True, slots=True)
class HostLayers(Generic[L]):
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
