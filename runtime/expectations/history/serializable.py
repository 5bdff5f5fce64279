"""Whether transactions are as if they had run one after another.

What reads have seen says which transaction depends on which (Adya, Liskov and O'Neil, Generalized
Isolation Level Definitions, 2000; from histories alone: Kingsbury and Alvaro, Elle, 2020): `ww` its
write comes after that of the other, `wr` it has read the other's write, `rw` the other has written
over what it has read. A cycle has no order. Of lists the longest read is the order of the appends,
so if there is no cycle there is an order. Of registers only the order is known that follows from
who has read before writing, and from null, which is before all: a cycle is a violation, and where
there is none some may be hidden.

In each strongly connected component the shortest cycle is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compiler.plan.graph_search import components
from runtime.expectations.history.operations import (
    FAIL,
    HistoryError,
    LongHistoryError,
    Operation,
)
from runtime.expectations.history.transactions import Transaction, Values, transactions

_Edge = tuple[int, int]
_CLASSES = (
    ("G0", ("ww",), "writes in a circle"),
    ("G1c", ("ww", "wr"), "what was read goes round in a circle"),
    ("G2", ("ww", "wr", "rw"), "each has missed a write of the next, or follows it"),
)
MOST_EDGES = 1_000_000  # of a kind
MOST_STARTS = 200  # of a component, from which a shortest cycle is looked for


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`name` is Adya's, or what is wrong; `steps` has a transaction and, but for the last, how the
    next one follows it."""

    name: str
    words: str
    steps: tuple[tuple[Operation, str], ...]


def check(operations: Sequence[Operation]) -> tuple[Anomaly | None, int]:
    """The gravest anomaly, if there is one, and how many were found, cycles of a kind counted as
    one. HistoryError."""
    those, appended = transactions(operations)
    graph = _Graph(those, appended)
    found = [*graph.strange()]
    if not found:
        graph.connect()
        found += [*graph.strange(), *_cycles(graph)]
    return (found[0] if found else None), len(found)


