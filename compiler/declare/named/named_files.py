"""Files that links and `set` name, each read once: what they follow, what their jitter is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from tdl import ast

Wanted = TypeVar("Wanted", ast.TraceFile, ast.DelayFile)
Found = TypeVar("Found")


class ReadOnce(Generic[Wanted, Found]):
    """`known` has what was found, by name, None after a report."""

    def __init__(self, read: Callable[[Wanted], Found | None]) -> None:
        self._read: Callable[[Wanted], Found | None] = read
        self.known: dict[str, Found | None] = {}

    def find(self, wanted: Wanted) -> Found | None:
        if wanted.source not in self.known:
            self.known[wanted.source] = self._read(wanted)
        return self.known[wanted.source]


def told(
    file: ast.File,
    link: Callable[[ast.LinkStatement], ast.LinkStatement],
    change: Callable[[ast.Assignment, int], ast.Assignment],
) -> tuple[ast.Statement, ...]:
    """The statements, with what is known of the files. `change` is told when it is set, too."""
    return tuple(_told(statement, link, change) for statement in file.statements)


def _told(
    statement: ast.Statement,
    link: Callable[[ast.LinkStatement], ast.LinkStatement],
    change: Callable[[ast.Assignment, int], ast.Assignment],
) -> ast.Statement:
    if isinstance(statement, ast.LinkStatement):
        return link(statement)
    if isinstance(statement, ast.Dynamic) and isinstance(statement.action, ast.Set):
        before = statement.action.assignments
        after = tuple(change(one, statement.start_ns) for one in before)
        if any(new is not old for new, old in zip(after, before, strict=True)):
            return replace(statement, action=replace(statement.action, assignments=after))
    return statement
