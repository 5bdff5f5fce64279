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

from compiler.analysis.history import History, Outcome
from compiler.plan.expectations import (
    LOSS,
    OF_PAIRS,
    RTT,
    THROUGHPUT,
    UNREACHABLE,
    Expectation,
)
from compiler.plan.format import PPB
from compiler.plan.paths import figures
from compiler.plan.properties import Totals
from compiler.plan.state import DOWN
from compiler.say import moment
from tdl.quantities import rate, share

MOST_PAIRS = 200  # of an expectation, evenly spread
MOST_CHANGES = 20_000  # of all pairs of an expectation; takes half a second

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
class Stretch:
    """A time in which nothing changes for a pair; without a path a direction is None."""

    from_ns: int
    to_ns: int
    there: Totals[int] | None
    back: Totals[int] | None
    joined: bool  # both instances, at its beginning

    @property
    def length_ns(self) -> int:
        return max(self.to_ns - self.from_ns, 1)


@dataclass(frozen=True, slots=True)
class Foreseen:
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


def foresee(history: History, expectation: Expectation) -> Foreseen | None:
    """None for expectations that are not of pairs, and for those of which too much changes."""
    if expectation.kind not in OF_PAIRS:
        return None
    pairs = _spread(expectation.pairs)
    found: list[tuple[Pair, list[Stretch]]] = []
    room = MOST_CHANGES
    for pair in pairs:
        told = _stretches(history, pair, expectation.from_ns, expectation.to_ns, room)
        if told is None:
            return None
        room -= told[1]
        found.append((pair, told[0]))
    judged = [(pair, _judged(history, expectation, pair, those)) for pair, those in found]
    pair, (figure, problem) = next((one for one in judged if one[1][1]), judged[0])
    values = [value for _, those in found for one in those for value in _values(expectation, one)]
    is_open = [_is_open(expectation, one) for _, those in found for one in those]
    low, high = min(values, default=None), max(values, default=None)
    path, gone = any(is_open), not all(is_open)
    return Foreseen(pair, len(pairs), low, high, figure, path, gone, problem)


def _spread(pairs: Sequence[Pair]) -> list[Pair]:
    if len(pairs) <= MOST_PAIRS:
        return list(pairs)
    last = len(pairs) - 1
    return [pairs[last * step // (MOST_PAIRS - 1)] for step in range(MOST_PAIRS)]


def _stretches(
    history: History, pair: Pair, from_ns: int, to_ns: int, room: int
) -> tuple[list[Stretch], int] | None:
    """Those of the closed interval, and how many there are from the beginning of the plan on; None
    if these are more than `room`."""
    begun: list[Stretch] = []
    for epoch, (there, back) in history.changes((pair, pair[::-1])):
        start_ns = history.starts[epoch]
        if start_ns > to_ns or (start_ns == to_ns and from_ns < to_ns):
            break
        if len(begun) >= room:
            return None
        joined = all(history.node(node, epoch) != DOWN for node in pair)
        begun.append(Stretch(start_ns, to_ns, _totals(there), _totals(back), joined))
    ends = [one.from_ns for one in begun[1:]] + [to_ns]
    found = [
        replace(one, from_ns=max(one.from_ns, from_ns), to_ns=end_ns)
        for one, end_ns in zip(begun, ends, strict=True)
        if end_ns > from_ns
    ]
    return found or begun[-1:], len(begun)


def _totals(outcome: Outcome) -> Totals[int] | None:
    return figures.totals(figures.of_links(outcome.states)) if outcome.links else None


def _is_open(expectation: Expectation, one: Stretch) -> bool:
    """Whether what is sent gets there, and an answer back where one is waited for."""
    ways = (one.there,) if expectation.kind in (THROUGHPUT, LOSS) else (one.there, one.back)
    return all(way is not None and way.loss_ppb < PPB for way in ways)


def _values(expectation: Expectation, one: Stretch) -> Iterable[int]:
    """The planned figure of a stretch, if it has one; a rate without a limit is none."""
    if expectation.kind == RTT and one.there is not None and one.back is not None:
        yield one.there.delay_ns + one.back.delay_ns
    elif expectation.kind == THROUGHPUT and one.there is not None and one.there.rate_bps:
        yield one.there.rate_bps
    elif expectation.kind == LOSS and one.there is not None:
        yield one.there.loss_ppb


def _judged(
    history: History, expectation: Expectation, pair: Pair, those: Sequence[Stretch]
) -> tuple[int | None, str]:
    """The planned figure as it is judged, and the problem in words."""
    names = " to ".join(history.topology.nodes[node].name for node in pair)
    if expectation.kind == UNREACHABLE:
        return None, _reachable(expectation, those, names)
    if not any(_is_open(expectation, one) for one in those) and expectation.kind != LOSS:
        if expectation.kind == THROUGHPUT and expectation.op in ("<", "<="):
            return 0, ""
        when = _when(expectation.from_ns, expectation.to_ns)
        return None, f"by the plan there is no path from {names} {when}"
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


def _reachable(expectation: Expectation, those: Sequence[Stretch], names: str) -> str:
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


def _round_trip(expectation: Expectation, those: Sequence[Stretch]) -> _Judged:
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


def _doubt(expectation: Expectation, trips: Sequence[Stretch]) -> int:
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


def _throughput(expectation: Expectation, those: Sequence[Stretch]) -> _Judged:
    rates = [(one.there.rate_bps if one.there else 0, one.length_ns) for one in those]
    if any(one.there is not None and not one.there.rate_bps for one in those):
        return None, None, expectation.value  # without a limit
    mean = _statistic("mean", rates)
    most = max(value for value, _ in rates) if expectation.eventually else mean
    bound = most * expectation.value // PPB if expectation.of_plan else expectation.value
    if expectation.op in ("<", "<=") or most == bound:  # what waited in a queue may help
        return most, None, bound
    return most, most, bound


def _loss(expectation: Expectation, those: Sequence[Stretch]) -> _Judged:
    there = [one for one in those if one.joined]
    weighed = [(one.there.loss_ppb if one.there else PPB, one.length_ns) for one in there]
    if not weighed:
        return None, None, expectation.value
    starts = range(len(weighed)) if expectation.eventually else range(1)
    figure = min(_statistic("mean", weighed[start:]) for start in starts)
    if expectation.op in (">", ">="):
        return _statistic("mean", weighed), None, expectation.value
    return figure, figure, expectation.value
