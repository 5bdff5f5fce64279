"""Whether the run is to end because programs have (`quit when`)."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.plan.event_kinds import DOWN
from compiler.plan.reader import Plan
from runtime.backend.instance import Instance
from runtime.schedule import Schedule


class QuitCondition:
    """`services`: names of those whose programs are waited for; empty if nobody waits."""

    def __init__(self, plan: Plan, schedule: Schedule, instances: Mapping[str, Instance]) -> None:
        topology = plan.topology
        waited_for = frozenset(topology.quit_when)
        self.services = [topology.services[number].name for number in sorted(waited_for)]
        self._names = [
            node.name for node in topology.nodes if node.is_instance and node.service in waited_for
        ]
        self._instances = instances
        self._last_join: dict[str, int] = {}
        for number, step in enumerate(schedule.steps):
            self._last_join.update(dict.fromkeys(step.joins, number))

    def is_over(self, next_step: int) -> bool:
        """All of their programs have ended, or the timeline has ended them, and none will join in
        this step or a later one. An instance without a program is not waited for."""
        there = [self._instances[name] for name in self._names if name in self._instances]
        there = [instance for instance in there if instance.argv]
        return bool(there) and all(self._has_ended(one, next_step) for one in there)

    def _has_ended(self, instance: Instance, next_step: int) -> bool:
        if self._last_join.get(instance.node.name, -1) >= next_step:
            return False
        return instance.state == DOWN or instance.is_over
