"""Where a warning about the finished timeline belongs: events know the line of their statement."""

from __future__ import annotations

from bisect import bisect_right

from compiler.model import Model
from tdl import ast


class Places:
    """From lines, links and services to statements and spans."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._dynamics: dict[int, list[ast.Dynamic]] = {}
        for statement in model.declared.dynamics:
            self._dynamics.setdefault(statement.span.line, []).append(statement)
        self._services = list(model.declared.services.values())
        self._firsts = [pairs.start for pairs in model.layout.pairs]

    def statements(self, line: int) -> list[ast.Dynamic]:
        """The statements of a line; several if they are chained with `and`."""
        return self._dynamics.get(line, [])

    def is_flap(self, line: int) -> bool:
        """Whether nothing but a flap can have taken a link down from this line."""
        found = self.statements(line)
        takes = (ast.Partition, ast.Leave)
        return any(isinstance(s.action, ast.Flap) for s in found) and not any(
            isinstance(s.action, takes) for s in found
        )

    def taking(self, line: int) -> ast.Dynamic | None:
        """The statement of this line that takes links or bridges down."""
        for kind in (ast.Partition, ast.Leave, ast.Flap):
            for statement in self.statements(line):
                if isinstance(statement.action, kind):
                    return statement
        return None

    def service(self, service: int) -> ast.Span:
        return self._services[service].name.span

    def setting(self, line: int) -> ast.Dynamic:
        """The statement of this line that sets properties."""
        return next(s for s in self.statements(line) if isinstance(s.action, ast.Set))

    def link_number(self, direction: int) -> int:
        """The place among the declared links of the one that a link direction comes from."""
        return bisect_right(self._firsts, direction // 2) - 1

    def link(self, direction: int) -> ast.Link:
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
