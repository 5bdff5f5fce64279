"""Histories as clients write them, and oracles that try every order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations
from typing import Any

from runtime.expectations.history.models import MODELS, acts
from runtime.expectations.history.operations import FAIL, OK, Operation, read
from runtime.expectations.history.transactions import APPEND, READ


def line(process: Any, kind: str, f: str, at: int, **more: Any) -> dict[str, Any]:
    return {"process": process, "type": kind, "f": f, "time": at, **more}


def text(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def history(*records: dict[str, Any], name: str = "client.0") -> list[Operation]:
    return read({name: text(records)}, "h.jsonl")


def _chosen(those: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    return chain.from_iterable(combinations(those, n) for n in range(len(those) + 1))


def _befores(operations: Sequence[Operation]) -> set[tuple[int, int]]:
    """Of which operations the first had ended when the second began, by their identity."""
    return {
        (id(a), id(b))
        for at, a in enumerate(operations)
        for other, b in enumerate(operations)
        if a.end_ns is not None
        if a.end_ns < b.begin_ns
        or (at < other and (a.instance, a.process) == (b.instance, b.process))
    }


def explained(model: str, operations: Sequence[Operation]) -> bool:
    """Whether any order of those that took effect, with any choice of others, is the model's."""
    all_acts = acts(model, operations)
    befores = _befores(operations)
    known = [one for one in all_acts if one[0].ended == OK]
    maybe = [one for one in all_acts if one[0].ended != OK]
    for more in _chosen(maybe):
        for order in permutations([*known, *more]):
            late = any(
                (id(b), id(a)) in befores
                for at, (a, _) in enumerate(order)
                for b, _ in order[at + 1 :]
            )
            if not late and _runs(model, order):
                return True
    return False


def _runs(model: str, order: Sequence[tuple[Operation, Any]]) -> bool:
    states: dict[str, Any] = {}
    for one, act in order:
        states[one.key] = MODELS[model].step(states.get(one.key, MODELS[model].initial), act)
        if states[one.key] is None:
            return False
    return True


def one_after_another(operations: Sequence[Operation]) -> bool:
    """Whether transactions are as in some order, with any choice of those without a known end."""
    known = [one for one in operations if one.ended == OK]
    maybe = [one for one in operations if one.ended not in (OK, FAIL)]
    return any(
        _carried_out(order) for more in _chosen(maybe) for order in permutations([*known, *more])
    )


def _carried_out(order: Sequence[Operation]) -> bool:
    lists: dict[str, list[Any]] = {}
    values: dict[str, Any] = {}
    for one in order:
        for f, key, value in one.result if one.ended == OK else one.value:
            if f == APPEND:
                lists.setdefault(key, []).append(value)
            elif f != READ:
                values[key] = value
            elif one.ended == OK and (value or None) != (lists.get(key) or values.get(key)):
                return False
    return True
