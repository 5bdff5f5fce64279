"""The same tree with other elements where a name stands for several: of machines and of airs.

Input: a statement, what its selectors become, and which elements one in a list stands for. Output:
the statement; the very one where nothing of it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from tdl import ast


@dataclass(frozen=True, slots=True)
class OtherElements:
    selector: Callable[[ast.Dynamic], ast.Selector]
    elements: Callable[[ast.Element], Iterable[ast.Element]]

    def of(self, node: Any) -> Any:
        if isinstance(node, ast.Dynamic):
            return replace(node, selector=self.selector(node), action=self.of(node.action))
        if isinstance(node, tuple) and not hasattr(node, "_fields"):
            return tuple(self._items(node))
        if not is_dataclass(node) or isinstance(node, type | ast.Span | ast.Name):
            return node
        parts = {field.name: getattr(node, field.name) for field in fields(node)}
        changed = {name: self.of(part) for name, part in parts.items()}
        return replace(node, **changed) if changed != parts else node

    def _items(self, items: tuple[Any, ...]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, ast.Element):
                yield from self.elements(item)
            else:
                yield self.of(item)
