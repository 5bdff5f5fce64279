"""Over which links the packets of some pairs go while a run goes on.

Where flows are shared out over equal links, these are the ways of a run's probes. Routes are
followed through all of its epochs: a pair is followed anew only where a cell of the routing table
changes that it has passed. A pair's packets enter the network also while a link of its route is
down, so those links count, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler.plan.paths.flows import PROBES, FlowChoice
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from compiler.plan.routes.core import NO_LINK
from runtime.schedule import Schedule

_DEVIATIONS = 4  # of jitter that few packets exceed

Pair = tuple[int, int]  # nodes


@dataclass(frozen=True, slots=True)
class ConnectedPair:
    """A pair of instances that are connected at some time.

    links     that its packets pass in any epoch
    delay_ns  no path of it is planned to take longer, but for waiting in queues
    """

    src: int
    dst: int
    links: frozenset[int]
    delay_ns: int


@dataclass(slots=True)
class _Track:
    """A pair on its way through the epochs."""

    src: int
    dst: int
    used: set[int] = field(default_factory=set)
    cells: list[int] = field(default_factory=list)  # of the table, that its route has passed
    route: list[int] = field(default_factory=list)  # links, as far as there are any
    whole: bool = False  # the route leads to the end
    connected: bool = False  # it was, at some time


class Ways:
    """Of one run. `least_bps`: the smallest rate that a link ever has in it, of those that have
    one. `table`, `links`: of the epoch that was followed last."""

    def __init__(self, plan: Plan, schedule: Schedule) -> None:
        self._plan = plan
        self._schedule = schedule
        self._core = plan.core
        self._ends = plan.topology.links
        self.least_bps: dict[int, int] = {}
        self._slowest_ns = [0] * len(self._ends)
        self._start()
        for step in schedule.steps[1:]:
            for link, state in step.epoch.links:
                self._note(link, state)

    def _start(self) -> None:
        first = self._plan.routed(self._schedule.start)
        self.table = first.table
        self.links = list(first.links)
        for link, state in enumerate(self.links):
            self._note(link, state)

    def _note(self, link: int, state: LinkState) -> None:
        if state.rate_bps:
            known = self.least_bps.get(link, state.rate_bps)
            self.least_bps[link] = min(known, state.rate_bps)
        delay_ns = state.delay_ns + _DEVIATIONS * state.jitter_ns
        self._slowest_ns[link] = max(self._slowest_ns[link], delay_ns)

    def follow(self, pairs: Iterable[Pair]) -> list[ConnectedPair]:
        """Those of the pairs that are connected in some epoch, in their order. PlanError."""
        self._start()
        tracks = [_Track(src, dst) for src, dst in pairs]
        at_cell: dict[int, set[int]] = {}
        at_link: dict[int, set[int]] = {}
        for number in range(len(tracks)):
            self._walk(tracks, number, at_cell, at_link)
        for step in self._schedule.steps[1:]:
            touched: set[int] = set()
            for link, state in step.epoch.links:
                self.links[link] = state
                touched.update(at_link.get(link, ()))
            delta = self._plan.routes.peek(step.epoch.index)
            moved: set[int] = set()
            for cell, value in zip(delta.cells, delta.values, strict=True):
                self.table[cell] = value
                moved.update(at_cell.get(cell, ()))
            for number in sorted(moved):
                self._walk(tracks, number, at_cell, at_link)
            for number in touched - moved:
                self._look(tracks[number])
        return [self._way(track) for track in tracks if track.connected]

    def _walk(
        self,
        tracks: list[_Track],
        number: int,
        at_cell: dict[int, set[int]],
        at_link: dict[int, set[int]],
    ) -> None:
        track = tracks[number]
        for cell in track.cells:
            at_cell[cell].discard(number)
        for link in track.route:
            at_link[link].discard(number)
        self._find_route(track)
        for cell in track.cells:
            at_cell.setdefault(cell, set()).add(number)
        for link in track.route:
            at_link.setdefault(link, set()).add(number)
        track.used.update(track.route)
        self._look(track)

    def _find_route(self, track: _Track) -> None:
        core = self._core
        track.cells, track.route, track.whole = [], [], False
        first, last = core.access_out[track.src], core.access_in[track.dst]
        if first != NO_LINK:
            track.route.append(first)
        node, end = core.anchor[track.src], core.anchor[track.dst]
        column = core.column_of[end]
        flow = FlowChoice(self._plan.topology, track.src, track.dst, PROBES)
        for _ in range(len(core.rows)):
            if node == end:
                break
            row = core.row_of[node]
            track.cells.append(row * len(core.columns) + column)
            value = self.table[track.cells[-1]]
            if not 0 < value <= core.values(row):
                return
            track.route.append(flow.link(core.leads(row, value)))
            node = self._ends[track.route[-1]].dst
        if last != NO_LINK:
            track.route.append(last)
        track.whole = True

    def _look(self, track: _Track) -> None:
        if track.whole and not track.connected:
            track.connected = all(self.links[link].up for link in track.route)

    def _way(self, track: _Track) -> ConnectedPair:
        delay_ns = sum(self._slowest_ns[link] for link in track.used)
        return ConnectedPair(track.src, track.dst, frozenset(track.used), delay_ns)
