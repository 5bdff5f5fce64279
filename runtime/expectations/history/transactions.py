"""Transactions of a history: what each has read and written, and what is wrong with it by itself.

Input: operations whose value is a list of `["append", KEY, VALUE]`, `["w", KEY, VALUE]` and
`["r", KEY, SEEN]`, as Elle's are; of a read the end has what was seen: of a key with appends a
list, of one with writes the value, null before the first. Output: `Transaction`s. Every value is
written once to a key, so that a read says whose write it has seen. HistoryError for what is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.expectations.history.operations import (
    OK,
    HistoryError,
    Operation,
    canonical,
)

APPEND, WRITE, READ = "append", "w", "r"
NOTHING = canonical(None)
Values = tuple[str, ...]  # of a read: the list, or one value, or nothing


@dataclass(slots=True)
class Transaction:
    """`reads`: by key, what was there before its own writes. `writes`: by key, in their order.
    `strange` says what its reads have wrong of its own writes."""

    operation: Operation
    reads: dict[str, Values] = field(default_factory=dict)
    writes: dict[str, list[str]] = field(default_factory=dict)
    first_read: set[str] = field(default_factory=set)  # keys that it has read before it wrote
    strange: str = ""

    @property
    def ok(self) -> bool:
        return self.operation.ended == OK


def transactions(operations: Sequence[Operation]) -> tuple[list[Transaction], frozenset[str]]:
    """And the keys that have lists. HistoryError."""
    kinds: dict[str, str] = {}
    steps = [(one, _steps(one)) for one in operations]
    for one, those in steps:
        for f, key, _ in those:
            if f != READ and kinds.setdefault(key, f) != f:
                raise HistoryError(f"{one.place}: {key} has both {APPEND} and {WRITE}")
    for _, those in steps:  # what nobody has written to
        for _, key, value in those:
            if isinstance(value, list):
                kinds.setdefault(key, APPEND)
    appended = frozenset(key for key, f in kinds.items() if f == APPEND)
    return [_transaction(one, those, appended) for one, those in steps], appended


_Step = tuple[str, str, Any]  # what, of which key, a value


def _steps(one: Operation) -> list[_Step]:
    """As it has ended, if it is ok."""
    begun = list(_checked(one.value, one.place))
    if one.ended != OK:
        return begun
    if not one.has_result:
        if any(f == READ for f, _, _ in begun):
            message = "a transaction that reads is ok, and its end has no value"
            raise HistoryError(f"{one.place}: {message}")
        return begun
    ended = list(_checked(one.result, one.end_place))
    if [*map(_asked, ended)] != [*map(_asked, begun)]:
        message = "the steps of a transaction that is ok are not those with which it has begun"
        raise HistoryError(f"{one.end_place}: {message}")
    return ended


def _asked(step: _Step) -> tuple[str, str, str]:
    """Without what a read has seen."""
    f, key, value = step
    return f, key, "" if f == READ else canonical(value)


def _checked(value: Any, place: str) -> Iterator[_Step]:
    if not isinstance(value, list):
        raise HistoryError(f'{place}: the value of a transaction is a list: [["r", "x", null]]')
    for step in value:
        good = isinstance(step, list) and len(step) == 3 and step[0] in (APPEND, WRITE, READ)
        if not good:
            message = f'a step is ["{APPEND}", key, value], ["{WRITE}", key, value] or ["{READ}"'
            raise HistoryError(f"{place}: {message}, key, seen]")
        if step[0] == WRITE and step[2] is None:
            raise HistoryError(f"{place}: null is what is there before the first write")
        yield step[0], canonical(step[1]), step[2]


def _transaction(
    one: Operation, steps: Sequence[tuple[str, str, Any]], appended: frozenset[str]
) -> Transaction:
    found = Transaction(one)
    for f, key, value in steps:
        if f != READ:
            found.writes.setdefault(key, []).append(canonical(value))
        elif found.ok:
            seen = _seen(one, key, value, key in appended)
            _read(found, key, seen, key in appended)
    return found


def _seen(one: Operation, key: str, value: Any, appends: bool) -> Values:
    if not appends:
        return () if value is None else (canonical(value),)
    if value is not None and not isinstance(value, list):
        raise HistoryError(f"{one.place}: a read of {key}, which has appends, sees a list")
    return tuple(map(canonical, value or ()))


def _read(found: Transaction, key: str, seen: Values, appends: bool) -> None:
    """Takes its own writes away from what it has seen, which must end with them."""
    own = tuple(found.writes.get(key, ()))
    if not own:
        found.first_read.add(key)
    elif not appends:
        own = own[-1:]
    if own and seen[-len(own) :] != own:
        found.strange = found.strange or f"it does not see its own writes to {key}"
        return
    before = seen[: len(seen) - len(own)]
    if own and not appends:
        return  # it says nothing of what was there before
    if found.reads.setdefault(key, before) != before:
        found.strange = found.strange or f"it sees {key} in two states"
