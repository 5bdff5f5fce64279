"""What a plan has for the pairs of an expectation in its time, and whether that could meet it.

Input: the history of a plan, and an expectation of pairs. Output: `Foreseen`: the planned figure,
and a `problem` where a run that is exactly as planned must fail. Only what programs cannot mend is
one: queues make round trips longer and lose packets, and whoever sends little has a low rate, so
lower bounds of round trips and of losses and upper bounds of rates can always be met. Jitter gets
the benefit of the doubt. Algorithm: for each pair the stretches of time in which nothing changes
for it (compiler/analysis/history.py), weighted by how long they take, since probes are sent evenly.
Sources: docs/tdl.md (Expectations), docs/run.md (Expectations), which say what is judged.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.analysis.history import History, Outcome
from compiler.phrases import moment
from compiler.plan.event_kinds import DOWN
from compiler.plan.format import MAX_INT, PPB
from compiler.plan.parts.expectations import (
    LOSS,
    OF_PAIRS,
    RTT,
    THROUGHPUT,
    UNREACHABLE,
    PlannedExpectation,
)
from compiler.plan.parts.traces import FollowedTraces, of_plan
from compiler.plan.paths import path_properties
from compiler.plan.properties import BY_FIELD, Along, Totals, most_rate
from tdl.quantities import rate, share

MOST_PAIRS = 200  # of an expectation, evenly spread
MOST_CHANGES = 20_000  # of all pairs together; to look at them takes a second

Pair = tuple[int, int]
_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PERCENT = {"median": 50, "p90": 90, "p99": 99, "max": 100, "min": 0}
_FINE_PPB = 1_000_000  # a larger loss is shown to two digits behind the point
SHOWN: dict[str, Callable[[int], str]] = {
    RTT: moment,
    THROUGHPUT: rate,
    LOSS: lambda ppb: share(ppb if ppb < _FINE_PPB else round(ppb, -5)),
}
WORDS = {RTT: "round trip", THROUGHPUT: "rate", LOSS: "loss"}


@dataclass(frozen=True, slots=True)
class PredictedStretch:
    """A time in which nothing changes for a pair; without a path a direction is None."""

    from_ns: int
    to_ns: int
    there: Totals[int] | None
    back: Totals[int] | None
    joined: bool  # both instances, at its beginning
    traced: tuple[Outcome, Outcome] | None = None  # both ways, where a link follows a trace
    shared: bool = False  # packets may take other paths than this one of probes, or a queue is not
    # this pair's alone: the plan has no one rate

    @property
    def length_ns(self) -> int:
        return max(self.to_ns - self.from_ns, 1)


@dataclass(frozen=True, slots=True)
class Predicted:
    """`low` and `high` are the smallest and the largest planned figure of any pair at any time,
    None where no pair has a path. `figure` is that of `pair` over the whole time, as it is judged:
    of the first pair with a problem, else of the first."""

    pair: Pair
    looked: int  # at so many pairs
    low: int | None
    high: int | None
    figure: int | None
    path: bool  # some pair has one for some of the time
    gone: bool  # some pair has none for some of the time
    problem: str  # '' if the plan alone can meet it


class PredictedPairs:
    """What was found out about pairs, for several expectations: each pair is walked once."""

    def __init__(self, history: History, most: int = MOST_CHANGES) -> None:
        self.history = history
        self.followed = of_plan(history.plan) if history.topology.traces else None
        self._left = most
        self._known: dict[Pair, list[PredictedStretch]] = {}

    def at(self, pair: Pair) -> list[PredictedStretch] | None:
        """Its stretches from the beginning of the plan to its end, each to the beginning of the
        next; None where too much changes."""
        if pair not in self._known:
            if self._left <= 0:
                return None
            self._known[pair] = self._walked(pair)
            self._left -= len(self._known[pair])
        return self._known[pair] if self._left >= 0 else None

    def _walked(self, pair: Pair) -> list[PredictedStretch]:
        history, found = self.history, list[PredictedStretch]()
        for epoch, (there, back) in history.changes((pair, pair[::-1])):
            start_ns = history.starts[epoch]
            if found:
                found[-1] = replace(found[-1], to_ns=start_ns)
            joined = all(history.node(node, epoch) != DOWN for node in pair)
            follows = any(state.trace for way in (there, back) for state in way.states)
            ways = (there, back) if follows else None
            both = _totals(there), _totals(back)
            shared = there.shared or any(state.neck for state in there.states)
            found.append(PredictedStretch(start_ns, MAX_INT, *both, joined, ways, shared))
            if len(found) > self._left:
                break
        return found


def predict(looked: PredictedPairs, expectation: PlannedExpectation) -> Predicted | None:
    """None for expectations that are not of pairs, and for those of which too much changes."""
    if expectation.kind not in OF_PAIRS:
        return None
    pairs = _spread(expectation.pairs)
    found: list[tuple[Pair, list[PredictedStretch]]] = []
    for pair in pairs:
        whole = looked.at(pair)
        if whole is None:
            return None
        those = _within(whole, expectation.from_ns, expectation.to_ns)
        found.append((pair, [_as_followed(looked, expectation, one) for one in those]))
    history = looked.history
    judged = [(pair, _judged(history, expectation, pair, those)) for pair, those in found]
    pair, (figure, problem) = next((one for one in judged if one[1][1]), judged[0])
    values = [value for _, those in found for one in those for value in _values(expectation, one)]
    is_open = [_is_open(expectation, one) for _, those in found for one in those]
    low, high = min(values, default=None), max(values, default=None)
    path, gone = any(is_open), not all(is_open)
    return Predicted(pair, len(pairs), low, high, figure, path, gone, problem)


def _spread(pairs: Sequence[Pair]) -> list[Pair]:
    if len(pairs) <= MOST_PAIRS:
        return list(pairs)
    last = len(pairs) - 1
    return [pairs[last * step // (MOST_PAIRS - 1)] for step in range(MOST_PAIRS)]


def _within(whole: Sequence[PredictedStretch], from_ns: int, to_ns: int) -> list[PredictedStretch]:
    """The part of a closed interval; where that is a moment, the stretch that begins then or before
    it."""
    found = [
        replace(one, from_ns=max(one.from_ns, from_ns), to_ns=min(one.to_ns, to_ns))
        for one in whole
        if one.from_ns < to_ns and one.to_ns > from_ns
    ]
    if not found:
        begun = [one for one in whole if one.from_ns <= to_ns]
        found = [replace(begun[-1], from_ns=from_ns, to_ns=to_ns)]
    return found


def _as_followed(
    looked: PredictedPairs, expectation: PlannedExpectation, one: PredictedStretch
) -> PredictedStretch:
    """With what traces have in this time: on average, but the least delay, and where it is enough
    that it comes true once the best of all."""
    known = looked.followed
    if one.traced is None or known is None:
        return one
    until = min(one.to_ns, looked.history.plan.end_ns)
    ways = [_totals(_best(known, way, one.from_ns, until, expectation)) for way in one.traced]
    return replace(one, there=ways[0], back=ways[1])


def _best(
    known: FollowedTraces, way: Outcome, from_ns: int, to_ns: int, expectation: PlannedExpectation
) -> Outcome:
    states = []
    for state in way.states:
        found, best = known.between(state, from_ns, to_ns), known.means(state, from_ns, to_ns)
        for name, one in found.ranges.items() if found else ():
            if name == "rate_bps":
                value = max(one.most if expectation.eventually else one.mean, 1)
                best = best._replace(rate_bps=value)
            elif BY_FIELD[name].along is Along.SUM or expectation.eventually:
                values: dict[str, Any] = {name: one.least}
                best = best._replace(**values)
        states.append(best)
    return replace(way, states=tuple(states))


def _totals(outcome: Outcome) -> Totals[int] | None:
    """With as many flows as have most: how many there are is the programs' choice."""
    if not outcome.links:
        return None
    states = [state._replace(rate_bps=most_rate(state)) for state in outcome.states]
    return path_properties.totals(path_properties.of_links(states))


