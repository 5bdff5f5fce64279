"""What events of one kind have set at instances, such as their clocks: it stays while no program
runs there, and a later life gets it before its program starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.plan.types import Event
from runtime.backend.instance import Incarnation, Instance
from runtime.schedule import Step


class InstanceSettings:
    """`earlier`: by name of the instance, the last event before the run's start."""

    def __init__(self, kind: str, earlier: Mapping[str, Event]) -> None:
        self._kind = kind
        self._set = dict(earlier)

    def of_step(
        self, step: Step, begun: Mapping[str, Incarnation], instances: Mapping[str, Instance]
    ) -> Iterator[tuple[str, Incarnation, Event]]:
        """The lives for which a step changes something, and those that begin with it, by name, each
        with the event that holds for it."""
        changed = {event.target: event for event in step.events if event.kind == self._kind}
        self._set |= changed
        for name in sorted({*changed, *(begun.keys() & self._set.keys())}):
            incarnation = begun.get(name)
            if incarnation is None and name in instances:  # others are never there
                incarnation = instances[name].present
            if incarnation is not None:
                yield name, incarnation, self._set[name]
