"""When a step has taken effect on all hosts: gathers what agents say of it.

A host that is lost is not waited for, as long as another one is there; what it says when it is back
is news of its own. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.backend.base import Effect
from runtime.coordinator.says import StepApplied


@dataclass(slots=True)
class _Step:
    said: dict[int, StepApplied] = field(default_factory=dict)
    blocked: bool = False  # something else of this step is not done yet


class HostSteps:
    """`on_effect` is called once a step, in the order of the steps."""

    def __init__(self, names: tuple[str, ...], on_effect: Callable[[int, Effect], None]) -> None:
        self._names = names
        self._on_effect = on_effect
        self._lost: set[int] = set()
        self._steps: dict[int, _Step] = {}
        self._next = 0
        self._done = [0] * len(names)

    def done(self, host: int) -> int:
        """How many steps, from the first on, this host has said to be applied."""
        return self._done[host]

    def block(self, number: int) -> None:
        """The step has no effect before `unblock`, whatever agents say; too late if it had it."""
        if number >= self._next:
            self._step(number).blocked = True

    def unblock(self, number: int) -> None:
        if number >= self._next:
            self._step(number).blocked = False
            self._proceed()

    def applied(self, host: int, said: StepApplied) -> bool:
        """Takes note. False if the step had its effect already: the host comes too late for it."""
        number = said.step
        self._done[host] = max(self._done[host], number + 1)
        if number < self._next:
            return False
        self._step(number).said[host] = said
        self._proceed()
        return True

    def lost(self, host: int) -> None:
        self._lost.add(host)
        self._proceed()

    def back(self, host: int) -> None:
        self._lost.discard(host)

    def waiting_for(self) -> list[str]:
        """Hosts that have not said that the next step is applied."""
        step = self._steps.get(self._next, _Step())
        return [name for host, name in enumerate(self._names) if host not in step.said]

    def _step(self, number: int) -> _Step:
        return self._steps.setdefault(number, _Step())

    def _proceed(self) -> None:
        while (step := self._steps.get(self._next)) is not None:
            if step.blocked or not step.said or self._missing(step):
                return
            del self._steps[self._next]
            self._next += 1
            self._on_effect(self._next - 1, self._effect(step))

    def _missing(self, step: _Step) -> bool:
        """Asked for every message of every host: mostly their number says it."""
        if len(step.said) + len(self._lost) < len(self._names):
            return True
        return len(step.said.keys() | self._lost) < len(self._names)

    def _effect(self, step: _Step) -> Effect:
        times = [said.elapsed_ns for said in step.said.values()]
        late = tuple(self._names[host] for host, said in sorted(step.said.items()) if said.late)
        return Effect(max(times), max(times) - min(times), late)