def _is_open(expectation: PlannedExpectation, one: PredictedStretch) -> bool:
    """Whether what is sent gets there, and an answer back where one is waited for."""
    ways = (one.there, one.back) if expectation.kind == RTT else (one.there,)
    return all(_arrives(way) for way in ways)


def _arrives(way: Totals[int] | None) -> bool:
    return way is not None and way.loss_ppb < PPB


def _values(expectation: PlannedExpectation, one: PredictedStretch) -> Iterable[int]:
    """The planned figure of a stretch, if it has one; a rate without a limit is none."""
    if expectation.kind == RTT and one.there is not None and one.back is not None:
        yield one.there.delay_ns + one.back.delay_ns
    elif expectation.kind == THROUGHPUT and one.there is not None and one.there.rate_bps:
        yield one.there.rate_bps
    elif expectation.kind == LOSS and one.there is not None:
        yield one.there.loss_ppb


def _judged(
    history: History, expectation: PlannedExpectation, pair: Pair, those: Sequence[PredictedStretch]
) -> tuple[int | None, str]:
    """The planned figure as it is judged, and the problem in words."""
    names = " to ".join(history.topology.nodes[node].name for node in pair)
    if expectation.kind == UNREACHABLE:
        return None, _reachable(expectation, those, names)
    if not any(_is_open(expectation, one) for one in those) and expectation.kind != LOSS:
        if expectation.kind == THROUGHPUT and expectation.op in ("<", "<="):
            return 0, ""
        when = _when(expectation.from_ns, expectation.to_ns)
        both = " and back" if any(_arrives(one.there) for one in those) else ""
        return None, f"by the plan there is no path from {names}{both} {when}"
    judge = {RTT: _round_trip, THROUGHPUT: _throughput, LOSS: _loss}[expectation.kind]
    figure, best, bound = judge(expectation, those)
    if figure is None or best is None or _HOLDS[expectation.op](best, bound):
        return figure, ""
    show = SHOWN[expectation.kind]
    what = WORDS[expectation.kind]
    if expectation.kind == RTT and expectation.statistic != "median":
        what = f"{expectation.statistic} of the round trips"
    wanted = f"{expectation.op} {show(bound)}"
    when = _when(expectation.from_ns, expectation.to_ns)
    is_so = f"the {what} from {names} is {show(figure)}"
    return figure, f"by the plan {is_so} {when}, and {wanted} is expected"


