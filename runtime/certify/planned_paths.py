"""What the plan says of some pairs while a run goes on: stretches in which nothing changes there.

Input: a plan, the steps of a run and pairs of nodes. A pair is composed anew only when one of its
links, or a route, has changed. Times are real ns since the start of the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.plan.event_kinds import DOWN
from compiler.plan.parts import necks
from compiler.plan.parts.traces import of_plan
from compiler.plan.paths.path import Paths
from compiler.plan.properties import LinkState, Totals
from compiler.plan.reader import Plan
from compiler.plan.state import NetworkState
from runtime.schedule import Schedule, Step

Pair = tuple[int, int]
MOST_STRETCHES = 100_000  # of all pairs together


@dataclass(frozen=True, slots=True)
class PlannedWay:
    """One direction: `links` with their states, in order. `shared`: it is what probes take, and
    other packets may take other links. `beside`: of each link those that share a queue with it;
    its state has what that queue may be with any flows (compiler/plan/parts/necks.py)."""

    totals: Totals[int]
    links: tuple[int, ...]
    states: tuple[LinkState, ...]
    shared: bool = False
    beside: tuple[tuple[int, ...], ...] = ()  # none: no link has any


@dataclass(frozen=True, slots=True)
class PlannedStretch:
    """[begin_ns, end_ns) of one pair. `there` is None where no path is; `ends_up`: both instances
    run, cut off or not."""

    begin_ns: int
    end_ns: int
    there: PlannedWay | None
    back: PlannedWay | None
    ends_up: bool


class Planned:
    """Stretches by pair, in order. From when a change was due until it was in force is none: nobody
    knows which network was there. `whole` is False if there were too many to follow: then they end
    at `followed_ns`, before the run does."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        pairs: Collection[Pair],
        moments: Mapping[int, int],
    ) -> None:
        """`moments`: when a step was in force, by its number, where that is known."""
        self.stretches: dict[Pair, list[PlannedStretch]] = {pair: [] for pair in sorted(pairs)}
        self.whole = True
        self._count = 0
        self._nodes = list(schedule.start.nodes)
        self._ways: dict[Pair, PlannedWay | None] = {}
        self._by_link: dict[int, set[Pair]] = defaultdict(set)
        self._open: dict[Pair, tuple[int, PlannedWay | None, PlannedWay | None, bool]] = {}
        self._state = state = plan.routed(schedule.start)
        self._links = list(state.links)
        self._necks = necks.members(plan.topology.links)
        self.traces = of_plan(plan) if plan.topology.traces else None
        self.start_ns = schedule.options.start_at_ns  # of the plan, which is 0 here
        self._both = {way for pair in self.stretches for way in (pair, pair[::-1])}
        self._compose(self._both)
        self._begin(self.stretches, 0, 0)
        self.followed_ns = self._follow(plan, schedule, moments)
        for pair in self._open:
            self._close(pair, self.followed_ns)

    def _follow(self, plan: Plan, schedule: Schedule, moments: Mapping[int, int]) -> int:
        """To the end, or until there are too many stretches; when that is."""
        for number, step in enumerate(schedule.steps[1:], 1):
            if self._count > MOST_STRETCHES:
                self.whole = False
                return step.due_ns
            self._advance(plan, step, max(moments.get(number, 0), step.due_ns))
        return schedule.end_due_ns

    def _advance(self, plan: Plan, step: Step, at_ns: int) -> None:
        epoch = step.epoch
        for node, word in epoch.nodes:
            self._nodes[node] = word
        touched: set[Pair] = set()
        if epoch.links:
            for link, state in epoch.links:
                self._links[link] = state
                for one in self._necks.get(state.neck, (link,)):
                    touched |= self._by_link[one]
            delta = plan.routes.changes(epoch.index)
            table = self._state.table
            for cell, value in zip(delta.cells, delta.values, strict=True):
                table[cell] = value
            touched |= {pair for pair, way in self._ways.items() if way is None}
            touched = self._both if delta.cells else touched
        self._state = NetworkState(
            self._state.topology,
            self._state.core,
            epoch.index,
            epoch.at_ns,
            self._nodes,
            self._links,
            self._state.table,
        )
        self._compose(touched)
        changed = {node for node, _ in epoch.nodes}
        concerned = [
            pair
            for pair in self.stretches
            if pair in touched or pair[::-1] in touched or not changed.isdisjoint(pair)
        ]
        self._begin(concerned, at_ns, step.due_ns)

    def _compose(self, ways: Iterable[Pair]) -> None:
        paths = Paths(self._state)
        for pair in sorted(ways):
            before = self._ways.get(pair)
            for link in before.links if before else ():
                self._by_link[link].discard(pair)
            found = paths.path(*pair)
            way = None
            if found.totals is not None:
                states = tuple(map(self._state_of, found.links))
                beside = tuple(self._necks.get(state.neck, ()) for state in states)
                several = beside if any(beside) else ()
                way = PlannedWay(found.totals, found.links, states, found.shared, several)
                for link in found.links:
                    self._by_link[link].add(pair)
            self._ways[pair] = way

    def _state_of(self, link: int) -> LinkState:
        state = self._links[link]
        if not state.neck:
            return state
        return necks.bounds(state, [self._links[one] for one in self._necks[state.neck]])

    def _begin(self, pairs: Iterable[Pair], at_ns: int, due_ns: int) -> None:
        for pair in pairs:
            up = all(self._nodes[node] != DOWN for node in pair)
            now = (self._ways[pair], self._ways[pair[::-1]], up)
            if pair in self._open:
                if self._open[pair][1:] == now:
                    continue
                self._close(pair, due_ns)
            self._open[pair] = (at_ns, *now)

    def _close(self, pair: Pair, at_ns: int) -> None:
        begin_ns, there, back, up = self._open[pair]
        if at_ns > begin_ns:
            self.stretches[pair].append(PlannedStretch(begin_ns, at_ns, there, back, up))
            self._count += 1

    def __iter__(self) -> Iterator[tuple[Pair, Sequence[PlannedStretch]]]:
        return iter(self.stretches.items())


def find(stretches: Sequence[PlannedStretch], at_ns: int) -> int:
    """The position of the one that holds this moment, -1 if none does."""
    last = find_begun(stretches, at_ns)
    return last if last >= 0 and at_ns < stretches[last].end_ns else -1


def find_begun(stretches: Sequence[PlannedStretch], at_ns: int) -> int:
    """The position of the last one that has begun by this moment, -1 if none has."""
    return bisect_right(stretches, at_ns, key=lambda one: one.begin_ns) - 1
