"""Whether operations can be put in an order that explains them: each took effect at one moment
between its begin and its end.

The search of Wing and Gong (Testing and Verifying Concurrent Objects, 1993) with the memory of
states of Lowe (Testing for Linearizability, 2017): a node is what has taken effect and the state
after it, and no node is looked at twice. Linearizability is local (Herlihy and Wing 1990), so each
key is searched by itself. Operations without a known end may take effect at any time after their
begin, or never.

At the same moment an end and a begin are concurrent, since a clock has no finer order, but for
operations of one process, whose order is known. Nodes and steps are bounded, in all keys together:
where a bound is met nothing is decided, and that does not depend on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.expectations.history.models import MODELS, Act, OperationModel, State, acts
from runtime.expectations.history.operations import OK, LongHistoryError, Operation

MOST_STEPS = 3_000_000  # of the model: some seconds
MOST_NODES = 300_000  # some 200 bytes each
_Acted = tuple[Operation, Act]
# What has taken effect: of those that ended all before the first and the bits after it; bits of the
# others; and the state.
_Node = tuple[int, int, int, State]


@dataclass(frozen=True, slots=True)
class Violation:
    """`guilty` is the operation with the first end that no order explains; `near`, by their begin,
    those of its key that are around it, itself among them."""

    guilty: Operation
    near: tuple[Operation, ...]


MOST_NEAR, MOST_WRITERS = 14, 3


def check(name: str, operations: Sequence[Operation]) -> Violation | None:
    """By a model of that name; operations by their begin. The first violation, or None.
    HistoryError; LongHistoryError if it was not decided."""
    budget = _Budget()
    found: list[Violation] = []
    undecided = ""
    for key, those in _by_key(acts(name, operations)).items():
        search = _Search(MODELS[name], those, budget)
        guilty = search.run()
        if guilty is not None:
            found.append(Violation(guilty, _near(guilty, those)))
        elif budget.is_spent:
            undecided = f" of {key}" if key else ""
            undecided = f"the {len(those):,} operations{undecided} overlap too much"
            break
    if found:
        return min(found, key=lambda one: (one.guilty.end_ns or 0, one.guilty.place))
    if undecided:
        raise LongHistoryError(f"not decided: {undecided}, {budget.nodes:,} states were looked at")
    return None


def _by_key(those: Sequence[_Acted]) -> dict[str, list[_Acted]]:
    found: dict[str, list[_Acted]] = {}
    for one in those:
        found.setdefault(one[0].key, []).append(one)
    return found


def _near(guilty: Operation, those: Sequence[_Acted]) -> tuple[Operation, ...]:
    """The last that began before its end, and the last ones that wrote what it has seen."""
    end_ns = guilty.end_ns or 0
    before = [(one, act) for one, act in those if one.begin_ns <= end_ns]
    seen = next(act.result for one, act in before if one is guilty)
    wrote = [one for one, act in before if act.argument is not None and act.argument == seen]
    last = [one for one, _ in before[-MOST_NEAR:]]
    chosen = {id(one) for one in (*last, *wrote[-MOST_WRITERS:], guilty)}
    return tuple(one for one, _ in before if id(one) in chosen)


class _Budget:
    """What was looked at."""

    def __init__(self) -> None:
        self.nodes = 0
        self.steps = 0

    @property
    def is_spent(self) -> bool:
        return self.nodes > MOST_NODES or self.steps > MOST_STEPS


class _Search:
    """Of the operations of one key."""

    def __init__(self, model: OperationModel, those: Sequence[_Acted], budget: _Budget) -> None:
        self._model = model
        self._budget = budget
        self._known = [one for one in those if one[0].ended == OK]
        self._maybe = [one for one in _useful(model, those) if one[0].ended != OK]
        number = {id(one): at for at, (one, _) in enumerate(self._known)}
        self._before = [number.get(id(one.before), -1) for one, _ in self._known]
        self._before_maybe = [number.get(id(one.before), -1) for one, _ in self._maybe]

    def run(self) -> Operation | None:
        """The operation that no order explains; None if there is one, or it was not decided."""
        first: _Node = (0, 0, 0, self._model.initial)
        seen = {first}
        stack = [first]
        deepest, guilty = -1, None
        while stack:
            node = stack.pop()
            if node[0] == len(self._known):
                return None
            blocked, after = self._after(node)
            end_ns = self._known[blocked][0].end_ns or 0
            if end_ns > deepest:
                deepest, guilty = end_ns, self._known[blocked][0]
            fresh = [one for one in after if one not in seen]
            seen.update(fresh)
            stack += fresh
            self._budget.nodes += len(fresh)
            if self._budget.is_spent:
                return None
        return guilty

    def _after(self, node: _Node) -> tuple[int, list[_Node]]:
        """Which of the operations that have not taken effect ends first, and what may come next:
        last of all what is looked at first, the one with the earliest end."""
        low, bits, maybes, state = node
        open_ = list(self._open(low, bits))
        blocked = min(open_, key=lambda at: (self._known[at][0].end_ns or 0, at))
        until_ns = self._known[blocked][0].end_ns or 0
        found = [
            (low, bits, maybes | 1 << at, after)
            for at, (one, act) in enumerate(self._maybe)
            if one.begin_ns <= until_ns
            and not maybes >> at & 1
            and not _waits(self._before_maybe[at], low, bits)
            and (after := self._model.step(state, act)) is not None
        ]
        found.reverse()
        self._budget.steps += len(self._maybe)
        open_.sort(key=lambda at: -(self._known[at][0].end_ns or 0))
        for at in open_:
            if _waits(self._before[at], low, bits):
                continue
            self._budget.steps += 1
            after = self._model.step(state, self._known[at][1])
            if after is not None:
                found.append((*_with(low, bits, at), maybes, after))
        return blocked, found

    def _open(self, low: int, bits: int) -> Iterator[int]:
        """Those that have begun before any that has not taken effect has ended."""
        until_ns: int | None = None
        for at in range(low, len(self._known)):
            one = self._known[at][0]
            if until_ns is not None and one.begin_ns > until_ns:
                return
            if not bits >> (at - low) & 1:
                end_ns = one.end_ns or 0
                until_ns = end_ns if until_ns is None else min(until_ns, end_ns)
                yield at


def _waits(before: int, low: int, bits: int) -> bool:
    """For the one before it of its process, which has not taken effect."""
    return before >= low and not bits >> (before - low) & 1


def _with(low: int, bits: int, at: int) -> tuple[int, int]:
    bits |= 1 << (at - low)
    while bits & 1:
        low, bits = low + 1, bits >> 1
    return low, bits


def _useful(model: OperationModel, those: Sequence[_Acted]) -> list[_Acted]:
    """Without operations of unknown end that explain nothing: they change no state, or a register
    to what nobody has seen. Without such a write every order is as good: what comes between it and
    the next one would have seen it."""
    seen: set[object] = set()
    for _, act in those:
        seen |= {act.result, act.argument[0]} if act.f == "cas" else {act.result}
    of_register = model is MODELS["register"] or model is MODELS["map"]

    def explains(act: Act) -> bool:
        if act.f in ("read", "get", "contains"):
            return False
        if not of_register:
            return True
        written = act.argument[1] if act.f == "cas" else act.argument
        return act.f == "delete" or written in seen

    return [one for one in those if one[0].ended == OK or explains(one[1])]
