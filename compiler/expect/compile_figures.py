"""`figure` statements become the plan's figures.

Input: the model. Output: `Figure`s in the order of the file; what is wrong goes to the sink
(TS0406, TS0408, TS0412), and is left out. Source: docs/tdl.md, "Figures".
"""

from __future__ import annotations

from compiler.declare.model import Model
from compiler.expect.subjects import Subjects
from compiler.plan.figures import PlannedFigure
from tdl import ast
from tdl.diagnostics import Sink
from tdl.formatter import format_statement


def figures(model: Model, sink: Sink) -> tuple[PlannedFigure, ...]:
    if model.oversized:
        return ()
    subjects = Subjects(model.declared, model.layout, sink)
    first: dict[str, ast.Figure] = {}
    found = []
    for statement in model.declared.figures:
        name = statement.name.text
        before = first.setdefault(name, statement)
        if before is not statement:
            message = f"there is a figure {name!r} already, in line {before.span.line}"
            sink.error("TS0412", statement.name.span, message, "give it another name")
            continue
        nodes = subjects.nodes(statement.subjects, programs=True)
        if nodes is not None:
            found.append(_figure(statement, nodes))
    return tuple(found)


def _figure(statement: ast.Figure, nodes: tuple[int, ...]) -> PlannedFigure:
    return PlannedFigure(
        name=statement.name.text,
        text=format_statement(statement),
        line=statement.span.line,
        file=statement.span.file,
        nodes=nodes,
        pattern=statement.pattern,
        path=statement.path,
        key=statement.key,
    )