def _reachable(
    expectation: PlannedExpectation, those: Sequence[PredictedStretch], names: str
) -> str:
    """With `within` the end of the time decides, else all of it."""
    seen = those[-1:] if expectation.eventually else those
    for one in seen:
        if _is_open(expectation, one):
            if expectation.eventually:
                return f"by the plan there is a path from {names} at {moment(one.to_ns)}"
            return f"by the plan there is a path from {names} {_when(one.from_ns, one.to_ns)}"
    return ""


def _when(from_ns: int, to_ns: int) -> str:
    return f"between {moment(from_ns)} and {moment(to_ns)}"


# Each gives the planned figure, the best that a run as planned could have, and the bound; None for
# the best where whatever the plan has, the bound can be met.
_Judged = tuple[int | None, int | None, int]


def _round_trip(expectation: PlannedExpectation, those: Sequence[PredictedStretch]) -> _Judged:
    trips = [one for one in those if one.there is not None and one.back is not None]
    weighed = [(sum(_values(expectation, one)), one.length_ns) for one in trips]
    whole = _statistic(expectation.statistic, weighed)
    bound = whole * expectation.value // PPB if expectation.of_plan else expectation.value
    if expectation.op in (">", ">="):
        return whole, None, bound
    if expectation.of_plan:
        return whole, whole - _doubt(expectation, trips), bound
    starts = range(len(weighed)) if expectation.eventually else range(1)
    figure = min(_statistic(expectation.statistic, weighed[start:]) for start in starts)
    return figure, figure - _doubt(expectation, trips), bound


def _doubt(expectation: PlannedExpectation, trips: Sequence[PredictedStretch]) -> int:
    """How much less than planned jitter may make a figure."""
    jitter = max(
        one.there.jitter_ns + one.back.jitter_ns
        for one in trips
        if one.there is not None and one.back is not None
    )
    return jitter * 4 if expectation.statistic == "min" else jitter


def _statistic(name: str, weighed: Sequence[tuple[int, int]]) -> int:
    """Of values by how long each holds: nearest rank, or the mean."""
    total = sum(length for _, length in weighed)
    if name == "mean":
        return sum(value * length for value, length in weighed) // total
    reached = 0
    ordered = sorted(weighed)
    for value, length in ordered:
        reached += length
        if reached * 100 >= total * _PERCENT[name]:
            return value
    return ordered[-1][0]


def _throughput(expectation: PlannedExpectation, those: Sequence[PredictedStretch]) -> _Judged:
    rates = [(one.there.rate_bps if one.there else 0, one.length_ns) for one in those]
    if any(one.there is not None and (one.shared or not one.there.rate_bps) for one in those):
        return None, None, expectation.value  # without a limit, or with several
    mean = _statistic("mean", rates)
    most = max(value for value, _ in rates) if expectation.eventually else mean
    bound = most * expectation.value // PPB if expectation.of_plan else expectation.value
    if expectation.op in ("<", "<=") or most == bound:  # what waited in a queue may help
        return most, None, bound
    return most, most, bound


def _loss(expectation: PlannedExpectation, those: Sequence[PredictedStretch]) -> _Judged:
    there = [one for one in those if one.joined]
    weighed = [(one.there.loss_ppb if one.there else PPB, one.length_ns) for one in there]
    if not weighed:
        return None, None, expectation.value
    starts = range(len(weighed)) if expectation.eventually else range(1)
    figure = min(_statistic("mean", weighed[start:]) for start in starts)
    if expectation.op in (">", ">="):
        return _statistic("mean", weighed), None, expectation.value
    return figure, figure, expectation.value
