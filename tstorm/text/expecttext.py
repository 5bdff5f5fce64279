"""`tstorm explain --expect`: what a plan expects, of whom, when, and what it has planned for that.

Input: a plan, and the lines of its source. Output: text, or one JSON object. Whether the plan alone
could meet an expectation is foreseen by compiler/analysis/predicted.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compiler.analysis.predicted import (
    SHOWN,
    WORDS,
    Predicted,
    PredictedPairs,
    predict,
)
from compiler.phrases import number
from compiler.plan.parts.expectations import (
    ALWAYS,
    ASSERTIONS,
    DRIVERS,
    EVENTUALLY,
    EXIT,
    LINEARIZABLE,
    LOG,
    LOSS,
    NO_LOG,
    OF_PAIRS,
    RTT,
    RUN,
    SERIALIZABLE,
    SOMETIMES,
    THROUGHPUT,
    UNREACHABLE,
    VALID,
)
from tstorm import output, units

if TYPE_CHECKING:
    from compiler.plan.parts.expectations import PlannedExpectation
    from compiler.plan.reader import Plan
    from tstorm.notes import Statements

SHOWN_NAMES = 3
_UNITS = {RTT: "ns", THROUGHPUT: "bps", LOSS: "ppb"}
_OF_PROGRAMS = {LOG: "any of ", NO_LOG: "each of ", EXIT: "each of "}
_OF_PROGRAMS |= dict.fromkeys((LINEARIZABLE, SERIALIZABLE, ASSERTIONS, DRIVERS), "all of ")
_OF_PROGRAMS |= {ALWAYS: "each of ", EVENTUALLY: "each of ", SOMETIMES: "any of "}


def show(plan: Plan, statements: Statements) -> None:
    found = _foreseen(plan)
    output.line(number(len(found), "expectation"))
    for expectation, foreseen in found:
        output.line("")
        output.line(expectation.text)
        output.line(f"  {statements.place((expectation.file, expectation.line))}")
        for line in _lines(plan, expectation, foreseen):
            output.line(f"  {line}")


def record(plan: Plan) -> dict[str, Any]:
    return {"expectations": [_record(plan, *one) for one in _foreseen(plan)]}


def _foreseen(plan: Plan) -> list[tuple[PlannedExpectation, Predicted | None]]:
    from compiler.analysis.history import History

    if not any(one.kind in OF_PAIRS for one in plan.expectations):
        return [(one, None) for one in plan.expectations]
    looked = PredictedPairs(History(plan))
    return [(one, predict(looked, one)) for one in plan.expectations]


# --- text ----------------------------------------------------------------------------------------


def _lines(
    plan: Plan, expectation: PlannedExpectation, foreseen: Predicted | None
) -> Iterator[str]:
    yield f"of: {_subjects(plan, expectation)}"
    yield f"when: {_when(plan, expectation)}"
    if foreseen is not None:
        yield f"planned: {_planned(plan, expectation, foreseen)}"
        if foreseen.problem:
            yield f"cannot hold: {foreseen.problem}"
    elif expectation.kind in OF_PAIRS:
        yield "planned: their paths change too often to look at all of it"


def _subjects(plan: Plan, expectation: PlannedExpectation) -> str:
    if expectation.kind == VALID:
        return "the verdict of the run"
    if expectation.kind in OF_PAIRS:
        names = [_pair(plan, pair) for pair in expectation.pairs[: SHOWN_NAMES + 1]]
        what = "each of " if len(expectation.pairs) > 1 else ""
        return what + _some(names, len(expectation.pairs))
    names = [plan.topology.nodes[node].name for node in expectation.nodes[: SHOWN_NAMES + 1]]
    if expectation.kind == RUN:
        return f"the command, run in {names[0]}"
    what = _OF_PROGRAMS[expectation.kind] if len(expectation.nodes) > 1 else ""
    return what + _some(names, len(expectation.nodes))


def _pair(plan: Plan, pair: tuple[int, int]) -> str:
    return " -> ".join(plan.topology.nodes[node].name for node in pair)


def _some(names: list[str], count: int) -> str:
    shown = names[:SHOWN_NAMES]
    more = f" … and {count - len(shown):,} more" if count > len(shown) else ""
    return ", ".join(shown) + more


def _when(plan: Plan, expectation: PlannedExpectation) -> str:
    from_ns, to_ns = expectation.from_ns, expectation.to_ns
    begin, end = units.duration(from_ns), units.duration(to_ns)
    if expectation.kind == RUN and from_ns == to_ns:
        return f"at {begin}"
    if expectation.kind == DRIVERS:
        return f"drivers from {begin} to {end}, then checks"
    if expectation.eventually and expectation.kind in (RTT, LOSS, UNREACHABLE):
        return f"from some moment between {begin} and {end} on"
    if expectation.eventually:
        what = {RUN: "again and again, ", THROUGHPUT: "half a second ", EVENTUALLY: "at last "}
        what[SOMETIMES] = "in some run, once "
        return f"{what.get(expectation.kind, 'once ')}between {begin} and {end}"
    if (from_ns, to_ns) == (0, plan.end_ns):
        return "the whole run"
    return f"all the time from {begin} to {end}"


def _planned(plan: Plan, expectation: PlannedExpectation, foreseen: Predicted) -> str:
    if expectation.kind == UNREACHABLE:
        if not foreseen.path:
            return "no path"
        return "a path for some of the time" if foreseen.gone else "a path"
    gone = ", and no path for some of the time" if foreseen.gone else ""
    if foreseen.low is None or foreseen.high is None:
        return "no path" if foreseen.gone else f"no limit of the {WORDS[expectation.kind]}"
    show = SHOWN[expectation.kind]
    low, high = show(foreseen.low), show(foreseen.high)
    span = low if low == high else f"{low} to {high}"
    text = f"{WORDS[expectation.kind]} {span}{gone}"
    if low != high and foreseen.figure is not None:
        statistic = expectation.statistic or "mean"
        text += f"; {statistic} {show(foreseen.figure)} for {_pair(plan, foreseen.pair)}"
    if foreseen.looked < len(expectation.pairs):
        text += f" (of {foreseen.looked:,} pairs)"
    return text


# --- JSON ----------------------------------------------------------------------------------------


def _record(
    plan: Plan, expectation: PlannedExpectation, foreseen: Predicted | None
) -> dict[str, Any]:
    nodes = plan.topology.nodes
    pairs = [[nodes[a].name, nodes[b].name] for a, b in expectation.pairs[:SHOWN_NAMES]]
    return {
        "text": expectation.text,
        "line": expectation.line,
        "file": expectation.file,
        "kind": expectation.kind,
        "from_ns": expectation.from_ns,
        "to_ns": expectation.to_ns,
        "eventually": expectation.eventually,
        "instances": [nodes[node].name for node in expectation.nodes],
        "pairs": {"count": len(expectation.pairs), "examples": pairs},
        "planned": _foreseen_record(plan, expectation, foreseen),
    }


def _foreseen_record(
    plan: Plan, expectation: PlannedExpectation, foreseen: Predicted | None
) -> dict[str, Any] | None:
    if foreseen is None:
        return None
    return {
        "low": foreseen.low,
        "high": foreseen.high,
        "figure": foreseen.figure,
        "unit": _UNITS.get(expectation.kind, ""),
        "pair": [plan.topology.nodes[node].name for node in foreseen.pair],
        "pairs_looked_at": foreseen.looked,
        "path": foreseen.path,
        "without_path": foreseen.gone,
        "cannot_hold": foreseen.problem,
    }
