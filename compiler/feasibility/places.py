"""Where a warning about the finished timeline belongs: events know the line of their statement."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from compiler.declare.model import Model
from compiler.expand.world import NOBODY
from tdl import ast

# What makes an event of a kind, the likeliest first.
_MAKERS: dict[str, tuple[type, ...]] = {
    "join": (ast.Join, ast.Churn),
    "leave": (ast.Leave,),
    "crash": (ast.Crash, ast.Churn),
    "disconnect": (ast.Disconnect,),
    "reconnect": (ast.Reconnect, ast.Disconnect),
    "bridge_up": (ast.Join,),
    "bridge_down": (ast.Leave,),
    "link_up": (ast.Join, ast.Heal, ast.Flap),
    "link_down": (ast.Partition, ast.Leave, ast.Flap),
    "set": (ast.Set,),
    "background": (ast.Background,),
}


class Makers:
    """From the line of an event to the statement that makes it."""

    def __init__(self, dynamics: Iterable[ast.Dynamic]) -> None:
        self._dynamics: dict[int, list[ast.Dynamic]] = {}
        for statement in dynamics:
            self._dynamics.setdefault(statement.span.line, []).append(statement)

    def maker(self, kind: str, line: int) -> ast.Dynamic | None:
        """The statement of this line that makes events of this kind; None for line 0.

        A line has several statements if they are chained with `and`.
        """
        for action in _MAKERS[kind]:
            for statement in self._dynamics.get(line, ()):
                if isinstance(statement.action, action):
                    return statement
        return None


class Places(Makers):
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