class _Graph:
    """Transactions by number, and who wrote which value."""

    def __init__(self, those: Sequence[Transaction], appended: frozenset[str]) -> None:
        self.those = those
        self._appended = appended
        self._writer: dict[tuple[str, str], int] = {}
        self.edges: dict[str, dict[_Edge, str]] = {"ww": {}, "wr": {}, "rw": {}}
        self._orders: list[Anomaly] = []
        self._written: dict[str, list[tuple[str, int]]] = {}
        for number, one in enumerate(those):
            for key, values in one.writes.items():
                for value in values:
                    if (key, value) in self._writer:
                        message = f"{value} is written to {key} a second time"
                        raise HistoryError(f"{one.operation.place}: {message}")
                    self._writer[key, value] = number
                    self._written.setdefault(key, []).append((value, number))
        seen = {
            self._writer.get((key, value))
            for one in those
            for key, values in one.reads.items()
            for value in values
        }
        self._there = [
            one.ok or (one.operation.ended != FAIL and number in seen)
            for number, one in enumerate(those)
        ]

    # -- of single reads ------------------------------------------------------------------------

    def strange(self) -> Iterator[Anomaly]:
        """What is wrong with what a transaction has read, whatever the order; after `connect`
        reads whose orders differ."""
        if self._orders:
            yield from self._orders
            return
        for number, one in enumerate(self.those):
            if one.strange:
                yield Anomaly("internal", one.strange, ((one.operation, ""),))
            for key, values in one.reads.items():
                yield from self._of_read(number, one, key, values)

    def _of_read(
        self, number: int, one: Transaction, key: str, values: Values
    ) -> Iterator[Anomaly]:
        if len(set(values)) < len(values):
            yield Anomaly("duplicate", f"{key} has a value twice", ((one.operation, ""),))
        for value in values:
            writer = self._writer.get((key, value))
            if writer is None:
                words = f"nobody has written {value} to {key}"
                yield Anomaly("unwritten", words, ((one.operation, ""),))
            elif writer == number:
                words = f"it sees {value} of {key} before it writes that"
                yield Anomaly("internal", words, ((one.operation, ""),))
            elif self.those[writer].operation.ended == FAIL:
                words = f"{value} of {key} was written by a transaction that has failed"
                yield Anomaly("G1a", words, self._pair(writer, number, words))
        writer = self._writer.get((key, values[-1])) if values else None
        if writer is not None and writer != number:
            last = self.those[writer].writes[key][-1]
            if last != values[-1]:
                words = f"{values[-1]} of {key} is not the last that its transaction wrote"
                yield Anomaly("G1b", words, self._pair(writer, number, words))
        if key in self._appended:
            yield from self._of_writers(number, key, values)

    def _of_writers(self, number: int, key: str, values: Values) -> Iterator[Anomaly]:
        """Whether a list has the appends of each transaction from its first one on, in its order:
        they depend on nothing else, so no cycle would show it."""
        seen: dict[int, list[str]] = {}
        for value in values:
            writer = self._writer.get((key, value))
            if writer is not None and writer != number:
                seen.setdefault(writer, []).append(value)
        for writer, those in seen.items():
            if tuple(those) != tuple(self.those[writer].writes[key][: len(those)]):
                words = f"{key} has appends of one transaction in another order, or not its first"
                yield Anomaly("incompatible order", words, self._pair(writer, number, words))

    def _pair(self, writer: int, reader: int, how: str) -> tuple[tuple[Operation, str], ...]:
        return (self.those[writer].operation, how), (self.those[reader].operation, "")

    # -- of all together ------------------------------------------------------------------------

    def connect(self) -> None:
        readers: dict[str, list[tuple[int, Values]]] = {}
        for number, one in enumerate(self.those):
            for key, values in one.reads.items():
                readers.setdefault(key, []).append((number, values))
        for key in dict.fromkeys((*readers, *self._written)):
            of_key = readers.get(key, [])
            for number, values in of_key:
                if values:
                    self._edge("wr", self._writer[key, values[-1]], number, f"{key} {values[-1]}")
            if key in self._appended:
                self._of_list(key, of_key)
            else:
                self._of_register(key, of_key)

    def _edge(self, kind: str, before: int, after: int, what: str) -> None:
        if before != after and self._there[before] and self._there[after]:
            self.edges[kind].setdefault((before, after), f"{kind} {what}")
            if len(self.edges[kind]) > MOST_EDGES:
                raise LongHistoryError(f"more than {MOST_EDGES:,} dependencies of transactions")

    def _of_list(self, key: str, readers: Sequence[tuple[int, Values]]) -> None:
        longest: Values = max((values for _, values in readers), key=len, default=())
        place = frozenset(longest)
        for number, values in readers:
            if values != longest[: len(values)]:
                other = next(at for at, seen in readers if seen == longest)
                words = f"{key} in two orders"
                self._orders.append(
                    Anomaly("incompatible order", words, self._pair(number, other, words))
                )
        written = self._written.get(key, ())
        unread = [(writer, value) for value, writer in written if value not in place]
        ordered = [self._writer[key, value] for value in longest]
        for at, writer in enumerate(ordered[1:]):
            self._edge("ww", ordered[at], writer, f"{key} {longest[at + 1]}")
        for writer, value in unread:
            if ordered:
                self._edge("ww", ordered[-1], writer, f"{key} {value}")
        for number, values in readers:
            if len(values) < len(longest):
                after = longest[len(values)]
                self._edge("rw", number, self._writer[key, after], f"{key} {after}")
            else:
                for writer, value in unread:
                    self._edge("rw", number, writer, f"{key} {value}")

    def _of_register(self, key: str, readers: Sequence[tuple[int, Values]]) -> None:
        by_value: dict[Values, list[int]] = {}
        for number, values in readers:
            by_value.setdefault(values, []).append(number)
        writers = dict.fromkeys(writer for _, writer in self._written.get(key, ()))
        for number in by_value.get((), ()):
            for writer in writers:
                self._edge("rw", number, writer, f"{key} {self.those[writer].writes[key][0]}")
        for number, values in readers:  # who writes after what it has read
            one = self.those[number]
            if not values or key not in one.first_read or key not in one.writes:
                continue
            after = f"{key} {one.writes[key][0]}"
            self._edge("ww", self._writer[key, values[0]], number, after)
            for reader in by_value[values]:
                self._edge("rw", reader, number, after)


# -- cycles ---------------------------------------------------------------------------------------


def _cycles(graph: _Graph) -> Iterator[Anomaly]:
    """The shortest of each class that has one, the gravest first; of what a graver one has
    explained, no more."""
    edges: dict[_Edge, str] = {}
    for name, kinds, words in _CLASSES:
        for kind in kinds:
            for edge, how in graph.edges[kind].items():
                edges.setdefault(edge, how)
        cycle = _shortest(len(graph.those), edges)
        if cycle:
            steps = [(graph.those[at].operation, edges[at, after]) for at, after in pairwise(cycle)]
            yield Anomaly(name, words, (*steps, (graph.those[cycle[-1]].operation, "")))
            return


def _shortest(count: int, edges: Mapping[_Edge, str]) -> list[int]:
    """A shortest cycle, its first number again at its end; [] if there is none."""
    out: dict[int, list[int]] = {}
    for before, after in sorted(edges):
        out.setdefault(before, []).append(after)
    best: list[int] = []
    for component in components(range(count), lambda at: out.get(at, ())):
        if len(component) == 1:
            continue  # no edge leads from a transaction to itself
        inside = frozenset(component)
        for start in sorted(component)[:MOST_STARTS]:
            cycle = _around(start, out, inside)
            if cycle and (not best or len(cycle) < len(best)):
                best = cycle
    return best


def _around(start: int, out: Mapping[int, Sequence[int]], inside: frozenset[int]) -> list[int]:
    """Breadth first."""
    came: dict[int, int] = {}
    wave = [start]
    while wave:
        following = []
        for at in wave:
            for after in out.get(at, ()):
                if after == start:
                    return _way(start, at, came)
                if after in inside and after not in came:
                    came[after] = at
                    following.append(after)
        wave = following
    return []


def _way(start: int, at: int, came: Mapping[int, int]) -> list[int]:
    found = [start]
    while at != start:
        found.append(at)
        at = came[at]
    return [start, *reversed(found[1:]), start]
