"""Warnings about a timeline that is legal and may still not be what is wanted, or not be possible.

Input: a model and its timeline, both without errors, and what the user says about the machines.
Output: warnings TS0914 to TS0922, TS0940, TS0941 and TS0950 in the sink. The plan does not depend
on any of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.declare.declared import Declared
from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.feasibility import (
    change_rate,
    command_checks,
    disconnected,
    machine_budget,
    rejoins,
    unused,
)
from compiler.feasibility.command_checks import Finder
from compiler.feasibility.statement_places import StatementPlaces
from compiler.phrases import number
from compiler.plan.expectations import OF_PAIRS
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
    disconnected.warn(model, timeline, places, sink)
    change_rate.warn(timeline, machines.pace, places, sink)
    unused.warn(model, timeline, sink)
    _multi_homed(model, sink)
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
    plan = decode(files, topology=model.topology)
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


# Services of which every instance is at several bridges, though nothing says that this is meant.
#
# A link of a service is made for each instance, so three links to three places put every replica
# into every place, where one in each was more likely meant. A network with dual-homed servers is
# written just the same; what tells them apart is an event that treats one of the links as a whole
# (`a--s1`, or a tag of it): whoever fails one of two uplinks knows of the other. TS0921, once a
# service.
#
# Input: the declarations and the final number of instances. Linear in links and events.

_SHOWN = 3  # bridges that the message names


def _multi_homed(model: Model, sink: Sink) -> None:
    declared = model.declared
    homes: dict[str, dict[str, None]] = {}
    for link in declared.links:
        for name, bridge in _home(declared, link):
            homes.setdefault(name, {})[bridge] = None
    known = set(_known(declared))
    for name, bridges in homes.items():
        replicas = model.topology.services[model.layout.service_of[name]].replicas
        if replicas > 1 and len(bridges) > 1 and name not in known:
            _report(declared.services[name], list(bridges), replicas, sink)


def _home(declared: Declared, link: ast.LinkStatement) -> Iterator[tuple[str, str]]:
    """The service and the bridge of a link between all of one and the other."""
    ends = ((link.a.text, link.a_index), (link.b.text, link.b_index))
    for (name, index), (other, _) in (ends, ends[::-1]):
        if name in declared.services and index is None and other in declared.bridges:
            yield name, other


def _known(declared: Declared) -> Iterator[str]:
    """Services of which an event names a link as a whole."""
    tags: set[str] = set()
    called: set[str] = set()
    for statement in declared.dynamics:
        selector = statement.selector
        if isinstance(selector, ast.LinkSelector):
            for end in (selector.a, selector.b):
                if end.index is None:
                    yield end.name.text
        elif isinstance(selector, ast.Tagged):
            tags.update(tag.text for tag in selector.tags)
        elif isinstance(selector, ast.Element):
            called.add(selector.name.text)
    for link in declared.links:
        named = link.name is not None and link.name.text in called
        if named or not tags.isdisjoint(tag.text for tag in link.tags):
            yield from (link.a.text, link.b.text)


def _report(service: ast.ServiceStatement, bridges: list[str], replicas: int, sink: Sink) -> None:
    name = service.name.text
    places = ", ".join(repr(bridge) for bridge in bridges[:_SHOWN])
    if len(bridges) > _SHOWN:
        places += f" and {number(len(bridges) - _SHOWN, 'more bridge')}"
    message = f"each of the {replicas:,} instances of {name!r} is attached to all of {places}"
    hint = f"for one place each write `link {name}.0--{bridges[0]}`, `link {name}.1--{bridges[1]}`"
    sink.warning("TS0921", service.name.span, message, hint)
