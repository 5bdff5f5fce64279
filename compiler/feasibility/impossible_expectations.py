"""TS0950: an expectation that a run which is exactly as planned cannot meet.

Input: the finished plan, whose routes decide what a path is, and the statements. What is judged is
in compiler/analysis/predicted.py, which stops looking where too much changes. Plans with more than
MOST_STATES states of the network are passed over. The explanation of the code says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.analysis.history import History
from compiler.analysis.predicted import PredictedPairs, predict
from compiler.plan.expectations import OF_PAIRS
from compiler.plan.reader import Plan
from tdl import ast
from tdl.diagnostics import Sink

MOST_STATES = 20_000
_HINT = "`tstorm explain --expect` shows what is planned then: change the network, time or bound"


def warn(plan: Plan, statements: Sequence[ast.Expect], sink: Sink) -> None:
    """`statements`: those of the plan's expectations, in the same order."""
    if len(plan.epochs) > MOST_STATES:
        return
    looked = PredictedPairs(History(plan))
    for statement, expectation in zip(statements, plan.expectations, strict=True):
        found = predict(looked, expectation)
        if found is not None and found.problem:
            sink.warning("TS0950", statement.span, found.problem, _HINT)


def concerns(statements: Sequence[ast.Expect]) -> bool:
    """Whether there is anything to look at."""
    return any(statement.kind in OF_PAIRS for statement in statements)
