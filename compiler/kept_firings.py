"""What the firings of a run's `when`s make of its plan, where nothing but them is still to come.

Input: a compiled plan, whose text has done all that it planned but to quit. Output: for each firing
the longer plan and its files, as compiling the whole text gives them (compiler/firing.py), to the
byte, at the cost of what the firing does: the walk through time stands at the end of all that there
is, which is the state in which the firing finds the network, and all that was encoded before is
kept (compiler/plan/growing.py). Of whatever is otherwise, and of what is wrong with a firing,
NotKeptError says that it takes the whole compiler, which also says what is wrong.
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
from compiler.expand.timeline import Timeline, walked, walked_on
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

Fired = tuple[Mapping[str, bytes], Plan, str]  # the longer plan: its files, and itself; the text


def is_over(model: Model, now_ns: int) -> bool:
    """Whether all is over that the text itself plans, but for the quit."""
    steps = (one for one in model.steps if not action_texts.number_of(one.statement.span.file))
    return all(one.last_ns < now_ns or _quits(one.statement) for one in steps)


def _quits(statement: ast.Dynamic) -> bool:
    return isinstance(statement.action, ast.Quit)


class KeptFirings:
    """Of a plan and its model. NotKeptError where none can be kept."""

    def __init__(self, plan: Plan, model: Model) -> None:
        declared = model.declared
        services = declared.services.values()
        if not run_clock.read(plan.attached.includes).is_plain or model.oversized:
            raise NotKeptError
        if declared.dialect is not None or declared.machines or any(map(shares, services)):
            raise NotKeptError  # what the words of an action mean is not what they say
        try:
            self._growing = GrowingPlan(plan)
            self._walk = walked(model, Sink())
        except (CannotGrowError, PlanError) as error:
            raise NotKeptError from error
        self._model = model
        self._quits = [one for one in declared.dynamics if _quits(one)]
        self._order = len(declared.dynamics)
        planned = (one.last_ns for one in model.steps if not _quits(one.statement))
        self._last_ns = max(planned, default=0)  # of all that there is

    def fire(self, when: ast.When, instance: str, which: Firing, number: int, now_ns: int) -> Fired:
        """The plan with this firing, too, as action `number`. NotKeptError; this object goes on
        with that plan, and is of no use after an error unless `takes` has said so before."""
        if not self.takes(now_ns):
            raise NotKeptError
        text = firing.text_of(when, instance, now_ns)
        name = action_texts.name_of(number, which)
        steps = self._steps(name, text.encode("utf-8"))
        try:
            own = self._events(steps)
            plan = self._growing.add_last(name, text.encode("utf-8"), own)
            self._check_expectations(plan)
            files = self._growing.files()()
        except (CannotGrowError, NeedReplicas, PlanError) as error:
            raise NotKeptError from error
        self._last_ns = max(one.last_ns for one in steps)
        plan.digest = hashlib.sha256(files[HEADER]).hexdigest()
        return files, plan, text

    def takes(self, now_ns: int) -> bool:
        """Whether all that there is is over at this moment. If not, nothing is changed."""
        plan = self._growing.plan
        events = plan.events[-2:]  # a quit may be the last
        over = all(one.at_ns < now_ns or one.kind == "quit" for one in events)
        few = len(plan.attached.includes) < extension.MOST_KEPT
        return over and few and self._last_ns < now_ns < plan.end_ns

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

    def _events(self, steps: Sequence[StatementStep]) -> list[Event]:
        sink = self._walk.sink
        before = len(sink.found)
        found = walked_on(self._walk, steps)
        if len(sink.found) > before:
            raise NotKeptError
        return found

    def _check_expectations(self, plan: Plan) -> None:
        """That they are what they were: they may be about when instances are there."""
        if not plan.expectations:
            return
        sink = Sink()
        timeline = Timeline(plan.events, plan.end_ns, (), {}, {}, {})
        if expect(self._model, timeline, sink) != plan.expectations or sink.failed:
            raise NotKeptError
