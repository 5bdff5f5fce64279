"""What a datapath cannot do, told with the line of the TDL text that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tstorm.exit_codes import CommandError

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from runtime.errors import UnfitError


def shown(error: UnfitError, source_name: str, plan: Plan) -> CommandError:
    """`FILE:LINE: what is beyond the datapath`, and what to do."""
    from tdl.presentation import named

    misfit = error.misfit
    file, line = (misfit.file, misfit.line) if misfit.line else declared_at(plan, misfit.link)
    place = f"{named(source_name, file)}:{line}: " if line else ""
    return CommandError(f"error: {place}{error.message}\nhint: {error.remedy}", error.exit_code)


def declared_at(plan: Plan, link: str) -> tuple[str, int]:
    """File and line that declare a link direction such as `pg.0->s1`, or without one how packets
    are routed; line 0 if none does."""
    from compiler.declare.common import with_common_links
    from compiler.plan.types import named_direction
    from compiler.sources import RecordedFiles
    from tdl import ast
    from tdl.parser import parse_partial

    src, dst, called = named_direction(link)
    ends = [end.partition(".") for end in (src, dst)]
    wanted = [(name, int(index) if index else None) for name, _, index in ends]
    file = parse_partial(plan.source, RecordedFiles(plan), plan.params).file
    for statement in with_common_links(file).statements:
        if isinstance(statement, ast.Routing) and not link:
            return statement.span.place
        if isinstance(statement, ast.LinkStatement):
            if called != (statement.name.text if statement.name else ""):
                continue
            found = [
                (statement.a.text, statement.a_index),
                (statement.b.text, statement.b_index),
            ]
            for way in (found,) if statement.directed else (found, found[::-1]):
                if all(map(_stands_for, way, wanted)):
                    return statement.span.place
    return "", 0


def _stands_for(end: tuple[str, int | None], node: tuple[str, int | None]) -> bool:
    """An end of a link statement, and a node; the end of a service stands for all its instances."""
    return end[0] == node[0] and end[1] in (None, node[1])
