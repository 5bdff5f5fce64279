"""Which statements are steps of a trace: of many that give the same properties of the same link one
value after the other. Such files are generated, and a value may repeat the one before.

Input: the steps of a model. Output: the orders of those that belong to a trace.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from compiler.declare.steps import StatementStep
from tdl import ast

STEPS = 4  # fewer are written by hand, where one that changes nothing is a slip


def traced(steps: Iterable[StatementStep]) -> frozenset[int]:
    series: dict[Hashable, dict[int, Hashable]] = {}
    for step in steps:
        said = None if step.end_ns is not None else _said(step.statement.action)
        if said is not None:
            what, value = said
            # Statements with the same selector share their selection.
            series.setdefault((id(step.chosen), what), {})[step.order] = value
    return frozenset(
        order
        for values in series.values()
        if len(values) >= STEPS and len(set(values.values())) > 1
        for order in values
    )


def _said(action: ast.Action) -> tuple[Hashable, Hashable] | None:
    """What is set, and to which value; None where it depends on the one before."""
    match action:
        case ast.Background():
            return "background", action.rate_bps
        case ast.Set(assignments=found) if all(one.op is ast.Op.ASSIGN for one in found):
            words = tuple(one.prop.text for one in found)
            return words, tuple((one.value, one.word) for one in found)
    return None
