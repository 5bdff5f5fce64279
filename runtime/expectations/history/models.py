"""What an operation does to a register, a map, a set or a queue, if it takes effect at a moment.

A model has its functions, the state at the beginning, and a step: the state after an operation, or
None where the operation cannot have had the result that it had. Values are canonical texts
(operations.canonical), so 1, 1.0 and true differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.expectations.history.operations import FAIL, OK, HistoryError, Operation, canonical

NOTHING = canonical(None)
State = Hashable
READS = ("read", "get", "contains")  # they leave the state as it is


@dataclass(frozen=True, slots=True)
class Act:
    """An operation for a model. `result` is None where nobody knows it. `at`: of which key it is
    where several are looked at together."""

    f: str
    argument: Any = None
    result: Any = None
    at: int = 0


Step = Callable[[Any, Act], State | None]


@dataclass(frozen=True, slots=True)
class OperationModel:
    """`given` and `told`: the functions that need a value at their begin, and at their end."""

    initial: State
    step: Step
    given: tuple[str, ...]
    told: tuple[str, ...]

    @property
    def functions(self) -> tuple[str, ...]:
        return (*self.given, *(one for one in self.told if one not in self.given), *self.plain)

    @property
    def plain(self) -> tuple[str, ...]:
        return ("delete",) if self.step is _map else ()


def _register(state: str, act: Act) -> State | None:
    if act.f == "write":
        return str(act.argument)
    if act.f == "cas":
        return str(act.argument[1]) if state == act.argument[0] else None
    return state if act.result in (None, state) else None


_AS_REGISTER = {"get": "read", "put": "write"}


def _map(state: str, act: Act) -> State | None:
    if act.f == "delete":
        return NOTHING
    return _register(state, Act(_AS_REGISTER.get(act.f, act.f), act.argument, act.result))


def _set(state: frozenset[str], act: Act) -> State | None:
    if act.f == "add":
        return state | {act.argument}
    if act.f == "remove":
        return state - {act.argument}
    if act.f == "contains":
        return state if act.result in (None, canonical(act.argument in state)) else None
    return state if act.result is None or act.result == state else None


def _queue(state: tuple[str, ...], act: Act) -> State | None:
    if act.f == "enqueue":
        return (*state, act.argument)
    first = state[0] if state else NOTHING
    return state[1:] if act.result in (None, first) else None


MODELS = {
    "register": OperationModel(NOTHING, _register, ("write", "cas"), ("read",)),
    "map": OperationModel(NOTHING, _map, ("put", "cas"), ("get",)),
    "set": OperationModel(frozenset(), _set, ("add", "remove", "contains"), ("read", "contains")),
    "queue": OperationModel((), _queue, ("enqueue",), ("dequeue",)),
}


def of_several(step: Step) -> Step:
    """Of keys whose states are in a tuple."""

    def of_one(states: tuple[State, ...], act: Act) -> State | None:
        after = step(states[act.at], act)
        return None if after is None else (*states[: act.at], after, *states[act.at + 1 :])

    return of_one


def acts(name: str, operations: Sequence[Operation]) -> list[tuple[Operation, Act]]:
    """Of all that may have taken effect. HistoryError for what is none of the model's."""
    model = MODELS[name]
    found = []
    for one in operations:
        if one.f not in model.functions:
            known = ", ".join(model.functions)
            raise HistoryError(
                f"{one.place}: {one.f[:40]!r} is nothing that a {name} does: {known}"
            )
        if one.ended != FAIL:
            found.append((one, _act(model, one)))
    return found


def _act(model: OperationModel, one: Operation) -> Act:
    argument: str | tuple[str, str] | None = None
    result: str | frozenset[str] | None = None
    if one.f in model.given:
        argument = _pair(one) if one.f == "cas" else canonical(one.value)
        if one.value is None:
            raise HistoryError(f"{one.place}: {one.f} has no value")
        if one.ended == OK and one.f not in model.told:
            _as_given(one)
    if one.f in model.told and one.ended == OK:
        if not one.has_result:
            raise HistoryError(f"{one.place}: {one.f} is ok, and its end has no value")
        result = canonical(one.result)
        if model.step is _set and one.f == "read":
            result = _elements(one)
    return Act(one.f, argument, result)


def _as_given(one: Operation) -> None:
    """What ends has the value with which it has begun, or none."""
    if one.result is not None and canonical(one.result) != canonical(one.value):
        told, given = canonical(one.result)[:40], canonical(one.value)[:40]
        raise HistoryError(f"{one.end_place}: {one.f} {told} is ok, and {one.f} {given} has begun")


def _pair(one: Operation) -> tuple[str, str]:
    if not isinstance(one.value, list) or len(one.value) != 2:
        raise HistoryError(f"{one.place}: the value of a cas is [old, new]")
    return canonical(one.value[0]), canonical(one.value[1])


def _elements(one: Operation) -> frozenset[str]:
    if not isinstance(one.result, list):
        raise HistoryError(f"{one.place}: a read of a set ends with a list of its elements")
    return frozenset(map(canonical, one.result))
