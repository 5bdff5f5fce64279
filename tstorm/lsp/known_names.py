"""The names that a text declares, and where: for completion and for going to a definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tdl import ast
from tdl.diagnostics import Sink
from tdl.parser import Partial
from tdl.tokens.lexer import logical_lines

MAX_NAMES = 5000
NODE, TAG, VARIABLE, OTHER = "node", "tag", "variable", "name"


@dataclass(frozen=True, slots=True)
class DeclaredName:
    text: str
    kind: str  # NODE for what links and actions name, TAG, VARIABLE, OTHER for links and figures
    span: ast.Span


def declared_names(partial: Partial, text: str) -> tuple[DeclaredName, ...]:
    """Of a text and those that it includes, each name where it stands first; of tags each place."""
    found: dict[tuple[str, str], DeclaredName] = {}
    sources = {"": text, **{name: _decoded(data) for name, data in partial.includes.items()}}
    for one in (*_variables(sources), *_of_statements(partial.file.statements)):
        found.setdefault((one.kind, one.text), one)
        if len(found) == MAX_NAMES:
            break
    return tuple(found.values())


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _of_statements(statements: tuple[ast.Statement, ...]) -> Iterator[DeclaredName]:
    for statement in statements:
        many = statement.names if isinstance(statement, ast.Bridges) else ()
        one = getattr(statement, "name", None)
        is_node = isinstance(statement, ast.ServiceStatement | ast.Bridges | ast.NodeStatement)
        for name in (*many, *([one] if isinstance(one, ast.Name) else [])):
            yield DeclaredName(name.text, NODE if is_node else OTHER, name.span)
        for tag in getattr(statement, "tags", ()):
            yield DeclaredName(tag.text, TAG, tag.span)
        if isinstance(statement, ast.NodeStatement):
            yield from _of_statements(statement.body)


def _variables(sources: dict[str, str]) -> Iterator[DeclaredName]:
    """Of let, param and for."""
    for file, text in sources.items():
        for line in logical_lines(text, Sink(), file):
            kind = line.tokens[0].type if line.tokens else ""
            if kind in ("LET", "PARAM") and len(line.tokens) > 1:
                key = line.tokens[1]
                name = key.text.rstrip("= \t\u00a0")
                yield DeclaredName(name, VARIABLE, key.part(0, len(name)))
            elif kind == "FOR":
                for token in line.tokens[1:]:
                    if token.type != "NAME" or token.text == "in":
                        break
                    yield DeclaredName(token.text, VARIABLE, token.span)
