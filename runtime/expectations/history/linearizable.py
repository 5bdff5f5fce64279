"""Whether operations can be put in an order that explains them: each took effect at one moment
between its begin and its end.

The search of Wing and Gong (Testing and Verifying Concurrent Objects, 1993) with the memory of
states of Lowe (Testing for Linearizability, 2017): a node is what has taken effect and the state
after it, and no node is looked at twice. Operations without a known end may take effect at any time
after their begin, or never.

At the same moment an end and a begin are concurrent, since a clock has no finer order, but for
operations of one process, whose order is known. Linearizability is local (Herlihy and Wing 1990),
so each key is searched by itself. What is not local is the order of processes at one moment: keys
that could be in a circle by it are then searched together. Nodes and steps are
bounded, in all keys together: where a bound is met nothing is decided, and that does not depend on
how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.plan.graph_search import components
from runtime.expectations.history.models import (
    MODELS,
    READS,
    Act,
    OperationModel,
    State,
    acts,
    of_several,
)
from runtime.expectations.history.operations import OK, LongHistoryError, Operation

MOST_STEPS = 3_000_000  # of the model: some seconds
MOST_NODES = 300_000  # some 200 bytes each
MOST_TOGETHER = 60_000  # nodes of several keys, whose states are longer
_Acted = tuple[Operation, Act]
# What has taken effect: of those that ended all before the first and the bits after it; bits of the
# others; and the state.
_Node = tuple[int, int, int, State]


@dataclass(frozen=True, slots=True)
class Violation:
    """`guilty` is the operation with the first end that no order explains; `near`, by their begin,
    those of its `keys` that are around it, itself among them. There are several keys where each has
    an order of its own and all together have none."""

    guilty: Operation
    near: tuple[Operation, ...]
    keys: tuple[str, ...]


MOST_NEAR, MOST_WRITERS = 14, 3


def check(name: str, operations: Sequence[Operation]) -> Violation | None:
    """By a model of that name; operations by their begin. The first violation, or None.
    HistoryError; LongHistoryError if it was not decided."""
    budget = _Budget()
    model, acted = MODELS[name], acts(name, operations)
    found = [one for those in _by_key(acted).values() if (one := _searched(model, those, budget))]
    if found:
        return min(found, key=lambda one: (one.guilty.end_ns or 0, one.guilty.place))
    if budget.blocked:
        raise LongHistoryError(budget.words)
    budget.most_nodes = budget.nodes + MOST_TOGETHER
    for keys in _keys_together([one for one, _ in acted]):
        some = frozenset(keys)
        violation = _searched(model, [one for one in acted if one[0].key in some], budget)
        if violation is not None:
            return violation
        if budget.blocked:
            raise LongHistoryError(budget.words)
    return None


def _searched(model: OperationModel, those: Sequence[_Acted], budget: _Budget) -> Violation | None:
    """None also if the budget is spent, which then knows by what."""
    if budget.blocked:
        return None
    keys = tuple(dict.fromkeys(one.key for one, _ in those))
    if len(keys) > 1:
        place = {key: at for at, key in enumerate(keys)}
        those = [(one, replace(act, at=place[one.key])) for one, act in those]
    guilty = _Search(model, those, len(keys), budget).run()
    if guilty is not None:
        return Violation(guilty, _near(guilty, those), keys)
    if budget.is_spent:
        budget.blocked = f"the {len(those):,} operations{_of(keys)} overlap too much"
    return None


def _of(keys: Sequence[str]) -> str:
    if len(keys) > 1:
        return f" of {keys[0]} and {len(keys) - 1:,} more keys, by a clock with many equal times,"
    return f" of {keys[0]}" if keys[0] else ""


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
    of_key = [(one, act) for one, act in before if one.key == guilty.key]
    wrote = [one for one, act in of_key if act.argument is not None and act.argument == seen]
    last = [one for one, _ in before[-MOST_NEAR:]]
    chosen = {id(one) for one in (*last, *wrote[-MOST_WRITERS:], guilty)}
    return tuple(one for one, _ in before if id(one) in chosen)


class _Budget:
    """What was looked at. `blocked`: what was not decided with it, '' for nothing."""

    def __init__(self) -> None:
        self.nodes = 0
        self.steps = 0
        self.blocked = ""
        self.most_nodes = MOST_NODES

    @property
    def words(self) -> str:
        return f"not decided: {self.blocked}, {self.nodes:,} states were looked at"

    @property
    def is_spent(self) -> bool:
        return self.nodes > self.most_nodes or self.steps > MOST_STEPS


class _Search:
    """Of the operations of one key, or of several, whose acts say which of them."""

    def __init__(
        self, model: OperationModel, those: Sequence[_Acted], keys: int, budget: _Budget
    ) -> None:
        self._step = model.step if keys == 1 else of_several(model.step)
        self._initial: State = model.initial if keys == 1 else (model.initial,) * keys
        self._budget = budget
        self._known: list[_Acted] = []
        self._maybe: list[_Acted] = []
        self._before: list[int] = []  # which known one of the same process has ended before it
        self._before_maybe: list[int] = []
        last: dict[tuple[str, str], int] = {}
        for one, act in _useful(model, those):
            process = one.instance, one.process
            before = last.get(process, -1)
            if one.ended == OK:
                last[process] = len(self._known)
                self._known.append((one, act))
                self._before.append(before)
            else:
                self._maybe.append((one, act))
                self._before_maybe.append(before)

    def run(self) -> Operation | None:
        """The operation that no order explains; None if there is one, or it was not decided."""
        first: _Node = (0, 0, 0, self._initial)
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
        last of all what is looked at first, the one with the earliest end. A read that can come
        next does: what comes before it in another order could as well come after it."""
        low, bits, maybes, state = node
        open_ = list(self._open(low, bits))
        blocked = min(open_, key=lambda at: (self._known[at][0].end_ns or 0, at))
        until_ns = self._known[blocked][0].end_ns or 0
        found: list[_Node] = []
        open_.sort(key=lambda at: -(self._known[at][0].end_ns or 0))
        for at in open_:
            if _waits(self._before[at], low, bits):
                continue
            self._budget.steps += 1
            act = self._known[at][1]
            after = self._step(state, act)
            if after is None:
                continue
            if act.f in READS:
                return blocked, [(*_with(low, bits, at), maybes, after)]
            found.append((*_with(low, bits, at), maybes, after))
        return blocked, [*self._unknown(node, until_ns), *found]

    def _unknown(self, node: _Node, until_ns: int) -> list[_Node]:
        """What comes next if that is one without a known end."""
        low, bits, maybes, state = node
        self._budget.steps += len(self._maybe)
        found = [
            (low, bits, maybes | 1 << at, after)
            for at, (one, act) in enumerate(self._maybe)
            if one.begin_ns <= until_ns
            and not maybes >> at & 1
            and not _waits(self._before_maybe[at], low, bits)
            and (after := self._step(state, act)) is not None
        ]
        found.reverse()
        return found

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
        if act.f in READS:
            return False
        if not of_register:
            return True
        written = act.argument[1] if act.f == "cas" else act.argument
        return act.f == "delete" or written in seen

    return [one for one in those if one[0].ended == OK or explains(one[1])]


