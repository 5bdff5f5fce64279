"""Expectations to and from expectations.json, and what must hold of each of them.

Field names and ranges are those of docs/plan.md. PlanError at the first value out of its range: a
plan may come from elsewhere, and a pattern of it is matched, a command of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

from compiler.plan import expectations as kinds
from compiler.plan import format as form
from compiler.plan.expectations import PlannedExpectation
from compiler.plan.format import Place

MAX_EXPECTATIONS = 10_000
MAX_PATTERN = 1000  # characters
MAX_STATUS = 255
_FIELDS = tuple(sorted(field.name for field in fields(PlannedExpectation)))
_TEXTS = ("file", "pattern", "text")
_INTEGERS = ("from_ns", "line", "to_ns", "value")
_FLAGS = ("eventually", "of_plan")
_WITH_NODES = (kinds.LOG, kinds.NO_LOG, kinds.EXIT, kinds.RUN)
_WITH_BOUND = (kinds.RTT, kinds.THROUGHPUT, kinds.LOSS)


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
        }
        for one in found
    ]


def from_json(value: Any, instances: int, end_ns: int) -> tuple[PlannedExpectation, ...]:
    """Of a plan with so many instances, which come first among its nodes, that ends then."""
    outer = Place(form.EXPECTATIONS, 1)
    items = outer.items(value)
    if len(items) > MAX_EXPECTATIONS:
        outer.fail(f"more than {MAX_EXPECTATIONS} expectations")
    found = tuple(_one(item, number, instances) for number, item in enumerate(items))
    check(found, end_ns)
    return found


def _one(value: Any, number: int, instances: int) -> PlannedExpectation:
    place = Place(form.EXPECTATIONS, 1, f"expectation {number}")
    said = dict(zip(_FIELDS, place.fields(value, *_FIELDS), strict=True))
    most = instances - 1
    plain: dict[str, Any] = {name: place.text(said[name], name) for name in _TEXTS}
    plain |= {name: place.integer(said[name], name) for name in _INTEGERS}
    plain |= {name: place.integer(said[name], name, 0, 1) == 1 for name in _FLAGS}
    pairs = (place.items(pair, 2) for pair in place.items(said["pairs"]))
    return PlannedExpectation(
        **plain,
        kind=place.word(said["kind"], "kind", kinds.KINDS),
        argv=place.texts(said["argv"], "argv"),
        nodes=tuple(place.integer(n, "nodes", 0, most) for n in place.items(said["nodes"])),
        op=place.word(said["op"], "op", ("", *kinds.OPERATORS)),
        pairs=tuple(
            (place.integer(a, "pairs", 0, most), place.integer(b, "pairs", 0, most))
            for a, b in pairs
        ),
        statistic=place.word(said["statistic"], "statistic", ("", *kinds.STATISTICS)),
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
    of_pairs, of_nodes = one.kind in kinds.OF_PAIRS, one.kind in _WITH_NODES
    bounded = one.kind in _WITH_BOUND
    pattern = one.kind in (kinds.LOG, kinds.NO_LOG)
    if bool(one.pairs) != of_pairs or bool(one.nodes) != of_nodes:
        return "pairs or nodes that it cannot have"
    if any(a == b for a, b in one.pairs) or any(a >= b for a, b in pairwise(one.pairs)):
        return "pairs of one node, or not ascending"
    if any(a >= b for a, b in pairwise(one.nodes)) or (one.kind == kinds.RUN and one.nodes[1:]):
        return "nodes that are not ascending, or too many"
    if bool(one.op) != bounded or bool(one.statistic) != (one.kind == kinds.RTT):
        return "a bound or a statistic that it cannot have"
    if (one.of_plan and one.kind not in kinds.OF_PAIRS[:2]) or _value_out_of_range(one):
        return "a value that it cannot have"
    if bool(one.argv) != (one.kind == kinds.RUN) or "\0" in "".join(one.argv):
        return "a command that it cannot have"
    if bool(one.pattern) != pattern or (pattern and not _is_pattern(one.pattern)):
        return "a pattern that cannot be read"
    if one.eventually and one.kind in (kinds.NO_LOG, kinds.EXIT, kinds.VALID):
        return "a time within which it comes true"
    return "" if one.from_ns <= one.to_ns <= end_ns else "a time that is not within the plan"


def _value_out_of_range(one: PlannedExpectation) -> bool:
    if one.kind == kinds.EXIT:
        return one.value > MAX_STATUS
    if one.kind == kinds.LOSS:
        return one.value > form.PPB
    return one.kind not in _WITH_BOUND and one.value != 0


def _is_pattern(pattern: str) -> bool:
    if len(pattern) > MAX_PATTERN:
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
