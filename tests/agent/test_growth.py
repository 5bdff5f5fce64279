"""An agent's memory does not grow while it runs: no tuple is made of what has no length, be it by
tuple(…) or as the arguments of a call.

CPython makes such a tuple with room for ten, cuts it to size, and when it is freed keeps it for the
next one of that size, which is then made with room for ten again. So each stays, up to 2,000 of
every length below 20, until a full collection; an agent has one in hours. No object of a program's
refers to them. Made from a list, whose length is known, they are taken from there as well.
"""

from __future__ import annotations

import ast
import gc
import sys
from pathlib import Path

from tests.agent.hosts import Hosts, dumbbell, flow

AGENT = Path(__file__).resolve().parents[2] / "runtime" / "agent"
LISTED = {"list", "sorted"}


def unsized(tree: ast.AST) -> list[int]:
    """Lines with `tuple(…)` or `f(*…)` of a generator, or of a call that may return one."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(_has_no_length(made) for made in _into_tuple(node))
    ]


def _into_tuple(node: ast.Call) -> list[ast.expr]:
    """With other arguments beside it a starred one becomes part of a list first."""
    if _calls(node, {"tuple"}):
        return node.args
    if len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
        return [node.args[0].value]
    return []


def _has_no_length(made: ast.expr) -> bool:
    return isinstance(made, ast.GeneratorExp) or (
        isinstance(made, ast.Call) and not _calls(made, LISTED)
    )


def _calls(node: ast.Call, names: set[str]) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in names


def functions(tree: ast.Module) -> list[ast.AST]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def test_no_tuple_is_made_of_what_has_no_length() -> None:
    found = {
        path.name: lines
        for path in sorted(AGENT.glob("*.py"))
        for node in functions(ast.parse(path.read_text()))
        if (lines := unsized(node))
    }
    assert found == {}, "make it of a list: tuple([… for …])"


def test_telling_for_a_long_time_takes_no_more_memory() -> None:
    """Rates move at every tick; 150 s of an agent's metadata."""
    net = Hosts(dumbbell(4), [0, 1, 2, 0, 1, 2, 0, 1])

    def work(ticks: int) -> int:
        for tick in range(ticks):
            net.flows[0] = [flow(0, 4, 10 + tick % 7, greedy=tick % 3 == 0, bottleneck=2)]
            net.flows[1] = [flow(1, 6, 20 + tick % 5), flow(4, 0, 30 + tick % 11)]
            net.tick()
        return sys.getallocatedblocks()

    gc.collect()  # what tests before have left there
    before = work(1000)
    assert work(6000) - before < 500