# Which keys of a history are searched together.
#
# Input: operations by their begin. Output: groups of keys. Orders of single keys and what is
# known of order between keys could be in a circle only at one moment: where one operation comes
# before another in the order of their key, it begins no later than that ends; where it does so by
# times or by their process, it ends no later than that begins. So round the circle all these
# moments are the same, and what is known is the order of processes, of at least two. At each
# moment the keys are therefore a graph, with an edge where a process has ended an operation of
# the one and begins one of the other, and keys of a strongly connected component are searched
# together. By a fine clock there are none.

_Process = tuple[str, str]
_Following = tuple[str, str, _Process]  # a key, that of what comes next, and who does them


def _keys_together(operations: Sequence[Operation]) -> list[list[str]]:
    """Sorted, each with its keys sorted. Those of a process are in their order, and without what
    has failed."""
    groups: dict[str, list[str]] = {}
    for followings in _by_moment(operations).values():
        for keys in _circles(followings):
            whole = sorted({one for key in keys for one in groups.get(key, [key])})
            groups.update(dict.fromkeys(whole, whole))
    return sorted({id(one): one for one in groups.values()}.values())


def _by_moment(operations: Iterable[Operation]) -> dict[int, list[_Following]]:
    found: dict[int, list[_Following]] = {}
    last: dict[_Process, Operation] = {}
    for one in operations:
        process = one.instance, one.process
        before = last.get(process)
        if before is not None and before.end_ns == one.begin_ns and before.key != one.key:
            found.setdefault(one.begin_ns, []).append((before.key, one.key, process))
        if one.ended == OK:
            last[process] = one
    return found


def _circles(followings: Sequence[_Following]) -> Iterable[list[str]]:
    if len({process for _, _, process in followings}) < 2:
        return
    keys = sorted({key for before, after, _ in followings for key in (before, after)})
    number = {key: at for at, key in enumerate(keys)}
    out: dict[int, list[int]] = {}
    for before, after, _ in followings:
        out.setdefault(number[before], []).append(number[after])
    for component in components(range(len(keys)), lambda at: out.get(at, ())):
        if len(component) > 1:
            yield [keys[at] for at in component]
