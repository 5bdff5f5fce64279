"""What the tests of the language share."""

from __future__ import annotations

import dataclasses
from typing import Any

from tdl import ast
from tdl.diagnostics import Diagnostic
from tdl.parser import parse, parse_partial

NOWHERE = ast.Span(0, 0, 0, 0)


def unspanned(node: Any) -> Any:
    """The same tree with every span replaced, to compare what was meant only."""
    if isinstance(node, ast.Span):
        return NOWHERE
    if isinstance(node, tuple):
        return tuple(unspanned(item) for item in node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = {f.name: unspanned(getattr(node, f.name)) for f in dataclasses.fields(node)}
        return type(node)(**fields)
    return node


def statements(text: str | bytes) -> tuple[ast.Statement, ...]:
    """The statements of a text without errors."""
    return parse(text)[0].statements


def meaning(text: str | bytes) -> Any:
    """The statements of a text, without their places."""
    return unspanned(statements(text))


def one(text: str) -> Any:
    """The only statement of a text."""
    (statement,) = statements(text)
    return statement


def found(text: str | bytes) -> tuple[Diagnostic, ...]:
    """Everything there is to say about a text."""
    return parse_partial(text).diagnostics


def codes(text: str | bytes) -> list[str]:
    return [d.code for d in found(text)]
