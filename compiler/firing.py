"""What a `when` does once it has happened: a longer plan, out of the run's plan and the statement.

It is an action as `tstorm do` has them (compiler/extension.py), whose text is the statement's body
with the instance for `it` and with the times written out. So the plan of a run with reactions
compiles like any other, and draws, checks, records and judges are those of any action.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler import extension
from compiler.expect.compile_reactions import about
from compiler.pipeline import Compilation
from compiler.plan.parts.action_texts import Firing
from compiler.plan.reader import Plan
from compiler.sources import RecordedFiles
from tdl import ast
from tdl.formatter import format_statement
from tdl.parser import parse_partial


def statements(plan: Plan) -> tuple[ast.When, ...]:
    """Those of the plan's source, in its order."""
    file = parse_partial(plan.source, RecordedFiles(plan), plan.params).file
    return tuple(one for one in file.statements if isinstance(one, ast.When))


def _lines(when: ast.When, instance: str, at_ns: int) -> Iterator[str]:
    for one in about(when, instance):
        end_ns = None if one.end_ns is None else one.end_ns + at_ns
        yield format_statement(replace(one, start_ns=one.start_ns + at_ns, end_ns=end_ns))


def text_of(when: ast.When, instance: str, text_ns: int) -> str:
    """What it does at this time of the text."""
    return "".join(f"{line}\n" for line in _lines(when, instance, text_ns))


def fire(
    plan: Plan, when: ast.When, instance: str, firing: Firing, number: int, now_ns: int
) -> tuple[Compilation, str]:
    """The plan with this firing as action `number`, which happens at `now_ns` of the run; and the
    action's text. TdlError with what cannot be done then, of which nothing is done."""
    text = text_of(when, instance, extension.text_time(plan, now_ns))
    return extension.extend_by(plan, number, firing, text, now_ns), text
