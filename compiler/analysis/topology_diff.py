"""Two plans compared as to what they begin with (settings, services, nodes, links) and expect.

Input: two plans. Output: differences in a fixed order. Elements are the same when they have the
same name; each field of which the two have different values is one difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from compiler.plan.parts.traces import described
from compiler.plan.properties import BY_FIELD
from compiler.plan.types import Link, Node, PlannedReaction, Service

if TYPE_CHECKING:
    from compiler.plan.parts.expectations import PlannedExpectation
    from compiler.plan.parts.figures import PlannedFigure
    from compiler.plan.reader import Plan

KINDS = (
    "experiment",
    "param",
    "service",
    "bridge",
    "link",
    "instance",
    "expectation",
    "figure",
    "when",
)

Value = int | str | list[Any] | None


@dataclass(frozen=True, slots=True)
class TopologyDifference:
    """`field` of an element, '' for the element as a whole; None where it does not exist.

    `order` of a kind: the same elements in another order, with the first that are not the same.
    """

    kind: str  # of KINDS
    name: str  # '' for the experiment
    field: str
    a: Value
    b: Value


def compare_topologies(a: Plan, b: Plan) -> tuple[TopologyDifference, ...]:
    """By kind; elements in the order of the first plan, then those that only the second has.

    Seeds of links follow from the plan's: where that differs, they are no differences of their own.
    """
    seeds = a.seed == b.seed
    return (
        *_settings(a, b),
        *_params(a, b),
        *_elements("service", _services(a), _services(b)),
        *_elements("bridge", _nodes(a, bridges=True), _nodes(b, bridges=True)),
        *_elements("link", _links(a, seeds=seeds), _links(b, seeds=seeds)),
        *_elements("instance", _nodes(a, bridges=False), _nodes(b, bridges=False)),
        *_statements("expectation", a.expectations, b.expectations),
        *_statements("figure", a.figures, b.figures),
        *_statements("when", a.topology.reactions, b.topology.reactions),
    )


def _settings(a: Plan, b: Plan) -> Iterator[TopologyDifference]:
    for name, one, two in (
        ("seed", a.seed, b.seed),
        ("end_ns", a.end_ns, b.end_ns),
        ("routing", a.topology.routing, b.topology.routing),
        ("bootstrapper", a.topology.bootstrapper, b.topology.bootstrapper),
        ("network", a.topology.network, b.topology.network),
        ("hops", a.topology.hops, b.topology.hops),
        ("start_when_ready", a.topology.start_when_ready, b.topology.start_when_ready),
        ("quit_when", _ends(a), _ends(b)),
    ):
        if one != two:
            yield TopologyDifference("experiment", "", name, one, two)


def _params(a: Plan, b: Plan) -> Iterator[TopologyDifference]:
    """Values that both have; a parameter that only one has shows in what it stands for."""
    for name, one in a.params.items():
        two = b.params.get(name, one)
        if one != two:
            yield TopologyDifference("param", name, "value", one, two)


def _statements(
    kind: str,
    a: Iterable[PlannedExpectation | PlannedFigure | PlannedReaction],
    b: Iterable[PlannedExpectation | PlannedFigure | PlannedReaction],
) -> Iterator[TopologyDifference]:
    """Those that only one has, by their text."""
    left = Counter(one.text for one in b)
    for text in (one.text for one in a):
        if left[text]:
            left[text] -= 1
        else:
            yield TopologyDifference(kind, text, "", text, None)
    for text in left.elements():
        yield TopologyDifference(kind, text, "", None, text)


def _ends(plan: Plan) -> Value:
    return [plan.topology.services[service].name for service in plan.topology.quit_when]


Fields = dict[str, Value]


def _services(plan: Plan) -> dict[str, Fields]:
    return {service.name: _fields(service) for service in plan.topology.services}


def _nodes(plan: Plan, *, bridges: bool) -> dict[str, Fields]:
    """Tags of instances are those of their service."""
    left_out = ("service", "owner") if bridges else ("service", "tags", "owner")
    nodes = (node for node in plan.topology.nodes if (node.service < 0) == bridges)
    return {node.name: _fields(node, left_out) for node in nodes}


def _links(plan: Plan, *, seeds: bool) -> dict[str, Fields]:
    left_out = ("src", "dst", "state") if seeds else ("src", "dst", "state", "seed")
    planned = plan.topology.traces
    return {
        link.name: _fields(link, left_out)
        | dict(zip(BY_FIELD, link.state[1:], strict=True))
        | {"trace": described(planned, link.state.trace)}
        for link in plan.topology.links
    }


def _fields(record: Service | Node | Link, left_out: Sequence[str] = ()) -> Fields:
    names = (field.name for field in fields(record))
    return {
        name: _plain(getattr(record, name)) for name in names if name not in (*left_out, "name")
    }


def _plain(value: Any) -> Any:
    """Tuples and records as lists, as JSON has them."""
    if is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in fields(value))
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _elements(
    kind: str, a: dict[str, Fields], b: dict[str, Fields]
) -> Iterable[TopologyDifference]:
    for name, one in a.items():
        two = b.get(name)
        if two is None:
            yield TopologyDifference(kind, name, "", name, None)
            continue
        for field, value in one.items():
            if value != two[field]:
                yield TopologyDifference(kind, name, field, value, two[field])
    for name in b:
        if name not in a:
            yield TopologyDifference(kind, name, "", None, name)
    if a.keys() == b.keys():
        for one_name, other_name in zip(a, b, strict=True):
            if one_name != other_name:
                yield TopologyDifference(kind, "", "order", one_name, other_name)
                return
