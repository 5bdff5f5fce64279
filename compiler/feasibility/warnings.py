"""Warnings about a timeline that is legal and may still not be what is wanted, or not be possible.

Input: a model and its timeline, both without errors, and what the user says about the machines.
Output: warnings TS0914 to TS0922, TS0940, TS0941 and TS0950 in the sink. The plan does not depend
on any of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.feasibility import (
    change_rate,
    command_checks,
    disconnected,
    machine_budget,
    multi_homed,
    rejoins,
    unused,
)
from compiler.feasibility.command_checks import Finder
from compiler.feasibility.statement_places import StatementPlaces
from compiler.plan.parts.expectations import OF_PAIRS
from compiler.plan.reader import Plan, decode
from tdl import ast
from tdl.diagnostics import Sink


@dataclass(frozen=True, slots=True)
class Machines:
    """What an experiment is to run on; None: nothing is said, so nothing is compared with it."""

    budget_bps: int | None = None  # what one machine can carry
    underlay_ns: int | None = None  # the round trip between two machines
    pace: int = 1  # the timeline runs this many times faster
    kubernetes: bool = False  # it is to run there, beside anywhere else
    find: Finder | None = None  # who knows its programs


ANY = Machines()


def warn(model: Model, timeline: Timeline, machines: Machines, sink: Sink) -> None:
    places = StatementPlaces(model)
    if not any(service.router for service in model.topology.services):
        disconnected.warn(model, timeline, places, sink)  # else programs decide who reaches whom
    change_rate.warn(timeline, machines.pace, places, sink)
    unused.warn(model, timeline, sink)
    multi_homed.warn(model, sink)
    multi_homed.warn_of_interfaces(model, sink)
    command_checks.warn(model, machines.find, sink)
    if machines.budget_bps is not None:
        machine_budget.warn(model, timeline, machines.budget_bps, places, sink)
    if machines.kubernetes:
        rejoins.warn(model.topology.services, timeline.events, places.maker, sink)


def warn_of_plan(model: Model, files: Mapping[str, bytes], machines: Machines, sink: Sink) -> None:
    """What only the finished plan can tell: paths depend on routes."""
    from compiler.feasibility import underlay

    statements = model.declared.expects
    if machines.underlay_ns is None and not _names_pairs(statements):
        return
    plan = decode(files, topology=model.planned)
    if machines.underlay_ns is not None:
        underlay.warn(plan, machines.underlay_ns, StatementPlaces(model), sink)
    if _names_pairs(statements):
        _impossible(plan, statements, sink)


# TS0950: an expectation that a run which is exactly as planned cannot meet.
#
# Input: the finished plan, whose routes decide what a path is, and the statements. What is judged
# is in compiler/analysis/predicted.py, which stops looking where too much changes. Plans with
# more than MOST_STATES states of the network are passed over. The explanation of the code says
# so.

MOST_STATES = 20_000
_HINT = "`tstorm explain --expect` shows what is planned then: change the network, time or bound"


def _impossible(plan: Plan, statements: Sequence[ast.Expect], sink: Sink) -> None:
    """`statements`: those of the plan's expectations, in the same order."""
    if len(plan.epochs) > MOST_STATES:
        return
    from compiler.analysis.history import History
    from compiler.analysis.predicted import PredictedPairs, predict

    looked = PredictedPairs(History(plan))
    for statement, expectation in zip(statements, plan.expectations, strict=True):
        found = predict(looked, expectation)
        if found is not None and found.problem:
            sink.warning("TS0950", statement.span, found.problem, _HINT)


def _names_pairs(statements: Sequence[ast.Expect]) -> bool:
    """Whether there is anything to look at."""
    return any(statement.kind in OF_PAIRS for statement in statements)
