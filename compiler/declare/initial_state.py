"""What exists before the first statement of the timeline.

Without any join for a service, or where something that takes instances away names it or one of its
instances before the first join, all its instances join at 0 s. A join that names one instance
concerns that instance only: it is absent at first if its join comes before anything else that names
it. Bridges and links exist from the start, unless the first join or leave that names them (or their
tag) is a join. What is done to a running experiment says nothing of its beginning.
Input: layout and steps. Output: `Beginning`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compiler.declare.actions import RULES
from compiler.declare.declared import Declared
from compiler.declare.steps import StatementStep
from compiler.declare.topology import Layout
from compiler.plan.parts.action_texts import number_of
from tdl import ast

_TAKES = tuple(action for action, rule in RULES.items() if rule.takes)


@dataclass(frozen=True, slots=True)
class InitialState:
    joins: tuple[int, ...]  # instances that join at 0 s by themselves
    absent_bridges: tuple[int, ...]
    absent_links: tuple[int, ...]  # directions
    late: tuple[int, ...]  # services that have joins of their own, for hints


def find_beginning(
    declared: Declared, layout: Layout, steps: Sequence[StatementStep], failed: bool
) -> InitialState:
    planned = [step for step in steps if not number_of(step.statement.span.file)]
    ordered = sorted(planned, key=lambda step: (step.statement.start_ns, step.order))
    late = _services_with_joins(declared, layout, ordered, failed)
    absent = _first_is_join(ordered, _TAKES, lambda step: step.chosen.instances)
    joins = [
        node
        for service, nodes in enumerate(layout.instances)
        if service not in late
        for node in nodes
        if node not in absent
    ]
    leaves = (ast.Leave,)
    bridges = _first_is_join(ordered, (*leaves, ast.Crash, ast.Restart), _own_bridges)
    links = _first_is_join(ordered, leaves, _own_links)
    return InitialState(
        tuple(joins), tuple(sorted(bridges)), tuple(sorted(links)), tuple(sorted(late))
    )


def _services_with_joins(
    declared: Declared, layout: Layout, steps: Iterable[StatementStep], failed: bool
) -> set[int]:
    """Joins that were left out because of an error count too. `steps` are in order of time."""
    found: set[int] = set()
    there: set[int] = set()  # named by something else before their first join
    service_of = [node.service for node in layout.topology.nodes]
    for step in steps:
        if isinstance(step.statement.action, ast.Join):
            found.update(service for service in step.chosen.services if service not in there)
        elif isinstance(step.statement.action, _TAKES) and step.chosen.named:
            named = {*step.chosen.services, *(service_of[node] for node in step.chosen.instances)}
            there |= named - found
    if failed:
        for dynamic in declared.dynamics:
            if number_of(dynamic.span.file):
                continue
            if isinstance(dynamic.action, ast.Join) and isinstance(dynamic.selector, ast.Element):
                service = layout.service_of.get(dynamic.selector.name.text)
                if dynamic.selector.index is None and service is not None and service not in there:
                    found.add(service)
    return found


def _own_bridges(step: StatementStep) -> Iterable[int]:
    everything = isinstance(step.statement.selector, ast.Everything)
    joins = isinstance(step.statement.action, ast.Join)
    return () if everything and joins else step.chosen.bridges


def _own_links(step: StatementStep) -> Iterable[int]:
    everything = isinstance(step.statement.selector, ast.Everything)
    if everything and isinstance(step.statement.action, ast.Join):
        return ()
    return [direction for link in step.chosen.links for direction in link]


def _first_is_join(
    steps: Iterable[StatementStep],
    takes: tuple[type, ...],
    targets: Callable[[StatementStep], Iterable[int]],
) -> set[int]:
    """The targets whose first join or take is a join."""
    absent: set[int] = set()
    seen: set[int] = set()
    done: set[tuple[int, bool]] = set()  # selections by identity: the second time says nothing new
    for step in steps:
        joins = isinstance(step.statement.action, ast.Join)
        if not joins and not isinstance(step.statement.action, takes):
            continue
        if (id(step.chosen), joins) in done:
            continue
        done.add((id(step.chosen), joins))
        for target in targets(step):
            if joins and target not in seen:
                absent.add(target)
            seen.add(target)
    return absent
