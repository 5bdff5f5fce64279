"""What an experiment expects of its programs and its network: the contract between the statements
`expect …` and whoever judges them.

Expectations draw nothing and change no event: a plan with them has the same timeline and snapshots
as one without. Times are plan time in nanoseconds. Specified in docs/plan.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from compiler.plan import format as form
from compiler.plan.format import Place

RTT, THROUGHPUT, LOSS, UNREACHABLE = "rtt", "throughput", "loss", "unreachable"
LOG, NO_LOG, EXIT, RUN, VALID = "log", "no_log", "exit", "run", "valid"
LINEARIZABLE, SERIALIZABLE = "linearizable", "serializable"
ALWAYS, SOMETIMES, EVENTUALLY = "always", "sometimes", "eventually"
ASSERTIONS, DRIVERS = "assertions", "drivers"
OF_HISTORIES = (LINEARIZABLE, SERIALIZABLE)
OF_LINES = (ALWAYS, SOMETIMES, EVENTUALLY)
_OF_FILES_AND_LINES = (*OF_HISTORIES, *OF_LINES, ASSERTIONS, DRIVERS)
KINDS = (RTT, THROUGHPUT, LOSS, UNREACHABLE, LOG, NO_LOG, EXIT, RUN, VALID, *_OF_FILES_AND_LINES)
MODELS = ("register", "set", "queue", "map")  # of what is linearizable
OF_PAIRS = (RTT, THROUGHPUT, LOSS, UNREACHABLE)
OPERATORS = ("<", "<=", ">", ">=")
LINE_OPERATORS = (*OPERATORS, "=", "!=")  # OF_LINES
STATISTICS = ("median", "mean", "p90", "p99", "max", "min")  # of the round trips in the interval


@dataclass(frozen=True, slots=True)
class PlannedExpectation:
    """One statement. Where a kind has no use for a field, it has its default.

    It is judged over [from_ns, to_ns]. With `eventually` it is enough that it comes true within
    the interval (`at T within D`, `within D after T`); without, it must hold for all of it.
    """

    text: str  # the statement in canonical form
    kind: str  # one of KINDS
    line: int  # of the source
    file: str = ""  # the included file that the line is in, '' = the source itself
    pairs: tuple[tuple[int, int], ...] = ()  # (source, destination): nodes; OF_PAIRS
    # Instances of what is about programs; of RUN the one that runs it
    nodes: tuple[int, ...] = ()
    op: str = ""  # one of OPERATORS: RTT, THROUGHPUT, LOSS; of LINE_OPERATORS: OF_LINES
    value: int = 0  # RTT: ns; THROUGHPUT: b/s; LOSS: ppb; EXIT: the status
    of_plan: bool = False  # `value` is ppb of what the plan has for the pair at the time
    statistic: str = ""  # RTT: one of STATISTICS
    pattern: str = ""  # OF_LOGS: a regular expression (Python's `re`) that a line has in it
    argv: tuple[str, ...] = ()  # RUN; DRIVERS: the folder, the only word
    path: str = ""  # OF_HISTORIES: a file in the directory of each instance
    model: str = ""  # LINEARIZABLE: one of MODELS
    # OF_LINES: what a line is to be. The value at `key` of the JSON in it, or else the pattern's
    # group, compared by `op` with `number`; or `has`, a pattern that is in the value or the line
    key: str = ""
    number: str = ""
    has: str = ""
    from_ns: int = 0
    to_ns: int = 0
    eventually: bool = False


def asserting(found: Sequence[PlannedExpectation]) -> frozenset[int]:
    """Instances of whose programs assertions are read."""
    return frozenset(node for one in found if one.kind == ASSERTIONS for node in one.nodes)


# Expectations to and from expectations.json, and what must hold of each of them.
#
# Field names and ranges are those of docs/plan.md. PlanError at the first value out of its range: a
# plan may come from elsewhere, and a pattern of it is matched, a command of it is run.

MAX_EXPECTATIONS = 10_000
MAX_PATTERN = 1000  # characters, also of a path
MAX_STATUS = 255
OF_LOGS = (LOG, NO_LOG, *OF_LINES)
_OF_FILES, _OF_CONDITIONS = ("model", "path"), ("has", "key", "number")
# Fields that only expectations of these kinds have.
_FURTHER = {**dict.fromkeys(OF_HISTORIES, _OF_FILES), **dict.fromkeys(OF_LINES, _OF_CONDITIONS)}
_FIELDS = tuple(
    sorted({field.name for field in fields(PlannedExpectation)} - {*_OF_FILES, *_OF_CONDITIONS})
)
_TEXTS = ("file", "pattern", "text")
_INTEGERS = ("from_ns", "line", "to_ns", "value")
_FLAGS = ("eventually", "of_plan")
_WITH_NODES = (*OF_LOGS, EXIT, RUN, *OF_HISTORIES, ASSERTIONS, DRIVERS)
_AT_ONCE = (NO_LOG, EXIT, VALID, *OF_HISTORIES, ALWAYS, ASSERTIONS, DRIVERS)  # never "within"
_WITH_BOUND = (RTT, THROUGHPUT, LOSS)
_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?", re.ASCII)


def to_json(found: Sequence[PlannedExpectation]) -> list[dict[str, object]]:
    return [
        {
            **{name: getattr(one, name) for name in (*_TEXTS, *_INTEGERS)},
            **{name: int(getattr(one, name)) for name in _FLAGS},
            "argv": list(one.argv),
            "kind": one.kind,
            "nodes": list(one.nodes),
            "op": one.op,
            "pairs": [list(pair) for pair in one.pairs],
            "statistic": one.statistic,
            **{name: getattr(one, name) for name in _FURTHER.get(one.kind, ())},
        }
        for one in found
    ]


def from_json(
    value: Any, instances: int, endpoints: int, end_ns: int
) -> tuple[PlannedExpectation, ...]:
    """Of a plan with so many instances, and end points with their further interfaces, which come
    first among its nodes, that ends then."""
    outer = Place(form.EXPECTATIONS, 1)
    items = outer.items(value)
    if len(items) > MAX_EXPECTATIONS:
        outer.fail(f"more than {MAX_EXPECTATIONS} expectations")
    found = tuple(_one(item, number, instances, endpoints) for number, item in enumerate(items))
    check(found, end_ns)
    return found


def _one(value: Any, number: int, instances: int, endpoints: int) -> PlannedExpectation:
    place = Place(form.EXPECTATIONS, 1, f"expectation {number}")
    kind = value.get("kind") if isinstance(value, dict) else None
    further = _FURTHER.get(kind, ()) if isinstance(kind, str) else ()
    names = (*_FIELDS, *further)
    said = dict(zip(names, place.fields(value, *names), strict=True))
    most, last = instances - 1, endpoints - 1
    plain: dict[str, Any] = {name: place.text(said[name], name) for name in (*_TEXTS, *further)}
    plain |= {name: place.integer(said[name], name) for name in _INTEGERS}
    plain |= {name: place.integer(said[name], name, 0, 1) == 1 for name in _FLAGS}
    pairs = (place.items(pair, 2) for pair in place.items(said["pairs"]))
    return PlannedExpectation(
        **plain,
        kind=place.word(said["kind"], "kind", KINDS),
        argv=place.texts(said["argv"], "argv"),
        nodes=tuple(place.integer(n, "nodes", 0, most) for n in place.items(said["nodes"])),
        op=place.word(said["op"], "op", ("", *LINE_OPERATORS)),
        pairs=tuple(
            (place.integer(a, "pairs", 0, last), place.integer(b, "pairs", 0, last))
            for a, b in pairs
        ),
        statistic=place.word(said["statistic"], "statistic", ("", *STATISTICS)),
    )


def check(found: Sequence[PlannedExpectation], end_ns: int) -> None:
    """Raises PlanError for what no source can have said."""
    for number, one in enumerate(found):
        place = Place(form.EXPECTATIONS, 1, f"expectation {number}")
        wrong = _wrong(one, end_ns)
        if wrong:
            place.fail(f"{one.kind} with {wrong}")


def _wrong(one: PlannedExpectation, end_ns: int) -> str:
    """What does not go together, '' for nothing."""
    of_pairs, of_nodes = one.kind in OF_PAIRS, one.kind in _WITH_NODES
    pattern = one.kind in OF_LOGS
    if bool(one.pairs) != of_pairs or bool(one.nodes) != of_nodes:
        return "pairs or nodes that it cannot have"
    if any(a == b for a, b in one.pairs) or any(a >= b for a, b in pairwise(one.pairs)):
        return "pairs of one node, or not ascending"
    if any(a >= b for a, b in pairwise(one.nodes)) or (one.kind == RUN and one.nodes[1:]):
        return "nodes that are not ascending, or too many"
    if bool(one.statistic) != (one.kind == RTT):
        return "a statistic that it cannot have"
    if (one.of_plan and one.kind not in OF_PAIRS[:2]) or _value_out_of_range(one):
        return "a value that it cannot have"
    if not _has_its_words(one):
        return "a command that it cannot have"
    if bool(one.pattern) != pattern or (pattern and not _is_pattern(one.pattern)):
        return "a pattern that cannot be read"
    if wrong := _wrong_condition(one):
        return wrong
    if bool(one.path) != (one.kind in OF_HISTORIES) or not _is_file(one.path):
        return "a file that is not in the directory of an instance"
    if one.model not in (MODELS if one.kind == LINEARIZABLE else ("",)):
        return "a model that it cannot have"
    if one.eventually and one.kind in _AT_ONCE:
        return "a time within which it comes true"
    return "" if one.from_ns <= one.to_ns <= end_ns else "a time that is not within the plan"


def _has_its_words(one: PlannedExpectation) -> bool:
    fits = len(one.argv) == 1 if one.kind == DRIVERS else bool(one.argv) == (one.kind == RUN)
    return fits and "\0" not in "".join(one.argv)


def _wrong_condition(one: PlannedExpectation) -> str:
    if one.kind not in OF_LINES:
        fits = one.op in (OPERATORS if one.kind in _WITH_BOUND else ("",))
        return "" if fits else "a bound that it cannot have"
    if bool(one.op) != bool(one.number) or (one.number and not _NUMBER.fullmatch(one.number)):
        return "a number that it cannot have"
    if len(one.key) > MAX_PATTERN or (one.has and (one.op or not _is_pattern(one.has))):
        return "a condition that cannot be read"
    if one.op and not one.key and re.compile(one.pattern).groups != 1:
        return "a pattern that has not one group"
    if one.kind == ALWAYS and not (one.op or one.has or one.key):
        return "no condition"
    if one.kind != ALWAYS and not one.eventually:
        return "no time within which it comes true"
    return ""


def _value_out_of_range(one: PlannedExpectation) -> bool:
    if one.kind == EXIT:
        return one.value > MAX_STATUS
    if one.kind == LOSS:
        return one.value > form.PPB
    return one.kind not in _WITH_BOUND and one.value != 0


def _is_file(path: str) -> bool:
    bad = path.startswith("/") or ".." in path.split("/") or "\0" in path
    return len(path) <= MAX_PATTERN and not bad


def _is_pattern(pattern: str) -> bool:
    if len(pattern) > MAX_PATTERN:
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
