"""What the firings of a run's `when`s make of its plan, one after the other.

Input: a compiled plan, and a moment from which on none of it has happened. Output: for each firing
the longer plan and its files, as compiling the whole text gives them (compiler/firing.py), to the
byte, at the cost of what the firing does and of what is still planned: a walk through time stands
where the last firing was. It goes on to this one, and a copy of it, which has what the firing does
on its agenda, too, walks to the end; all that was encoded before is kept
(compiler/plan/growing.py). Where something is under way that cannot be copied, and of what is wrong
with a firing, NotKeptError says that it takes the whole compiler, which also says what is wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler import extension, firing
from compiler.declare.common import shares
from compiler.declare.model import Model
from compiler.declare.selectors import Resolver
from compiler.declare.steps import StatementStep, build_steps
from compiler.expand.timeline import Timeline, plan_more, walked
from compiler.expand.walk import BoundError, Walk
from compiler.expand.world import NeedReplicas
from compiler.expect.compile_expectations import expect
from compiler.kept_walk import NotKeptError
from compiler.plan import run_clock
from compiler.plan.format import HEADER, PlanError
from compiler.plan.growing import CannotGrowError, GrowingPlan
from compiler.plan.parts import action_texts
from compiler.plan.parts.action_texts import Firing
from compiler.plan.reader import Plan
from compiler.plan.types import Event
from tdl import ast
from tdl.diagnostics import Sink

_MISSED = "TS0904"  # the experiment quits before this statement

Fired = tuple[Mapping[str, bytes], Plan, str]  # the longer plan: its files, and itself; the text


def _quits(statement: ast.Dynamic) -> bool:
    return isinstance(statement.action, ast.Quit)


class KeptFirings:
    """Of a plan and its model, from `now_ns` on. NotKeptError where none can be kept."""

    def __init__(self, plan: Plan, model: Model, now_ns: int) -> None:
        declared = model.declared
        services = declared.services.values()
        if not run_clock.read(plan.attached.includes).is_plain or model.oversized:
            raise NotKeptError
        if declared.dialect is not None or declared.machines or any(map(shares, services)):
            raise NotKeptError  # what the words of an action mean is not what they say
        try:
            self._growing = GrowingPlan(plan)
            self._walk = walked(model, Sink(), until_ns=now_ns)
        except (CannotGrowError, PlanError) as error:
            raise NotKeptError from error
        self._model = model
        self._quits = [one for one in declared.dynamics if _quits(one)]
        self._order = len(declared.dynamics)
        self._replicas = [one.replicas for one in model.topology.services]
        self._now_ns = now_ns

    def fire(self, when: ast.When, instance: str, which: Firing, number: int, now_ns: int) -> Fired:
        """The plan with this firing, too, as action `number`. NotKeptError, after which this object
        is of no use; else it goes on with that plan."""
        if not self.takes(now_ns):
            raise NotKeptError
        text = firing.text_of(when, instance, now_ns)
        name = action_texts.name_of(number, which)
        steps = self._steps(name, text.encode("utf-8"))
        try:
            later = self._later(steps, name, now_ns)
            plan = self._growing.add_from(now_ns, name, text.encode("utf-8"), later)
            self._check_expectations(plan)
            files = self._growing.files()()
        except (BoundError, CannotGrowError, NeedReplicas, PlanError) as error:
            raise NotKeptError from error
        plan_more(self._walk, steps)
        plan.digest = hashlib.sha256(files[HEADER]).hexdigest()
        return files, plan, text

    def takes(self, now_ns: int) -> bool:
        """Whether something can be done at this moment. If not, nothing is changed."""
        plan = self._growing.plan
        few = len(plan.attached.includes) < extension.MOST_KEPT
        return few and self._now_ns <= now_ns < plan.end_ns

    def _steps(self, name: str, text: bytes) -> list[StatementStep]:
        partial = extension.parsed_alone(self._growing.plan, name, text)
        own = [one for one in partial.file.statements if isinstance(one, ast.Dynamic)]
        strange = len(own) != len(partial.file.statements) or any(map(_quits, own))
        if partial.failed or partial.diagnostics or strange or not own:
            raise NotKeptError
        sink, declared = Sink(), replace(self._model.declared, dynamics=[*self._quits, *own])
        resolver = Resolver(self._model.declared, self._model.layout, sink)
        found, doubts = build_steps(declared, resolver, sink)
        if sink.found or doubts:
            raise NotKeptError
        first = self._order - len(self._quits)
        self._order += len(own)
        return [replace(one, order=first + one.order) for one in found if not _quits(one.statement)]

    def _later(self, steps: Sequence[StatementStep], name: str, now_ns: int) -> list[Event]:
        """All events from `now_ns` on, where these steps are planned, too. NotKeptError, and what
        walks raise."""
        self._now_ns = now_ns
        self._walk.run(now_ns)
        done = len(self._walk.world.events)
        walk = self._walk.copied(Sink())
        plan_more(walk, steps)
        walk.run()
        if self._is_wrong(walk, name):
            raise NotKeptError
        return walk.world.events[done:]

    def _is_wrong(self, walk: Walk, name: str) -> bool:
        """What the whole compiler refuses: errors, what comes after the quit, and other instances
        than the plan has."""
        missed = (one.code == _MISSED and one.span.file == name for one in walk.sink.found)
        return walk.sink.failed or any(missed) or walk.world.declared != self._replicas

    def _check_expectations(self, plan: Plan) -> None:
        """That they are what they were: they may be about when instances are there."""
        if not plan.expectations:
            return
        sink = Sink()
        timeline = Timeline(plan.events, plan.end_ns, (), {}, {}, {})
        if expect(self._model, timeline, sink) != plan.expectations or sink.failed:
            raise NotKeptError
