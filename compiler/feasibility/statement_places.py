"""Where a warning about the finished timeline belongs: events know the line of their statement."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from compiler.declare.actions import RULES
from compiler.declare.model import Model
from compiler.expand.world import NOBODY
from compiler.plan.event_kinds import KINDS
from compiler.plan.types import Event, element_of, named_direction
from tdl import ast

_MAKERS: dict[str, list[type]] = {
    kind: [action for action, rule in RULES.items() if kind in rule.events] for kind in KINDS
}


class Makers:
    """From an event to the statement that makes it."""

    def __init__(self, dynamics: Iterable[ast.Dynamic]) -> None:
        self._dynamics: dict[tuple[str, int], list[ast.Dynamic]] = {}
        for statement in dynamics:
            self._dynamics.setdefault(statement.span.place, []).append(statement)

    def maker(self, event: Event) -> ast.Dynamic | None:
        """The statement of its line that makes events of its kind; None for line 0.

        A line has several statements if they are chained with `and`, and in a loop: then it is the
        one that names the target, if there is one.
        """
        there = self._dynamics.get(event.place, ())
        fits = [
            one for action in _MAKERS[event.kind] for one in there if isinstance(one.action, action)
        ]
        naming = (one for one in fits if _names(ast.drawn_from(one.selector), event.target))
        return next(naming, fits[0] if fits else None)


def _names(selector: ast.Selector, target: str) -> bool:
    """Whether a selector has the very names of an event's target."""
    a, b, called = named_direction(target)
    if isinstance(selector, ast.Element):
        return _is(selector, target) or selector.name.text == called
    if isinstance(selector, ast.LinkSelector) and b:
        if selector.name is not None and selector.name.text != called:
            return False
        ways = ((a, b), (b, a))
        return any(_is(selector.a, one) and _is(selector.b, other) for one, other in ways)
    return False


def _is(element: ast.Element, node: str) -> bool:
    name = element.name.text
    known = (node, element_of(node)) if element.index is None else (node,)
    return (name if element.index is None else f"{name}.{element.index}") in known


class StatementPlaces(Makers):
    """From lines, links and services to statements and spans."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.declared.dynamics)
        self._model = model
        self._services = list(model.declared.services.values())
        self._firsts = [pairs.start for pairs in model.layout.pairs]

    def statement(self, order: int) -> ast.Dynamic | None:
        """By its place among the dynamic statements; None for what is there at first."""
        return None if order == NOBODY else self._model.declared.dynamics[order]

    def service(self, service: int) -> ast.Span:
        return self._services[service].name.span

    def link_number(self, direction: int) -> int:
        """The place among the declared links of the one that a link direction comes from."""
        return bisect_right(self._firsts, direction // 2) - 1

    def link(self, direction: int) -> ast.LinkStatement:
        return self._model.declared.links[self.link_number(direction)]

    def element(self, name: str) -> ast.Span:
        """A bridge, or the declaration of a link direction, by the name that events use."""
        bridge = self._model.declared.bridges.get(name)
        if bridge is not None:
            return bridge.name.span
        for direction, link in enumerate(self._model.topology.links):
            if link.name == name:
                return self.link(direction).span
        raise AssertionError(name)
